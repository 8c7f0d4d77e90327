//! What a waiting command shows.

use std::{
    io::{self, IsTerminal as _},
    time::{Duration, Instant, SystemTime},
};

use indicatif::ProgressBar;
use sqlock::{Holder, LockKey};

use crate::{report::say, scrub::scrub};

const FRAME: Duration = Duration::from_millis(100);

/// A spinner on a terminal, which ends with this value; one line elsewhere.
pub(super) struct Waiting {
    key: String,
    since: Instant,
    medium: Medium,
}

enum Medium {
    Spinner(ProgressBar),
    Line,
    LineWasWritten,
}

impl Waiting {
    pub(super) fn new(key: &LockKey) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let medium = if io::stderr().is_terminal() && !is_dumb {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(FRAME);
            Medium::Spinner(spinner)
        } else {
            Medium::Line
        };
        Self {
            key: key.to_string(),
            since: Instant::now(),
            medium,
        }
    }

    /// Shows that they hold the lock. Nobody may: between two holders, or where the queue is ours.
    pub(super) fn show(&mut self, holders: &[Holder]) {
        let by = holders_in_words(holders);
        match &self.medium {
            Medium::Spinner(spinner) => {
                let waited = whole_seconds(self.since.elapsed());
                let by = by.map_or(String::new(), |by| format!(", held by {by}"));
                let message = format!("waiting for lock \"{}\" for {waited}{by}", self.key);
                spinner.set_message(scrub(&message).into_owned());
            }
            Medium::Line => {
                if let Some(by) = by {
                    say(&format!("waiting for lock \"{}\", held by {by}", self.key));
                    self.medium = Medium::LineWasWritten;
                }
            }
            Medium::LineWasWritten => {}
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Medium::Spinner(spinner) = &self.medium {
            spinner.finish_and_clear();
        }
    }
}

/// The first of them, for how long it has been there, and how many others; `None` where there are
/// none.
pub(super) fn holders_in_words(holders: &[Holder]) -> Option<String> {
    let (first, others) = holders.split_first()?;
    let mut words = first.to_string();
    let age = first
        .since
        .and_then(|since| SystemTime::now().duration_since(since).ok());
    if let Some(age) = age {
        words += &format!(", there for {}", whole_seconds(age));
    }
    match others.len() {
        0 => {}
        1 => words += ", and one other",
        more => words += &format!(", and {more} others"),
    }
    Some(words)
}

fn whole_seconds(duration: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use sqlock::Mode;

    use super::*;

    #[test]
    fn holders_are_told_with_their_age_and_number() {
        let mut holder = Holder::unknown(Mode::Shared);
        holder.label = Some("nightly".to_owned());
        holder.pid = Some(4711);
        assert_eq!(holders_in_words(&[]), None);
        assert_eq!(
            holders_in_words(&[holder.clone()]).unwrap(),
            "nightly (pid 4711)"
        );
        holder.since = SystemTime::now().checked_sub(Duration::from_millis(61_500));
        let three = [holder.clone(), holder.clone(), holder];
        assert_eq!(
            holders_in_words(&three).unwrap(),
            "nightly (pid 4711), there for 1m 1s, and 2 others"
        );
    }
}

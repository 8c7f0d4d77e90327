//! The report for people.

use std::fmt::Write as _;

use sqlock_postgres::preflight::{Backend, Danger, LockSupport, Pooler, Report, Role};

use super::findings::Findings;

const WIDTH: usize = 92;
const INDENT: &str = "             ";

pub(super) fn report(findings: &Findings) -> String {
    let report = &findings.report;
    let mut text = String::new();
    entry(&mut text, "server", &findings.server);
    entry(&mut text, "version", version(report));
    entry(&mut text, "engine", report.engine.name());
    entry(&mut text, "role", role(report));
    entry(&mut text, "pooler", &pooler(&report.pooler));
    entry(&mut text, "session", &support(&report.session_locks));
    entry(
        &mut text,
        "transaction",
        &support(&report.transaction_locks),
    );
    if let Some(capacity) = report.lock_capacity {
        let room = format!(
            "{capacity} locks for all clients together; a process takes {} at most",
            capacity / 4
        );
        entry(&mut text, "lock table", &room);
    }
    if let Some(doubt) = &findings.doubt {
        entry(&mut text, "not known", doubt);
    }
    settings(&mut text, report);
    dangers(&mut text, &report.dangers);
    text.push('\n');
    let backend = findings.recommendation.backend.map_or("none", name);
    let advice = format!("{backend}: {}", findings.recommendation.reason);
    entry(&mut text, "use", &advice);
    text
}

fn settings(text: &mut String, report: &Report) {
    if report.settings.is_empty() {
        return;
    }
    text.push_str("\nsettings, as this connection has them; those with ! endanger locks\n");
    for setting in &report.settings {
        let is_danger = report
            .dangers
            .iter()
            .any(|danger| danger.setting == setting.name);
        let mark = if is_danger { '!' } else { ' ' };
        let value = match setting.to_string() {
            value if value.trim().is_empty() => "(empty)".to_owned(),
            value => value,
        };
        writeln!(text, "{mark} {:<36} {value}", setting.name).ok();
    }
}

fn dangers(text: &mut String, dangers: &[Danger]) {
    for danger in dangers {
        let whose: Vec<_> = danger.backends.iter().copied().map(name).collect();
        let head = format!(
            "\n! {} = {} (for {})\n",
            danger.setting,
            danger.value,
            whose.join(", ")
        );
        text.push_str(&head);
        paragraph(text, "  ", danger.why);
        paragraph(text, "  ", danger.advice);
    }
}

fn version(report: &Report) -> &str {
    match report.version.text.as_str() {
        "" => "not told",
        text => text,
    }
}

fn role(report: &Report) -> &'static str {
    match report.role {
        Some(Role::Primary) => "primary",
        Some(Role::Standby) => "standby: its advisory locks are its own, and nobody else sees them",
        None => "not known",
    }
}

fn pooler(pooler: &Pooler) -> String {
    match pooler {
        Pooler::NotSeen => "none seen: every connection had a server process of its own; there is \
                            none, or one in session mode"
            .to_owned(),
        Pooler::Session => "in session mode: a server process outlived its client and served the \
                            next"
            .to_owned(),
        Pooler::Transaction { evidence } => format!("in transaction mode: {evidence}"),
        Pooler::Statement { evidence } => {
            format!("in statement mode: transactions are refused, and {evidence}")
        }
        Pooler::SeveralServers { one, other } => format!(
            "a balancer over several servers: connections were answered by processes {one} and \
             {other}"
        ),
        Pooler::NotLooked { reason } => format!("not looked for: {reason}"),
        _ => "something that this version of sqlock has no words for".to_owned(),
    }
}

fn support(support: &LockSupport) -> String {
    match support {
        LockSupport::Genuine => "locks are PostgreSQL's own".to_owned(),
        LockSupport::Tested => "locks were tested: one key was granted to one of two".to_owned(),
        LockSupport::Absent { reason } => format!("no locks: {reason}"),
        LockSupport::Untested { reason } => format!("locks were not tested: {reason}"),
        _ => "something that this version of sqlock has no words for".to_owned(),
    }
}

pub(super) fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Session => "session",
        Backend::Xact => "xact",
        Backend::Ttl => "ttl",
        _ => "another",
    }
}

/// A label, and words beside it in as many lines as they take.
fn entry(text: &mut String, label: &str, words: &str) {
    let mut body = String::new();
    paragraph(&mut body, INDENT, words);
    let body = body.strip_prefix(INDENT).unwrap_or(&body);
    write!(text, "{label:<13}{body}").ok();
}

fn paragraph(text: &mut String, indent: &str, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        let is_full = indent.len() + line.chars().count() + 1 + word.chars().count() > WIDTH;
        if is_full && !line.is_empty() {
            writeln!(text, "{indent}{line}").ok();
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(text, "{indent}{line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_in_lines() {
        let mut text = String::new();
        let words = "word ".repeat(40);
        entry(&mut text, "label", &words);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.starts_with("label        word word"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 40);
    }

    #[test]
    fn a_word_that_fits_no_line_is_whole() {
        let mut text = String::new();
        entry(&mut text, "l", &"x".repeat(200));
        assert_eq!(text, format!("l            {}\n", "x".repeat(200)));
    }

    #[test]
    fn no_words_are_no_panic() {
        let mut text = String::new();
        entry(&mut text, "label", "");
        assert_eq!(text.trim_end(), "label");
    }
}

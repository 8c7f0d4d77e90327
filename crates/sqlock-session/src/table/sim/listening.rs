//! When a process tells others of its releases, and when it listens to theirs.

use std::time::Duration;

use tokio::time::Instant;

use super::{phase::Phase, process::Process, rules::Mutant, server::Server};

/// Shorter than in life, so that it matters.
const LINGER: Duration = Duration::from_millis(20);

impl Process {
    pub(super) fn announce(&mut self, server: &mut Server, now: Instant) {
        let keys = self.table.take_announcements();
        if keys.is_empty() || self.rules.mutant == Some(Mutant::Silence) {
            self.look_after_listening(server, now);
        } else {
            self.phase = Phase::Announcing(keys);
        }
    }

    pub(super) fn look_after_listening(&mut self, server: &mut Server, now: Instant) {
        let is_deaf = self.rules.mutant == Some(Mutant::DeafSleeper);
        if !self.is_listening || (self.table.waits_for_others() && !is_deaf) {
            self.unlisten_at = None;
            return;
        }
        if *self.unlisten_at.get_or_insert(now + LINGER) <= now {
            self.unlisten_at = None;
            self.listen(server, false);
        }
    }

    pub(super) fn listen(&mut self, server: &mut Server, listens: bool) {
        self.is_listening = listens && self.session.is_some();
        if let Some(session) = self.session {
            server.listen(session, listens);
        }
    }
}

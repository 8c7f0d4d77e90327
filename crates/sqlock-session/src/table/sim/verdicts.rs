//! What callers are told, and whether it is so.

use sqlock_core::{AdvisoryId, Error, Mode, Result};

use super::{
    caller::{Caller, Released, State},
    invariants::{Rule, ids},
    request::Guard,
    server::Tag,
    world::{Checked, World},
};
use crate::server_lock::OnServer;

impl World {
    /// The answers, and the invariants.
    pub(super) fn after(&mut self, process: usize) -> Checked {
        self.look_for_excuses();
        let mut refused = Vec::new();
        for index in 0..self.callers.len() {
            if self.callers[index].process != process {
                continue;
            }
            match self.callers[index].answer() {
                None => {}
                Some(Some(Ok(Some(guard)))) => {
                    self.check_order(index)?;
                    let session = self.processes[process].session.unwrap_or_default();
                    self.check_token(&guard, index, session)?;
                    self.callers[index].state = State::Holding(guard, session);
                }
                Some(other) => refused.push((index, other)),
            }
        }
        for (index, answer) in refused {
            self.refused(&self.callers[index], answer)?;
        }
        for index in 0..self.callers.len() {
            if let Some(released) = self.callers[index].released() {
                self.released(&self.callers[index], released)?;
            }
        }
        self.check()?;
        self.callers
            .retain(|caller| !matches!(caller.state, State::Done));
        Ok(())
    }

    fn refused(&self, caller: &Caller, answer: Option<Result<Option<Guard>>>) -> Checked {
        match answer {
            None => Rule::Answered.check(false, || format!("no answer: {caller:?}")),
            Some(Ok(_)) => {
                Rule::Answered.check(!caller.waits(), || format!("refused: {caller:?}"))?;
                // one who was granted it in the same moment is a reason too
                let has_reason = caller.excuse || self.has_excuse(caller);
                Rule::Truthful.check(has_reason, || format!("no reason: {caller:?}"))
            }
            Some(Err(error)) => {
                let is_expected = match error {
                    Error::LockBudget { .. } => self.rules.budget < usize::MAX,
                    _ => self.rules.deaths || self.rules.failures,
                };
                Rule::Truthful.check(is_expected, || format!("{error:?}: {caller:?}"))
            }
        }
    }

    fn released(&self, caller: &Caller, released: Released) -> Checked {
        let (result, lost, session) = released;
        let may_fail = self.rules.deaths || self.rules.failures;
        Rule::Released.check(result.is_ok() || may_fail, || {
            format!("{result:?}: {caller:?}")
        })?;
        let cause = lost.cause();
        Rule::Released.check(result.is_err() || cause.is_none(), || {
            format!("{cause:?}: {caller:?}")
        })?;
        // readers are told when the lock is no longer theirs, and one of several keys can be had
        // again before the last is free
        let is_held = caller.mode() == Mode::Exclusive
            && caller.request.keys().len() == 1
            && ids(caller).any(|id| {
                self.holds(session, id, Mode::Exclusive) > 0 && !self.is_granted(caller.process, id)
            });
        Rule::Released.check(result.is_err() || !is_held, || {
            format!("it is held: {caller:?}")
        })
    }

    fn is_granted(&self, process: usize, id: AdvisoryId) -> bool {
        let mut grants = self.processes[process].table.grants.values();
        grants.any(|grant| grant.keys.iter().any(|key| key.id() == id))
    }

    fn check_order(&self, index: usize) -> Checked {
        let granted = &self.callers[index];
        let first = |caller: &Caller| (ids(caller).next(), caller.request.keys().len());
        let passed_over = self.callers.iter().find(|other| {
            other.process == granted.process
                && other.arrival < granted.arrival
                && other.is_waiting()
                && (other.waits() && granted.waits())
                && other.mode() == granted.mode()
                && first(other) == first(granted)
                && first(other).1 == 1
        });
        Rule::Order.check(passed_over.is_none(), || {
            format!("{granted:?} before {passed_over:?}")
        })
    }

    /// Whether there is a reason at this moment to refuse what `caller` tries.
    pub(super) fn has_excuse(&self, caller: &Caller) -> bool {
        let own = self.processes[caller.process].session.unwrap_or_default();
        let others = self
            .callers
            .iter()
            .filter(|other| other.process == caller.process && other.arrival != caller.arrival);
        let beside = |id: AdvisoryId| {
            let conflicts = |other: &Caller| match other.guard() {
                Some(_) => caller.mode() == Mode::Exclusive || other.mode() == Mode::Exclusive,
                None => other.is_waiting() && (other.waits() || other.request.keys().len() > 1),
            };
            let mut others = others
                .clone()
                .filter(|other| ids(other).any(|its| its == id));
            others.any(conflicts)
        };
        ids(caller).any(|id| {
            let h = id.slot().0;
            self.server.excluded(own, Tag::Key(id), caller.mode())
                || self.server.others_wait(own, h)
                || beside(id)
        })
    }
}

//! The tokens of a key rise.

use std::collections::BTreeMap;

use sqlock_core::{AdvisoryId, FencingToken, Mode};

use super::{
    invariants::{Rule, ids},
    request::Guard,
    server::SessionId,
    world::{Checked, World},
};
use crate::statement::Fenced;

/// The highest that were given: to exclusive holders, and to any.
#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<AdvisoryId, (FencingToken, FencingToken)>);

const NONE: FencingToken = FencingToken::new(0);

impl World {
    /// A guard whose session has ended before it was given comes late, perhaps after the next holder.
    pub(super) fn check_token(
        &mut self,
        guard: &Guard,
        caller: usize,
        session: SessionId,
    ) -> Checked {
        let caller = &self.callers[caller];
        if self.rules.fenced == Fenced::No || !self.server.is_alive(session) {
            return Ok(());
        }
        for id in ids(caller) {
            let (exclusive, any) = self.tokens.0.entry(id).or_insert((NONE, NONE));
            let token = guard.token().unwrap_or(NONE);
            let (above, is_exclusive) = match caller.mode() {
                Mode::Exclusive => (*any, true),
                _ => (*exclusive, false),
            };
            Rule::Tokens.check(token > above, || {
                format!("{token} after {above}: {caller:?}")
            })?;
            if is_exclusive {
                *exclusive = token;
            }
            *any = token.max(*any);
        }
        Ok(())
    }
}

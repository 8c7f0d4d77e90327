//! What a run of the simulation allows to happen, and which bug is in it.

use std::time::Duration;

use sqlock_core::LockKey;

use crate::{options::Timing, statement::Fenced};

/// So far away that no run gets there: waiters must be woken.
pub(super) const NEVER: Duration = Duration::from_secs(80_000);

#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) processes: usize,
    pub(super) keys: Vec<LockKey>,
    pub(super) timing: Timing,
    pub(super) budget: usize,
    /// Sessions end, and new ones cannot always be had.
    pub(super) deaths: bool,
    /// Statements fail midway.
    pub(super) failures: bool,
    /// Notifications get lost.
    pub(super) losses: bool,
    /// Plain SQL locks and unlocks the same keys.
    pub(super) raw: bool,
    /// How many times slower the last process gets on, where time counts.
    pub(super) distance: u32,
    /// Locks have tokens.
    pub(super) fenced: Fenced,
    pub(super) mutant: Option<Mutant>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            processes: 3,
            keys: (1..=3).map(LockKey::from_id).collect(),
            timing: Timing {
                poll: NEVER,
                stand_back: Duration::from_millis(5),
                look_again: Duration::from_millis(5),
            },
            budget: usize::MAX,
            deaths: false,
            failures: false,
            losses: false,
            raw: false,
            distance: 1,
            fenced: Fenced::No,
            mutant: None,
        }
    }
}

impl Rules {
    /// Everything goes wrong, so that waiters need their polls.
    pub(super) fn chaos() -> Self {
        let mut rules = Self {
            deaths: true,
            failures: true,
            losses: true,
            raw: true,
            ..Self::default()
        };
        rules.timing.poll = Duration::from_millis(100);
        rules
    }

    pub(super) fn with(mutant: Mutant) -> Self {
        Self {
            mutant: Some(mutant),
            ..Self::default()
        }
    }
}

/// A bug, in the server or in whoever drives the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutant {
    /// The wait slot is looked at, and let go, before the key is unlocked. (Kept until the end of
    /// the statement, as it is, it keeps waiters away meanwhile: then the order does not matter.)
    LookBeforeUnlock,
    /// A waiter tries the key before it takes the wait slot.
    KeyBeforeSlot,
    /// A waiter listens from the end of its statement on.
    ListenWithTry,
    /// Nobody listens for longer than a moment.
    DeafSleeper,
    /// Releases are not announced.
    Silence,
    /// Notifications are not passed on to the table.
    DeafTable,
    /// A release names a key, and not a grant.
    ReleaseByKey,
    /// The end of a session is not told to the table.
    UntoldLoss,
    /// After a statement that failed nothing is asked: as if it had done nothing.
    FailureUndone,
    /// After a statement that failed nothing is asked: as if it had done everything.
    FailureDone,
    /// Callers who go away do not say so.
    SilentCaller,
    /// Those who are granted a lock as waiters keep the slot and the gate.
    KeptSlot,
    /// Advisory locks that exclude nobody.
    LaxServer,
    /// Locks of a transaction stay until the session ends.
    LongTransactions,
    /// The budget is not the table's.
    Spendthrift,
    /// Requests get lost now and then.
    LostRequest,
    /// Who releases is told at once that it is done.
    EarlyReceipt,
    /// Wait slots are never to be had.
    NoSlots,
    /// Gates are always found open.
    OpenGates,
    /// Tries are refused now and then for no reason.
    MoodyServer,
    /// Tokens are drawn before the key is tried.
    TokenBeforeKey,
    /// The table does not know that every holder needs a token of its own.
    TokensPassedOn,
    /// A waiter's request reaches the table after those of others who came later.
    LateArrival,
}

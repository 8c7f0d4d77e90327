//! A backend over the in-memory one that has a flaw, for the suite to convict.

mod asking;
mod backend;
mod held;
mod keys;
mod world;

pub(crate) use world::{FlawedWorld, Has};

/// What is wrong with it. Each is a fault that some lock library has had, or easily has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing, so that the suite passes and a conviction is the flaw's doing.
    None,

    // exclusion
    /// Nodes do not contend with each other: locks of the process only.
    NodesApart,
    /// A node takes its own lock twice, as an advisory lock lets its session.
    Reenters,
    /// A try waits.
    TryWaits,

    // keys
    FoldsCase,
    TruncatesNames,
    CannotQuote,
    DropsNamespaces,
    NamesApartFromNumbers,
    PairsAreNumbers,
    NumbersOf32Bits,
    OneKeyForAll,

    // ends
    /// A dropped guard does nothing.
    LeaksOnDrop,
    /// A guard that is dropped in a panic does nothing.
    LeaksInPanic,
    /// The drop's release is a task of the runtime, if there is one and it lives to run it.
    DropSpawns,
    /// The release disarms before it is done.
    LeaksOnCancelledRelease,
    /// The release returns before the lock is free.
    ReleasesLate,
    /// Ends name the key and not the grant.
    FreesByKey,

    // waiting and cancellation
    /// The reply carries no guard.
    LeaksOnCancel,
    /// Who gives up goes on waiting, and takes the lock later.
    TakesLater,
    TimesOutEarly,
    IgnoresBudget,
    MissesWakeUps,

    // several keys
    HoldsWhileWaiting,
    /// The budget starts anew with each key.
    BudgetsEachKey,
    LeaksWhenRefused,

    // runtimes
    /// Works on the runtime on which the node was made, and on no other.
    BoundToItsRuntime,

    // shutdown
    ShutdownKeeps,
    ShutdownAdmits,
    ShutdownFailsTwice,
    ShutdownIsLazy,

    // loss
    NeverTells,
    TellsAfterTheEnd,
    ForgetsLosses,
    SwallowsLosses,
    LosesOneOnly,
    BreaksForGood,
    /// An error of the connection ends the waiting of those who have time left.
    WaitersDieWithIt,

    // shared
    SharedIsExclusive,
    StarvesWriters,

    // tokens
    OneTokenForAll,
    TokensOfTheNode,
    TokensBeforeTheGrant,

    // inspect
    SeesNobody,
    SeesEverybody,
}

//! Leases in memory, with a flaw: for the cases of leases.

mod held;
mod node;
mod table;
mod world;

pub(crate) use world::{Has, LeaseWorld};

/// What is wrong with a backend of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,

    // the table
    /// A row is taken until it is given back.
    NeverEnds,
    /// A renewal does not ask whether the lease has run out.
    RevivesExpired,
    /// A renewal goes by the name, whoever has it.
    RenewsByName,
    /// A renewal goes by the server's clock, whatever it says: what it is renewed to is the
    /// holder's own reckoning of it.
    GoesByTheServersClock,

    // the holder
    NeverRenews,
    /// The holder has no deadline of its own.
    BelievesForever,
    /// The deadline is looked at, and nobody is woken by it.
    TellsNobody,
    /// A grant counts, however late its answer comes.
    GivesLate,
    /// The holder's deadline alone is moved.
    ExtendsItselfOnly,
    /// An extension is for the TTL of before.
    ExtendsNothing,
    TokensGoBack,
}

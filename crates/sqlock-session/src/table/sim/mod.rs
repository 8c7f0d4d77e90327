//! A simulation that attacks the table: a model of the server, several processes with a table
//! each, and callers who do everything that callers can do, in an order that chance decides.
//!
//! Statements of different sessions interleave at every call of a lock function, as they do on a
//! server. Invariants are checked after every step, and what must come of it all at the end.
//! `convictions` puts bugs into the model and shows that the invariants see them.

mod actors;
mod caller;
mod convictions;
mod execution;
mod exploration;
mod faults;
mod invariants;
mod listening;
mod pace;
mod phase;
mod process;
mod recovery;
mod regressions;
mod regressions_several;
mod request;
mod rules;
mod schedule;
mod server;
mod settling;
mod tokens;
mod verdicts;
mod world;

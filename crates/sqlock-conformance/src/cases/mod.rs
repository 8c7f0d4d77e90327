//! The cases, by theme. [`conformance!`](crate::conformance) names them all; they are public so
//! that one alone can be run with [`run`](crate::run()).

pub mod advisory_ids;
pub mod bodies;
pub mod cancellation;
pub mod clock_steps;
pub mod elections;
pub mod exclusion;
pub mod inspect;
pub mod keys;
pub mod leases;
pub mod load;
pub mod loss;
pub mod lost_permits;
pub mod lost_readers;
pub mod read_write;
pub mod rebirth;
pub mod release;
pub mod runtimes;
pub mod semaphores;
pub mod sends;
pub mod several;
pub mod shared;
pub mod shutdown;
pub mod tokens;
pub mod waiting;
pub mod writers_first;

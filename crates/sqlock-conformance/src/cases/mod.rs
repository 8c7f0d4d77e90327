//! The cases, by theme. [`conformance!`](crate::conformance) names them all; they are public so
//! that one alone can be run with [`run`](crate::run()).

pub mod exclusion;

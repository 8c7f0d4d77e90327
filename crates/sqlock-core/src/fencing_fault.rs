/// Why a backend can give no fencing tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FencingFault {
    /// What tokens are drawn from is not there.
    #[error("{object} is not there; create it by `Fencing::create`, or by the shipped SQL")]
    Missing {
        /// A table, a sequence or a schema, or what the server says of it.
        object: String,
    },
    /// It is not as this version of sqlock knows it.
    #[error("{object} has another shape: {difference}")]
    Shape {
        /// The table or the sequence.
        object: String,
        /// What is missing or otherwise.
        difference: String,
    },
    /// The role has not the right to draw.
    #[error(
        "the role lacks a right; it needs usage on the schema {schema}, select, insert and update \
         on its sqlock_fencing tables, and usage and select on their sequence"
    )]
    Denied {
        /// The schema, quoted.
        schema: String,
    },
    /// The connection's transactions are read-only, and drawing is a write.
    #[error("the connection is read-only; drawing a token writes")]
    ReadOnly,
    /// No more tokens are to be had.
    #[error("the tokens are used up, or were set too high by hand")]
    Exhausted,
}

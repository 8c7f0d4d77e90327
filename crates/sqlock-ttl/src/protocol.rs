/// How the statements of a [`TtlBackend`](crate::TtlBackend) are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Whole transactions in one message, with their values in them. One round trip, behind any
    /// pooler.
    #[default]
    Simple,
    /// Prepared statements, whose plans the server keeps: three round trips, for direct connections
    /// and poolers in session mode. Through a pooler in transaction mode a statement can meet
    /// another client's of the same name. That is noticed before anything is committed, and told as
    /// [`Error::InvalidOption`](sqlock_core::Error::InvalidOption) of the option `protocol`.
    Prepared,
}

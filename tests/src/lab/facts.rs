use std::collections::BTreeMap;

/// What the servers say once a run is over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The writes that the resource accepted, in its own order.
    pub writes: Vec<Write>,
    /// What each key was counted up to, in transactions.
    pub counts: BTreeMap<i64, i64>,
    /// What is held or open that should not be, in words.
    pub leftovers: Vec<String>,
    /// The workers that were there when the calm began.
    pub alive: Vec<u32>,
}

/// A write that the resource accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// To what.
    pub key: i64,
    /// With which fencing token, where there was one.
    pub token: Option<i64>,
}

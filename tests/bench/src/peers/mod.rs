//! What others take for the same thing.

pub(crate) mod distributed_lock;
pub(crate) mod raw;
pub(crate) mod redis;
pub(crate) mod sqlx_lock;

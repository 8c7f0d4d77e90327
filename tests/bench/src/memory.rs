//! How much of the heap something takes.

use anyhow::Result;

use crate::ALLOCATOR;

/// Bytes that are allocated now.
pub(crate) fn in_use() -> Result<i64> {
    let stats = ALLOCATOR.stats();
    Ok(i64::try_from(stats.bytes_allocated)? - i64::try_from(stats.bytes_deallocated)?)
}

//! Who gets the rows that are asked for.

use std::collections::HashSet;

use sqlx::SqliteConnection;

use super::rows::Rows;
use crate::{
    holder::HolderInfo,
    store::{Claim, Claimed},
};

/// A look that takes no write lock, so that a refusal writes nothing: the answers where every
/// request is refused, and `None` where one may be granted.
pub(super) async fn refusals(
    connection: &mut SqliteConnection,
    rows: Rows<'_>,
    claims: &[Claim],
) -> sqlx::Result<Option<Vec<Claimed>>> {
    let mut refused = HashSet::new();
    let mut answers = Vec::with_capacity(claims.len());
    for claim in claims {
        let left = rows.remaining(connection, &claim.row).await?;
        if left.is_some() {
            refused.insert(claim.request);
        }
        let remaining = left.unwrap_or_default();
        answers.push(Claimed::Refused { remaining });
    }
    let all = claims.iter().all(|claim| refused.contains(&claim.request));
    Ok(all.then_some(answers))
}

/// Within a transaction that has the write lock: all rows of a request, or none.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    rows: Rows<'_>,
    claims: &[Claim],
    holder: &HolderInfo,
) -> sqlx::Result<Vec<Claimed>> {
    let mut claimed = Vec::with_capacity(claims.len());
    for request in claims.chunk_by(|one, next| one.request == next.request) {
        let mut left = Vec::with_capacity(request.len());
        for claim in request {
            left.push(rows.remaining(connection, &claim.row).await?);
        }
        let is_free = left.iter().all(Option::is_none);
        for (claim, remaining) in request.iter().zip(left) {
            claimed.push(if is_free {
                rows.take(connection, claim, holder).await?
            } else {
                let remaining = remaining.unwrap_or_default();
                Claimed::Refused { remaining }
            });
        }
    }
    Ok(claimed)
}

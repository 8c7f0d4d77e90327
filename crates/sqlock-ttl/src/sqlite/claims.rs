//! Who gets the rows that are asked for.

use std::{collections::HashSet, time::Duration};

use sqlx::SqliteConnection;

use super::rows::Rows;
use crate::{
    holder::HolderInfo,
    store::{Claim, Claimed},
};

/// The answer for a row that is free, where another of its request is not.
const FREE: Claimed = Claimed::Refused {
    remaining: Duration::ZERO,
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
        let obstacle = rows.obstacle(connection, claim).await?;
        if obstacle.is_some() {
            refused.insert(claim.request);
        }
        answers.push(obstacle.unwrap_or(FREE));
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
        let mut obstacles = Vec::with_capacity(request.len());
        for claim in request {
            obstacles.push(rows.obstacle(connection, claim).await?);
        }
        let is_free = obstacles.iter().all(Option::is_none);
        for (claim, obstacle) in request.iter().zip(obstacles) {
            claimed.push(if is_free {
                rows.take(connection, claim, holder).await?
            } else {
                obstacle.unwrap_or(FREE)
            });
        }
    }
    Ok(claimed)
}

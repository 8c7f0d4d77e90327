//! What is asked of the server, in one statement.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, postgres::PgRow};

use super::{Fault, Link, bounded, undecodable};
use crate::{
    batch::{Batch, Outcome, Row},
    statement::{self, Fenced, PLAIN, WITH_WAITERS},
};

impl Link {
    /// Asks for everything in `batch`.
    pub(crate) async fn ask(&mut self, batch: &Batch) -> Result<Vec<Outcome>, Fault> {
        // a batch that only frees locks must not depend on whether tokens can be drawn
        let fenced = match &self.tokens {
            Some(_) if batch.may_grant() => Fenced::Yes,
            _ => Fenced::No,
        };
        let rows = match batch.rows.as_slice() {
            [row] if fenced == Fenced::No => self.ask_for_one(row).await?,
            _ => self.ask_for_all(batch, fenced).await?,
        };
        let answers: Vec<_> = rows
            .iter()
            .map(statement::decode)
            .collect::<Result<_, _>>()
            .map_err(undecodable)?;
        if answers.len() != batch.rows.len() {
            return Err(undecodable(sqlx::Error::Protocol(format!(
                "{} answers to {} questions",
                answers.len(),
                batch.rows.len()
            ))));
        }
        let mut outcomes = answers
            .into_iter()
            .map(|(pid, outcome)| self.same_session(pid).map(|()| outcome))
            .collect::<Result<Vec<_>, _>>()?;
        if fenced == Fenced::Yes {
            self.draw_missing(batch, &mut outcomes).await?;
        }
        Ok(outcomes)
    }

    async fn ask_for_one(&mut self, row: &Row) -> Result<Vec<PgRow>, Fault> {
        let (code, key, slot) = statement::encode(row, Fenced::No);
        let statement = self.lone.entry(code);
        let statement = statement.or_insert_with(|| statement::lone(code, row.step).into());
        let query = sqlx::query(AssertSqlSafe(Arc::clone(statement)));
        let limit = self.limit;
        let query = query.bind(key).bind(slot);
        bounded(limit, query.fetch_all(self.listener()?)).await
    }

    async fn ask_for_all(&mut self, batch: &Batch, fenced: Fenced) -> Result<Vec<PgRow>, Fault> {
        let tokens = (self.tokens.as_ref()).filter(|_| fenced == Fenced::Yes);
        let query = match tokens {
            Some(tokens) => sqlx::query(AssertSqlSafe(tokens.statement())),
            None if batch.is_plain() => sqlx::query(PLAIN),
            None => sqlx::query(WITH_WAITERS),
        };
        let (codes, (keys, slots)): (Vec<i16>, (Vec<i64>, Vec<i32>)) = batch
            .rows
            .iter()
            .map(|row| statement::encode(row, fenced))
            .map(|(code, key, slot)| (code, (key, slot)))
            .unzip();
        let limit = self.limit;
        let query = query.bind(codes).bind(keys).bind(slots);
        bounded(limit, query.fetch_all(self.listener()?)).await
    }
}

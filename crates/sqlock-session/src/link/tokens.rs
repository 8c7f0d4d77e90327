//! Fencing tokens of a session.

use std::sync::Arc;

use sqlock_core::Error;
use sqlock_postgres::{Fencing, TokenKind, TokenSource};
use sqlx::AssertSqlSafe;

use super::{Fault, Link, bounded, undecodable};
use crate::{
    BACKEND,
    batch::{Batch, Outcome},
    statement,
};

/// Where tokens come from, and the statement that draws them.
#[derive(Debug)]
pub(super) struct Tokens {
    source: TokenSource,
    statement: Arc<str>,
}

impl Tokens {
    pub(super) fn statement(&self) -> Arc<str> {
        Arc::clone(&self.statement)
    }
}

impl Link {
    /// Looks at what tokens are drawn from. After a crash or a promotion their base is raised here,
    /// before the first lock of the session.
    pub(super) async fn prepare_tokens(&mut self, fencing: &Fencing) -> Result<(), Error> {
        let listener = self.listener().map_err(|fault| fault.error(None))?;
        let source = fencing.open(listener, BACKEND).await?;
        let statement = statement::with_tokens(&source).into();
        let kind = source.kind();
        self.tokens = Some(Tokens { source, statement });
        if kind == TokenKind::Sequence {
            let raised = self.raise().await;
            raised.map_err(|fault| fault.error(self.token_source()))?;
        }
        Ok(())
    }

    pub(crate) fn token_source(&self) -> Option<&TokenSource> {
        self.tokens.as_ref().map(|tokens| &tokens.source)
    }

    /// Locks that were taken and have no token: the base was gone, or is used up.
    pub(super) async fn draw_missing(
        &mut self,
        batch: &Batch,
        outcomes: &mut [Outcome],
    ) -> Result<(), Fault> {
        let rows = batch.rows.iter().zip(outcomes);
        let mut missing: Vec<_> = rows
            .filter(|(row, outcome)| outcome.grants(row.step) && outcome.token.is_none())
            .map(|(_, outcome)| outcome)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let Some(tokens) = &self.tokens else {
            return Ok(());
        };
        let nothing = || Err(Fault::Statement(TokenSource::nothing_drawn()));
        if tokens.source.kind() != TokenKind::Sequence {
            return nothing();
        }
        let draw = tokens.source.draw(missing.len());
        self.raise().await?;
        let limit = self.limit;
        let drawn = sqlx::raw_sql(AssertSqlSafe(draw));
        let drawn = bounded(limit, drawn.fetch_all(self.listener()?)).await?;
        let mut drawn = drawn.iter().map(|row| TokenSource::token(row, 0));
        for outcome in &mut missing {
            outcome.token = drawn.next().transpose().map_err(undecodable)?.flatten();
        }
        if missing.iter().all(|outcome| outcome.token.is_some()) {
            Ok(())
        } else {
            nothing()
        }
    }

    async fn raise(&mut self) -> Result<(), Fault> {
        let Some(tokens) = &self.tokens else {
            return Ok(());
        };
        let (limit, raise) = (self.limit, tokens.source.raise());
        let query = sqlx::raw_sql(AssertSqlSafe(raise));
        bounded(limit, query.execute(self.listener()?)).await?;
        Ok(())
    }
}

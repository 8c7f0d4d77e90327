use std::sync::Arc;

use sqlock_core::{Error, FencingToken, Result};
use sqlx::{Executor, Postgres, Row};

use super::{
    Fencing, fault,
    look::Look,
    names::{Literal, Names},
};
use crate::Failure;

/// So many tokens are covered by one durable write.
const BLOCK: i64 = 1 << 28;

/// What a token is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenKind {
    /// An unlogged sequence, on top of a base. From PostgreSQL 15 on.
    Sequence,
    /// The durable row: each draw is a commit.
    Row,
}

/// For backends: the SQL that draws tokens, of tables that were found to be as they should be.
///
/// A token must be drawn after its key is granted, or a later holder could have a lower one.
#[derive(Debug, Clone)]
pub struct TokenSource {
    names: Names,
    kind: TokenKind,
}

impl Fencing {
    /// For backends: looks at the tables, in one round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Fencing`] where they are not there, or not as they should be; otherwise as the
    /// connection's.
    pub async fn open<'c>(
        &self,
        connection: impl Executor<'c, Database = Postgres>,
        backend: &'static str,
    ) -> Result<TokenSource> {
        let look = Look::take(connection, &self.names).await;
        let look = look
            .map_err(|error| fault::error(&self.names, backend, "connect", &Failure::of(error)))?;
        let kind = look.kind().map_err(|fault| Error::Fencing {
            backend,
            fault,
            source: None,
        })?;
        Ok(TokenSource {
            names: self.names.clone(),
            kind,
        })
    }
}

impl TokenSource {
    /// What a token is made from.
    #[must_use]
    pub fn kind(&self) -> TokenKind {
        self.kind
    }

    /// For [`TokenKind::Sequence`]: an expression that draws a token whenever it is evaluated, and is
    /// NULL where [`raise`](Self::raise) must come first. Nothing in it depends on the
    /// `search_path`.
    #[must_use]
    pub fn next_token(&self) -> String {
        format!(
            "{} operator(pg_catalog.+) pg_catalog.nextval({}::pg_catalog.regclass)",
            self.of_now("base"),
            Literal(&self.names.sequence)
        )
    }

    /// For [`TokenKind::Sequence`]: an expression for the highest token that may be used before
    /// [`raise`](Self::raise).
    #[must_use]
    pub fn up_to(&self) -> String {
        self.of_now("up_to")
    }

    /// Gone with the sequence, where that was reset; and not of another server, or of a copy.
    fn of_now(&self, column: &str) -> String {
        format!(
            "(select m.{column} from {} as m \
             where m.relation operator(pg_catalog.=) m.tableoid \
             and m.started operator(pg_catalog.=) pg_catalog.pg_postmaster_start_time())",
            self.names.now
        )
    }

    /// For [`TokenKind::Row`]: a statement that adds the count `n.n` of a relation `n` to the row,
    /// and returns the last of so many tokens. Its commit must be waited for. The `search_path` must
    /// be `pg_catalog`.
    #[must_use]
    pub fn advance_row(&self) -> String {
        format!(
            "update {} as f set reserved = {} + n.n from n \
             where n.n > 0 and set_config('synchronous_commit', 'on', true) is not null \
             returning f.reserved",
            self.names.durable,
            start("false")
        )
    }

    /// For [`TokenKind::Row`]: one message of the simple protocol that draws one token, whose last
    /// row has it.
    #[must_use]
    pub fn draw_from_row(&self) -> String {
        format!(
            "set transaction isolation level read committed; \
             set local search_path = pg_catalog; \
             with n as (select 1 as n) {}",
            self.advance_row()
        )
    }

    /// For [`TokenKind::Sequence`]: puts the base above all tokens that were ever given, where it is
    /// gone or used up. One message of the simple protocol, to be sent outside of a transaction.
    /// Many may do so at once.
    #[must_use]
    pub fn raise(&self) -> String {
        let Names {
            durable,
            now,
            sequence,
            ..
        } = &self.names;
        let start = start(&format!(
            "exists (select from {now} as m where m.relation <> m.tableoid)"
        ));
        // who waited for the row sees what the one before has done
        format!(
            "set transaction isolation level read committed;
             set local search_path = pg_catalog;
             set local synchronous_commit = on;
             select from {durable} for update;
             with seq as (select last_value from {sequence}),
               good as (
                 select from {now} as m, seq
                 where m.relation = m.tableoid and m.started = pg_postmaster_start_time()
                   and m.base + seq.last_value < m.up_to),
               raised as (
                 update {durable} as f set reserved = {start} + {BLOCK}
                 where not exists (select from good) returning f.reserved)
             insert into {now} as m (base, up_to, started, relation)
             select raised.reserved - {BLOCK} - seq.last_value + 1, raised.reserved,
               pg_postmaster_start_time(), {now_literal}::regclass::oid
             from raised, seq
             on conflict (only_row) do update set base = excluded.base, up_to = excluded.up_to,
               started = excluded.started, relation = excluded.relation",
            now_literal = Literal(now),
        )
    }

    /// For [`TokenKind::Sequence`]: a statement that draws `count` tokens, and gives rows of
    /// [`next_token`](Self::next_token) and [`up_to`](Self::up_to).
    #[must_use]
    pub fn draw(&self, count: usize) -> String {
        format!(
            "select {}, {} from pg_catalog.generate_series(1, {count})",
            self.next_token(),
            self.up_to()
        )
    }

    /// The token in two columns of a row, [`next_token`](Self::next_token) and
    /// [`up_to`](Self::up_to), if it may be used.
    ///
    /// # Errors
    ///
    /// Where the columns are no numbers.
    pub fn token(row: &sqlx::postgres::PgRow, index: usize) -> sqlx::Result<Option<FencingToken>> {
        let token: Option<i64> = row.try_get(index)?;
        let up_to: Option<i64> = row.try_get(index + 1)?;
        let usable = token.filter(|token| up_to.is_some_and(|up_to| *token <= up_to));
        Ok(usable.map(FencingToken::new))
    }

    /// The error for those who wanted a token, where a statement that draws has failed.
    #[must_use]
    pub fn error(
        &self,
        backend: &'static str,
        operation: &'static str,
        failure: &Failure,
    ) -> Error {
        fault::error(&self.names, backend, operation, failure)
    }

    /// What failed where nothing was drawn although the base was raised.
    #[must_use]
    pub fn nothing_drawn() -> Failure {
        Failure::Statement(Arc::new(sqlx::Error::RowNotFound))
    }
}

/// An expression for the timeline, which rises with every promotion. Any role may ask; the
/// `search_path` must be `pg_catalog`.
pub const TIMELINE: &str =
    "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";

/// A number that no token was given above, for the row `f`: the row's own; and, where the row may
/// have gone back, one that goes by the timeline and, within that, by the clock. The high 12 bits are
/// the timeline, which rises with every promotion; `is_copy` where the tables were restored, which
/// counts as one too. Then the time in seconds since 1970, with room for 524,288 tokens each.
fn start(is_copy: &str) -> String {
    format!(
        "greatest(f.reserved,
           (least(4095, greatest((f.reserved >> 51) + case when {is_copy} then 1 else 0 end,
             {TIMELINE})) << 51)
           + (least(4294967295, extract(epoch from clock_timestamp()))::bigint << 19))"
    )
}

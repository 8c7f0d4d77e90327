//! Fencing tokens for advisory locks.
//!
//! A token comes from an unlogged sequence, which costs neither WAL nor a transaction id, on top of a
//! base. The sequence is reset by a crash and by a promotion; so the base stands in an unlogged table
//! beside it, is gone whenever the sequence may have been reset, and is made anew above all that was
//! ever given, by a durable row. Before PostgreSQL 15, which has no unlogged sequences, the tokens
//! are the durable row's numbers, at the price of a commit.

mod fault;
mod look;
mod names;
mod schema;
mod source;

use sqlock_core::Result;
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

pub use source::{TIMELINE, TokenKind, TokenSource};

use crate::{Failure, connect_options, plain_options};
use names::Names;

/// Fencing tokens for advisory locks: where the tables are that they are drawn from.
///
/// They are made by [`create`](Self::create), or by the SQL that the crate `sqlock-postgres` ships
/// in `migrations/`. A role that takes locks needs usage on the schema, select, insert and update on
/// the tables, and usage and select on the sequence.
///
/// ```no_run
/// # async fn example() -> sqlock_core::Result<()> {
/// use sqlock_postgres::Fencing;
///
/// let fencing = Fencing::new().schema("locks")?;
/// fencing.create("postgres://owner@db.internal/app").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Fencing {
    names: Names,
}

impl Default for Fencing {
    fn default() -> Self {
        Self {
            names: Names::in_schema("public"),
        }
    }
}

impl Fencing {
    /// In the schema `public`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema of the tables, which must be there. The default is `public`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`](sqlock_core::Error::InvalidOption) where that cannot be a name.
    pub fn schema(self, schema: &str) -> Result<Self> {
        names::check(schema)?;
        Ok(Self {
            names: Names::in_schema(schema),
        })
    }

    /// Makes the tables where they are missing, on the server of this URL. Many may do so at once.
    /// Those that are there are left as they are, so that this needs no right to make any.
    ///
    /// # Errors
    ///
    /// [`Error::Fencing`](sqlock_core::Error::Fencing) where tables of these names have another
    /// shape, or the role may not create them; otherwise as a connection's.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is done, or it is not.
    pub async fn create(&self, url: &str) -> Result<()> {
        self.create_with(connect_options(url)?).await
    }

    /// As [`create`](Self::create), with options of sqlx.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    ///
    /// # Cancel safety
    ///
    /// As [`create`](Self::create).
    pub async fn create_with(&self, options: PgConnectOptions) -> Result<()> {
        let connected = plain_options(options).connect().await;
        let mut connection: PgConnection =
            connected.map_err(|error| Failure::of(error).error(schema::NAME, "connect"))?;
        schema::create(&mut connection, &self.names).await?;
        // the server notices by itself
        connection.close().await.ok();
        Ok(())
    }
}

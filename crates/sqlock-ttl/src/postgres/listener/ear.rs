//! The connection itself.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::runtime::Handle;

use super::super::{connection, waiting::CHANNEL};

/// Before what is sent to find out whether anything comes through; a hash does not begin so.
const PROOF: &str = "proof ";

/// A connection of its own, which is closed by the drop.
pub(super) struct Ear {
    listener: Option<PgListener>,
    pool: PgPool,
    runtime: Handle,
}

impl Ear {
    pub(super) async fn open(options: &PgConnectOptions, limit: Duration) -> sqlx::Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(limit)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_release(|_, _| Box::pin(async { Ok(false) }))
            .connect_lazy_with(options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        // a new connection has missed something, and must be told from the old one
        listener.eager_reconnect(false);
        Ok(Self {
            listener: Some(listener),
            pool,
            runtime: Handle::current(),
        })
    }

    pub(super) async fn listen(&mut self) -> sqlx::Result<()> {
        self.listener()?.listen(CHANNEL).await
    }

    /// Sends a notification as others do, and waits until it has come.
    pub(super) async fn prove(&mut self, requests: &PgPool) -> sqlx::Result<()> {
        let proof = format!("{PROOF}{:032x}", rand::random::<u128>());
        let notify = format!("select pg_catalog.pg_notify('{CHANNEL}', '{proof}')::text");
        connection::run(requests, notify).await?;
        while self.payload().await? != proof {}
        Ok(())
    }

    /// The hash of the next row that came free. What cannot be read is somebody else's.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub(super) async fn next(&mut self) -> sqlx::Result<Option<u64>> {
        let payload = self.payload().await?;
        Ok(u64::from_str_radix(&payload, 16).ok())
    }

    pub(super) async fn ask(&mut self) -> sqlx::Result<()> {
        let query = sqlx::raw_sql(AssertSqlSafe("select 1"));
        query.execute(self.listener()?).await.map(drop)
    }

    async fn payload(&mut self) -> sqlx::Result<String> {
        let notification = self.listener()?.try_recv().await?.ok_or_else(closed)?;
        Ok(notification.payload().to_owned())
    }

    fn listener(&mut self) -> sqlx::Result<&mut PgListener> {
        self.listener.as_mut().ok_or_else(closed)
    }
}

fn closed() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into())
}

impl Drop for Ear {
    fn drop(&mut self) {
        // the listener's drop spawns, which outside of a runtime panics
        let _runtime = self.runtime.enter();
        drop(self.listener.take());
        let pool = self.pool.clone();
        drop(self.runtime.spawn(async move { pool.close().await }));
    }
}

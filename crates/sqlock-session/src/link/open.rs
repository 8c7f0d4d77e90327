//! Opening a session.

use std::{collections::HashMap, future::Future};

use sqlock_core::Error;
use sqlock_postgres::{Failure, ServerFacts, preflight::Preflight, shielded};
use sqlx::{
    Connection, PgConnection,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{runtime::Handle, time::timeout};

use super::Link;
use crate::{BACKEND, options::SessionOptions, preflight, settings};

impl Link {
    /// Opens the first session of a backend, after a look at the server and at the way to it.
    pub(crate) async fn open_first(
        options: &SessionOptions,
        connect: &PgConnectOptions,
    ) -> Result<Self, Error> {
        match options.preflight {
            Preflight::Skip => Self::open(options, connect).await,
            _ => {
                preflight::check(options, connect).await?;
                Self::open_listener(options, connect).await
            }
        }
    }

    /// Opens a session, by a connection that is tried directly first: the listener's pool would
    /// hide why it cannot connect until its time runs out.
    pub(crate) async fn open(
        options: &SessionOptions,
        connect: &PgConnectOptions,
    ) -> Result<Self, Error> {
        let first = async {
            let mut direct = PgConnection::connect_with(connect).await?;
            settings::prepare(&mut direct).await?;
            let facts = ServerFacts::look(&mut direct).await?;
            direct.close().await?;
            Ok(facts)
        };
        let facts = in_time(options, first).await?;
        if facts.is_standby {
            return Err(Error::Standby);
        }
        Self::open_listener(options, connect).await
    }

    async fn open_listener(
        options: &SessionOptions,
        connect: &PgConnectOptions,
    ) -> Result<Self, Error> {
        let mut link = in_time(options, Self::listen_on_pool(options, connect)).await?;
        // through a balancer this may be another server than the one that was looked at
        if link.facts.is_standby {
            return Err(Error::Standby);
        }
        if let Some(fencing) = &options.fencing {
            let prepared = timeout(options.connect_timeout, link.prepare_tokens(fencing)).await;
            prepared.map_err(|_| preflight::too_late(options))??;
        }
        Ok(link)
    }

    async fn listen_on_pool(
        options: &SessionOptions,
        connect: &PgConnectOptions,
    ) -> sqlx::Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(options.connect_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            // what comes back from the listener holds locks
            .after_release(|_, _| Box::pin(async { Ok(false) }))
            .connect_lazy_with(connect.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        settings::prepare(&mut listener).await?;
        settings::apply(&mut listener, options, connect).await?;
        let facts = ServerFacts::look(&mut listener).await?;
        Ok(Self {
            listener: Some(listener),
            pool,
            facts,
            limit: options.heartbeat.limit,
            is_listening: false,
            tokens: None,
            lone: HashMap::new(),
            runtime: Handle::current(),
        })
    }
}

/// What opens a session, within the time that the options give it.
async fn in_time<T>(
    options: &SessionOptions,
    opening: impl Future<Output = sqlx::Result<T>>,
) -> Result<T, Error> {
    match timeout(options.connect_timeout, shielded(opening)).await {
        Ok(opened) => opened
            .flatten()
            .map_err(|error| Failure::of(error).error(BACKEND, "connect")),
        Err(_) => Err(preflight::too_late(options)),
    }
}

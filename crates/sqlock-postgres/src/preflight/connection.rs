//! Connections of the preflight's own, which nobody else uses.

use std::{future::Future, time::Duration};

use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use crate::shielded;

/// A good-bye that takes longer is not waited for.
const GOOD_BYE: Duration = Duration::from_secs(1);

pub(super) async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    shielded(PgConnection::connect_with(options))
        .await
        .flatten()
}

pub(super) trait End {
    /// Closes the connection, so that its place on the server is free soon.
    fn end(self) -> impl Future<Output = ()> + Send;
}

impl End for PgConnection {
    async fn end(self) {
        timeout(GOOD_BYE, self.close()).await.ok();
    }
}

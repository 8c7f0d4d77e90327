//! How the loss of a lock is learned of while the command runs.

use std::{future::Future, time::Duration};

use sqlock::{Error, Held, LossCause, session::SessionHeld, ttl::TtlHeld, xact::XactHeld};
use tokio::time::{sleep, timeout};

/// How often a transaction is asked whether it is still there.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long its server may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) trait Watch: Held {
    /// Ends when the lock is lost, and tells why. Cancel safe.
    fn watch(&mut self) -> impl Future<Output = Error>;
}

/// Its owner reads the connection.
impl Watch for SessionHeld {
    async fn watch(&mut self) -> Error {
        self.lost().wait().await
    }
}

/// Its keeper renews it.
impl Watch for TtlHeld {
    async fn watch(&mut self) -> Error {
        self.lost().wait().await
    }
}

/// Nobody reads its connection, so it is asked. That also keeps time limits for idle transactions
/// from ending it.
impl Watch for XactHeld {
    async fn watch(&mut self) -> Error {
        loop {
            sleep(INTERVAL).await;
            match timeout(LIMIT, self.probe()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(_) => {
                    return Error::Lost {
                        key: self.keys()[0].clone(),
                        cause: LossCause::Unresponsive,
                    };
                }
            }
        }
    }
}

//! A connection that hears of releases.
//!
//! It lives in a task of its own, for as long as somebody in the process waits. No lock depends on
//! it: while it is away, those who wait look as often as those who have none.

mod ear;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlock_core::{Error, Result};
use sqlock_postgres::{Failure, shielded};
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};

use super::NAME;
use crate::store::{Heard, Listening};
use ear::Ear;

/// A listener that hears nothing for so long asks whether its server is still there.
const SILENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A way that leads nowhere will rarely lead somewhere a moment later.
const NO_WAY_PAUSE: Duration = Duration::from_secs(60);

/// The way to a server by which notifications come.
#[derive(Clone)]
pub(crate) struct Route {
    options: PgConnectOptions,
    limit: Duration,
    /// Notifications have come by it.
    is_proven: Arc<AtomicBool>,
}

/// Why nothing is heard.
#[derive(Debug)]
enum Trouble {
    Failed(sqlx::Error),
    /// Notifications do not come through.
    NoWay,
}

impl Route {
    pub(crate) fn new(options: PgConnectOptions, limit: Duration) -> Self {
        Self {
            options,
            limit,
            is_proven: Arc::default(),
        }
    }

    /// Starts to listen, on the runtime that is current. `requests` is how others notify.
    pub(super) fn listen(&self, requests: &PgPool) -> Listening {
        let (sender, heard) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (route, requests) = (self.clone(), requests.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = stopped => {}
                () = route.hear(&requests, &sender) => {}
            }
        });
        Listening { heard, stop }
    }

    /// Whether notifications come by this way.
    pub(super) async fn check(&self, requests: &PgPool) -> Result<()> {
        self.is_proven.store(false, Ordering::Relaxed);
        self.open(requests).await.map(drop).map_err(Trouble::error)
    }

    async fn hear(&self, requests: &PgPool, heard: &mpsc::UnboundedSender<Heard>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let trouble = match self.open(requests).await {
                Ok(mut ear) => {
                    heard.send(Heard::Listening).ok();
                    pause = FIRST_PAUSE;
                    let trouble = self.attend(&mut ear, heard).await;
                    heard.send(Heard::Deaf).ok();
                    trouble
                }
                Err(trouble) => trouble,
            };
            if matches!(trouble, Trouble::NoWay) {
                pause = NO_WAY_PAUSE;
            }
            tracing::warn!(
                backend = NAME, reason = %trouble.error(),
                "those who wait are not woken, and learn of releases by looking"
            );
            sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn open(&self, requests: &PgPool) -> Result<Ear, Trouble> {
        let opening = async {
            let mut ear = Ear::open(&self.options, self.limit).await?;
            // acknowledged: from here on nothing is missed
            ear.listen().await?;
            Ok::<_, sqlx::Error>(ear)
        };
        let mut ear = timeout(self.limit, shielded(opening))
            .await
            .map_err(|_| no_answer())?
            .flatten()?;
        if !self.is_proven.load(Ordering::Relaxed) {
            match timeout(self.limit, shielded(ear.prove(requests))).await {
                Ok(answer) => answer.flatten()?,
                Err(_) => return Err(Trouble::NoWay),
            }
            self.is_proven.store(true, Ordering::Relaxed);
        }
        Ok(ear)
    }

    /// Until the connection is at its end.
    async fn attend(&self, ear: &mut Ear, heard: &mpsc::UnboundedSender<Heard>) -> Trouble {
        loop {
            match timeout(SILENCE, shielded(ear.next()))
                .await
                .map(Result::flatten)
            {
                Ok(Ok(Some(hash))) => {
                    heard.send(Heard::Free(hash)).ok();
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => return Trouble::Failed(error),
                Err(_) => match timeout(self.limit, shielded(ear.ask()))
                    .await
                    .map(Result::flatten)
                {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Trouble::Failed(error),
                    Err(_) => return no_answer(),
                },
            }
        }
    }
}

fn no_answer() -> Trouble {
    Trouble::Failed(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}

impl Trouble {
    fn error(self) -> Error {
        match self {
            Self::Failed(error) => Failure::of(error).error(NAME, "listen"),
            Self::NoWay => Error::InvalidOption {
                option: "listen_on",
                reason: "no notification came through it: it must lead to the server and database \
                         of the leases directly, not through a transaction pooler"
                    .to_owned(),
            },
        }
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error)
    }
}

/// Without the options, which hold a password.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").finish_non_exhaustive()
    }
}

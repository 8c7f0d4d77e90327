use async_trait::async_trait;
use sqlock::Mode;
use sqlock_tests::TestDatabase;
use sqlx::{
    Either, PgConnection,
    postgres::{PgAdvisoryLock, PgAdvisoryLockGuard},
};
use tokio::task::JoinHandle;

use crate::Neighbour;

type Guard = PgAdvisoryLockGuard<PgConnection>;

/// sqlx's `PgAdvisoryLock`, which knows exclusive locks only.
pub(crate) enum SqlxLock {
    Free(PgConnection),
    Waiting(JoinHandle<Guard>),
    Held(Guard),
    /// In the midst of a change.
    Between,
}

impl SqlxLock {
    pub(crate) async fn connect(database: &TestDatabase) -> Self {
        Self::Free(database.connect().await)
    }

    fn take_connection(&mut self) -> PgConnection {
        match std::mem::replace(self, Self::Between) {
            Self::Free(connection) => connection,
            _ => panic!("it holds a lock, or waits for one"),
        }
    }
}

#[async_trait]
impl Neighbour for SqlxLock {
    async fn try_acquire(&mut self, name: &str, _mode: Mode) -> bool {
        let connection = self.take_connection();
        let answer = PgAdvisoryLock::new(name).try_acquire(connection).await;
        *self = match answer.unwrap() {
            Either::Left(guard) => Self::Held(guard),
            Either::Right(connection) => Self::Free(connection),
        };
        matches!(self, Self::Held(_))
    }

    async fn begin_to_wait(&mut self, name: &str, _mode: Mode) {
        let connection = self.take_connection();
        let lock = PgAdvisoryLock::new(name);
        let waiting = async move { lock.acquire(connection).await.unwrap() };
        *self = Self::Waiting(tokio::spawn(waiting));
    }

    async fn granted(&mut self) {
        let Self::Waiting(waiting) = self else {
            panic!("it waits for nothing");
        };
        *self = Self::Held(waiting.await.unwrap());
    }

    async fn release(&mut self) {
        let Self::Held(guard) = std::mem::replace(self, Self::Between) else {
            panic!("it holds no lock");
        };
        *self = Self::Free(guard.release_now().await.unwrap());
    }
}

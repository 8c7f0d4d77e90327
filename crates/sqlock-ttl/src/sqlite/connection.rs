//! Transactions on a connection that is kept.

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::{Mutex, MutexGuard};

use super::{failure::Failure, file::LeaseFile};

/// One connection, opened when it is needed. It lives on a thread of its own and on no runtime.
#[derive(Debug)]
pub(super) struct Slot {
    file: LeaseFile,
    options: SqliteConnectOptions,
    content: Mutex<Content>,
}

#[derive(Debug)]
enum Content {
    Empty,
    Connection(SqliteConnection),
    Closed,
}

impl Slot {
    pub(super) fn new(file: LeaseFile, options: SqliteConnectOptions) -> Self {
        Self {
            file,
            options,
            content: Mutex::new(Content::Empty),
        }
    }

    /// The connection, outside any transaction.
    pub(super) async fn borrow(&self) -> Result<Borrowed<'_>, Failure> {
        let mut content = self.content.lock().await;
        self.check_file()?;
        let connection = match std::mem::replace(&mut *content, Content::Empty) {
            Content::Connection(connection) => connection,
            Content::Empty => self.options.connect().await?,
            Content::Closed => {
                *content = Content::Closed;
                return Err(Failure::Closed);
            }
        };
        Ok(Borrowed {
            slot: self,
            content,
            connection,
        })
    }

    fn check_file(&self) -> Result<(), Failure> {
        if self.file.is_in_place() {
            return Ok(());
        }
        Err(Failure::Replaced(self.file.path().to_owned()))
    }

    pub(super) async fn close(&self) {
        let mut content = self.content.lock().await;
        if let Content::Connection(connection) = std::mem::replace(&mut *content, Content::Closed) {
            // nothing is under way on it, and the file stays as it is
            connection.close().await.ok();
        }
    }
}

/// A connection that is closed unless it is given back: nobody else gets one within a transaction.
pub(super) struct Borrowed<'a> {
    slot: &'a Slot,
    content: MutexGuard<'a, Content>,
    pub(super) connection: SqliteConnection,
}

impl Borrowed<'_> {
    /// Begins by taking the write lock: a transaction that reads first and writes later could not
    /// be given it any more.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        sqlx::query("begin immediate")
            .execute(&mut self.connection)
            .await?;
        // it may have taken long
        self.slot.check_file()
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        sqlx::query("commit").execute(&mut self.connection).await?;
        Ok(())
    }

    /// Outside a transaction, and fit for others.
    pub(super) fn give_back(mut self) {
        *self.content = Content::Connection(self.connection);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The file is not locked by what was given up midway.
    #[tokio::test]
    async fn a_transaction_that_is_dropped_is_rolled_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = LeaseFile::prepare(&directory.path().join("locks.db")).unwrap();
        let options = SqliteConnectOptions::new()
            .filename(file.path())
            .busy_timeout(Duration::from_secs(10));
        let (one, other) = (
            Slot::new(file.clone(), options.clone()),
            Slot::new(file, options),
        );
        let mut borrowed = one.borrow().await.unwrap();
        borrowed.begin().await.unwrap();
        sqlx::query("create table t (x)")
            .execute(&mut borrowed.connection)
            .await
            .unwrap();
        drop(borrowed);
        for slot in [&other, &one] {
            let mut borrowed = slot.borrow().await.unwrap();
            borrowed.begin().await.unwrap();
            let look = sqlx::query("select 1 from t").execute(&mut borrowed.connection);
            look.await.unwrap_err();
            borrowed.commit().await.unwrap();
            borrowed.give_back();
        }
        one.close().await;
        assert!(matches!(one.borrow().await, Err(Failure::Closed)));
    }
}

//! What went wrong, and what it means ([result codes](https://www.sqlite.org/rescode.html)).

use std::{error, fmt, path::PathBuf};

use sqlock_core::{BoxError, Error, Result};

use super::NAME;

#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(sqlx::Error),
    /// Another file is at this path, or none.
    Replaced(PathBuf),
    Closed,
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failure {
    pub(super) fn error(self, operation: &'static str) -> Error {
        let source: BoxError = match self {
            Self::Closed => return Error::ShutDown { backend: NAME },
            Self::Replaced(path) => format!(
                "{} was removed or replaced while it was in use; its tokens went with it; let all \
                 that use it open it anew",
                path.display()
            )
            .into(),
            Self::Sqlite(error) => match meaning(&error) {
                Meaning::Passes => {
                    return Error::Unavailable {
                        backend: NAME,
                        source: error.into(),
                    };
                }
                Meaning::Needs(advice) => Box::new(Advised { advice, error }),
                Meaning::Unknown => error.into(),
            },
        };
        Error::Backend {
            backend: NAME,
            operation,
            source,
        }
    }
}

/// Does `work`, and makes its error ours.
pub(super) async fn told<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T> {
    work.await.map_err(|failure| failure.error(operation))
}

enum Meaning {
    /// It may go by itself.
    Passes,
    Needs(&'static str),
    Unknown,
}

fn meaning(error: &sqlx::Error) -> Meaning {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .and_then(|code| code.parse::<i32>().ok());
    let Some(code) = code else {
        return match error {
            sqlx::Error::WorkerCrashed => Meaning::Passes,
            _ => Meaning::Unknown,
        };
    };
    // what more exactly it was is in the higher bits
    match code & 0xff {
        // busy, locked, and a race for the log's locks that was lost too often
        5 | 6 | 15 => Meaning::Passes,
        3 | 8 => Meaning::Needs(
            "the file cannot be written; it, its directory and the files `-wal` and `-shm` beside \
             it must be writable for this process",
        ),
        10 => Meaning::Needs("the system failed to read or write the file; look at its disk"),
        11 => Meaning::Needs(
            "the file is damaged; stop all that use it, and put it, `-wal` and `-shm` aside; \
             tokens begin anew in the next one",
        ),
        13 => Meaning::Needs("the disk is full; no lease can be taken or renewed until it is not"),
        14 => Meaning::Needs(
            "the file cannot be opened; it and its directory must be readable and writable for \
             this process",
        ),
        26 => Meaning::Needs("the file is something else; name another"),
        _ => Meaning::Unknown,
    }
}

/// What to do, and about what.
#[derive(Debug)]
struct Advised {
    advice: &'static str,
    error: sqlx::Error,
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.advice)
    }
}

impl error::Error for Advised {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, SqliteConnection};

    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_told_as_such() {
        let mut connection = SqliteConnection::connect(":memory:").await.unwrap();
        sqlx::raw_sql("pragma max_page_count = 3; create table t (x)")
            .execute(&mut connection)
            .await
            .unwrap();
        let fill = sqlx::query("insert into t values (zeroblob(100000))");
        let full = fill.execute(&mut connection).await.unwrap_err();
        let error = Failure::from(full).error("acquire");
        assert!(!error.is_retryable());
        let source = error::Error::source(&error).unwrap();
        assert!(source.to_string().starts_with("the disk is full"));
        assert!(source.source().unwrap().to_string().contains("full"));
    }
}

use sqlock_core::{Error, Result};

use super::{LockSupport, Pooler, Report, Role};

impl Report {
    /// Refuses a server, or a way to it, on which session locks would not be what they say.
    ///
    /// Where the look for a pooler could not be made, or an unknown engine could not be tested, they
    /// are not refused: see [`doubt`](Self::doubt).
    ///
    /// # Errors
    ///
    /// [`Error::Standby`], [`Error::UnsupportedServer`] or [`Error::PoolerRefused`], which say what
    /// to do.
    pub fn check_session_locks(&self) -> Result<()> {
        self.check_server(&self.session_locks)?;
        match &self.pooler {
            Pooler::Transaction { evidence } | Pooler::Statement { evidence } => {
                Err(Error::PoolerRefused {
                    evidence: evidence.to_string(),
                })
            }
            Pooler::SeveralServers { one, other } => Err(Error::UnsupportedServer {
                engine: "several servers".to_owned(),
                reason: format!(
                    "two connections reached processes {one} and {other} of two servers, each with \
                     locks of its own; connect to one of them, not to a balancer"
                ),
            }),
            Pooler::NotSeen | Pooler::Session | Pooler::NotLooked { .. } => Ok(()),
        }
    }

    /// Refuses a server on which locks of transactions would not be what they say.
    ///
    /// # Errors
    ///
    /// [`Error::Standby`] or [`Error::UnsupportedServer`].
    pub fn check_transaction_locks(&self) -> Result<()> {
        self.check_server(&self.transaction_locks)
    }

    /// What could not be found out about session locks, so that they rest on the user's word.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        if let LockSupport::Untested { reason } = &self.session_locks {
            let engine = self.engine_and_version();
            return Some(format!(
                "the locks of this server ({engine}) could not be tested: {reason}"
            ));
        }
        match &self.pooler {
            Pooler::NotLooked { reason } => Some(format!(
                "whether there is a transaction pooler could not be seen: {reason}"
            )),
            _ => None,
        }
    }

    fn check_server(&self, locks: &LockSupport) -> Result<()> {
        if self.role == Some(Role::Standby) {
            return Err(Error::Standby);
        }
        match locks {
            LockSupport::Absent { reason } => Err(Error::UnsupportedServer {
                engine: self.engine_and_version(),
                reason: reason.clone(),
            }),
            LockSupport::Genuine | LockSupport::Tested | LockSupport::Untested { .. } => Ok(()),
        }
    }

    fn engine_and_version(&self) -> String {
        match self.version.text.as_str() {
            "" => self.engine.name().to_owned(),
            text => text.to_owned(),
        }
    }
}

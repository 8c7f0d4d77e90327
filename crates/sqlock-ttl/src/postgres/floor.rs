//! What no token is below.
//!
//! A standby that was promoted may lack the last commits of its primary, and with them the tokens of
//! rows. So tokens go by the timeline in their high 12 bits, which rises with every promotion, and by
//! the clock below: as those of advisory locks do. A row that comes from a server of a higher
//! timeline, by a dump or an upgrade, keeps that.

use std::sync::atomic::{AtomicBool, Ordering};

use sqlock_postgres::TIMELINE;
use sqlx::{PgPool, error::DatabaseError};

use super::{connection, statements::BEGINNING};

/// What it is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// The timeline and the clock.
    Timeline,
    /// The clock alone, where a server does not tell its timeline.
    Clock,
}

impl Floor {
    /// An expression, of those for the row's last token and for the time. The timeline is asked for
    /// once a statement.
    pub(super) fn sql(self, token: &str, now: &str) -> String {
        let high = format!("{token} >> 51");
        let high = match self {
            Self::Timeline => format!("greatest({high}, (select least(4095, {TIMELINE})))"),
            Self::Clock => high,
        };
        // milliseconds have 42 bits until 2109, with room for 512 tokens each
        format!(
            "(({high}) << 51) + (greatest(0, least(4398046511103, \
             (extract(epoch from {now}) * 1000)::bigint)) << 9)"
        )
    }
}

/// Which it is with this server.
#[derive(Debug, Default)]
pub(super) struct Floors {
    is_hidden: AtomicBool,
}

impl Floors {
    pub(super) fn now(&self) -> Floor {
        if self.is_hidden.load(Ordering::Relaxed) {
            Floor::Clock
        } else {
            Floor::Timeline
        }
    }

    pub(super) fn timeline_is_hidden(&self) {
        self.is_hidden.store(true, Ordering::Relaxed);
        tracing::debug!("the server does not tell its timeline; tokens go by its clock alone");
    }
}

/// No such function, not allowed, not supported, not with these settings.
const HIDDEN: [&str; 4] = ["42883", "42501", "0A000", "55000"];

/// Whether it is the timeline for which a statement failed: services that share their storage, and
/// engines that are not PostgreSQL, may have none to tell.
pub(super) async fn hides_timeline(pool: &PgPool, error: &sqlx::Error) -> bool {
    if !is_of_hiding(error) {
        return false;
    }
    let question = connection::run(pool, format!("{BEGINNING}select {TIMELINE}")).await;
    question.is_err_and(|error| is_of_hiding(&error))
}

fn is_of_hiding(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| HIDDEN.contains(&&*code))
}

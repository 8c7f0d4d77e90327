//! The settings that matter to locks.

use sqlx::{PgConnection, Row};

use super::ask::{is_of, is_refusal, rows};

/// A setting of the server, as the connection that asked has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, in its unit.
    pub value: String,
    /// Its unit, where it has one: `ms`, `s` …
    pub unit: Option<String>,
}

/// In the order in which a report shows them.
const NAMES: [&str; 18] = [
    "max_connections",
    "max_prepared_transactions",
    "max_locks_per_transaction",
    "client_connection_check_interval",
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "tcp_user_timeout",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
    "statement_timeout",
    "lock_timeout",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "synchronous_commit",
    "synchronous_standby_names",
    "fsync",
];

/// Those of [`NAMES`] that the server knows; none where it does not say.
pub(super) async fn read(connection: &mut PgConnection) -> sqlx::Result<Vec<Setting>> {
    let names = NAMES.map(|name| format!("'{name}'")).join(", ");
    let sql = format!(
        "select s.name, s.setting, s.unit from pg_catalog.pg_settings as s \
         where s.name operator(pg_catalog.=) any (array[{names}])"
    );
    let rows = match rows(connection, &sql).await {
        Err(error) if is_refusal(&error) || is_of(&error, &["57014"]) => return Ok(Vec::new()),
        rows => rows?,
    };
    let mut settings = Vec::with_capacity(rows.len());
    for row in rows {
        settings.push(Setting {
            name: row.try_get(0)?,
            value: row.try_get::<Option<String>, _>(1)?.unwrap_or_default(),
            unit: row.try_get(2)?,
        });
    }
    let place = |setting: &Setting| NAMES.iter().position(|name| *name == setting.name);
    settings.sort_by_key(place);
    Ok(settings)
}

/// Looks things up among the settings that were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a>(pub(super) &'a [Setting]);

impl<'a> Settings<'a> {
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        let setting = self.0.iter().find(|setting| setting.name == name)?;
        Some(&setting.value)
    }

    pub(super) fn number(self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// Of the whole server ([PostgreSQL manual, 20.12]).
    ///
    /// [PostgreSQL manual, 20.12]: https://www.postgresql.org/docs/current/runtime-config-locks.html
    pub(super) fn lock_capacity(self) -> Option<usize> {
        let connections = self.number("max_connections")?;
        let transactions = connections.saturating_add(self.number("max_prepared_transactions")?);
        let capacity = self
            .number("max_locks_per_transaction")?
            .saturating_mul(transactions);
        usize::try_from(capacity).ok()
    }
}

impl std::fmt::Display for Setting {
    /// The value, and its unit where it has one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{} {unit}", self.value),
            None => f.write_str(&self.value),
        }
    }
}

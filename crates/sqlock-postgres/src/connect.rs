use sqlock_core::{Error, Result};
use sqlx::{ConnectOptions, postgres::PgConnectOptions};

/// What `url` says, without what a pooler refuses at start-up.
///
/// # Errors
///
/// [`Error::InvalidOption`] where it is not a PostgreSQL URL. The URL itself is not repeated, since
/// it may hold a password.
///
/// ```
/// assert!(sqlock_postgres::connect_options("postgres://app@db.internal/app").is_ok());
/// assert!(sqlock_postgres::connect_options("mysql://app@db.internal/app").is_err());
/// ```
pub fn connect_options(url: &str) -> Result<PgConnectOptions> {
    let is_postgres = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    if !is_postgres {
        return Err(invalid("it must begin with postgres:// or postgresql://"));
    }
    let options: PgConnectOptions = url
        .parse()
        .map_err(|_| invalid("it is not of the form postgres://user@host:port/database"))?;
    Ok(plain_options(options))
}

/// Without statement logging, which would cost a call a lock, and without `extra_float_digits`,
/// which PgBouncer refuses at start-up.
#[must_use]
pub fn plain_options(options: PgConnectOptions) -> PgConnectOptions {
    options.extra_float_digits(None).disable_statement_logging()
}

fn invalid(reason: &str) -> Error {
    Error::InvalidOption {
        option: "url",
        reason: reason.to_owned(),
    }
}

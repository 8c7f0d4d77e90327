//! What a pooler refuses.

use sqlock_core::Error;

/// 08P01 also stands for other breaches of the protocol, and for a pooler's own limits: only the text
/// tells, which PgBouncer has in one language.
const UNSUPPORTED: &str = "unsupported startup parameter";
const STATEMENT_MODE: &str = "transaction blocks not allowed in statement pooling mode";

/// The error for a start-up parameter that the pooler does not let through, and which option to drop;
/// and for transactions where it has none.
pub(crate) fn refused_by_pooler(error: &sqlx::Error) -> Option<Error> {
    let error = error.as_database_error()?;
    let is_of_protocol = error.code().as_deref() == Some("08P01");
    match error.message() {
        message if is_of_protocol && message.starts_with(UNSUPPORTED) => {
            Some(refused_parameter(message))
        }
        message if is_of_protocol && message.starts_with(STATEMENT_MODE) => {
            Some(Error::UnsupportedServer {
                engine: "a pooler in statement mode".to_owned(),
                reason: "it refuses transactions; use its transaction mode, or another backend"
                    .to_owned(),
            })
        }
        _ => None,
    }
}

fn refused_parameter(message: &str) -> Error {
    let name = message.rsplit(':').next().unwrap_or_default().trim();
    let what_to_do = match name {
        "extra_float_digits" => "call extra_float_digits(None)",
        _ => "do not set it",
    };
    Error::InvalidOption {
        option: "start-up parameter",
        reason: format!(
            "the pooler refuses {name}; {what_to_do} on the PgConnectOptions, or add it to the \
             pooler's ignore_startup_parameters"
        ),
    }
}

//! What a pooler refuses at start-up.

use sqlock_core::Error;

/// 08P01 also stands for other breaches of the protocol, and for a pooler's own limits: only the text
/// tells, which PgBouncer has in one language.
const UNSUPPORTED: &str = "unsupported startup parameter";

/// The error for a start-up parameter that the pooler does not let through, and which option to drop.
pub(crate) fn refused_parameter(error: &sqlx::Error) -> Option<Error> {
    let error = error.as_database_error()?;
    if error.code().as_deref() != Some("08P01") || !error.message().starts_with(UNSUPPORTED) {
        return None;
    }
    let name = error
        .message()
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .trim();
    let what_to_do = match name {
        "extra_float_digits" => "call extra_float_digits(None)",
        _ => "do not set it",
    };
    Some(Error::InvalidOption {
        option: "start-up parameter",
        reason: format!(
            "the pooler refuses {name}; {what_to_do} on the PgConnectOptions, or add it to the \
             pooler's ignore_startup_parameters"
        ),
    })
}

use std::fmt;

use sqlock_core::{Error, Result};

/// The tables and the sequence, as SQL has them.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) schema: String,
    /// What must survive a crash.
    pub(super) durable: String,
    /// What must not.
    pub(super) now: String,
    pub(super) sequence: String,
}

impl Names {
    pub(super) fn in_schema(schema: &str) -> Self {
        let schema = format!("\"{}\"", schema.replace('"', "\"\""));
        Self {
            durable: format!("{schema}.\"sqlock_fencing\""),
            now: format!("{schema}.\"sqlock_fencing_now\""),
            sequence: format!("{schema}.\"sqlock_fencing_seq\""),
            schema,
        }
    }
}

/// PostgreSQL cuts longer names.
const MAX_BYTES: usize = 63;

pub(super) fn check(schema: &str) -> Result<()> {
    if (1..=MAX_BYTES).contains(&schema.len()) && !schema.contains('\0') {
        return Ok(());
    }
    Err(Error::InvalidOption {
        option: "schema",
        reason: format!("a name has 1 to {MAX_BYTES} bytes and no NUL character"),
    })
}

/// A text literal that means the same whatever `standard_conforming_strings` says.
pub(super) struct Literal<'a>(pub(super) &'a str);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = self.0.replace('\\', "\\\\").replace('\'', "''");
        write!(f, "E'{escaped}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_their_quotes() {
        let names = Names::in_schema(r#"a"b'\"#);
        assert_eq!(names.durable, r#""a""b'\"."sqlock_fencing""#);
        let literal = Literal(&names.sequence).to_string();
        assert_eq!(literal, r#"E'"a""b''\\"."sqlock_fencing_seq"'"#);
    }

    #[test]
    fn a_schema_has_a_name() {
        assert!(check("locks").is_ok());
        for wrong in ["", "a\0b", &"x".repeat(64)] {
            assert!(matches!(
                check(wrong),
                Err(Error::InvalidOption {
                    option: "schema",
                    ..
                })
            ));
        }
    }
}

//! Values in statements of the simple protocol.
//!
//! Through a transaction pooler a prepared statement can meet another client's; a statement with
//! its values in it cannot. Everything that is not a number goes through [`Text`].

use std::{fmt, time::Duration};

/// A text literal that means the same whatever `standard_conforming_strings` says ([PostgreSQL
/// manual, 4.1.2.2]).
///
/// [PostgreSQL manual, 4.1.2.2]: https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-STRINGS-ESCAPE
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("E'")?;
        for character in self.0.chars() {
            match character {
                '\'' => f.write_str("''")?,
                '\\' => f.write_str("\\\\")?,
                // the server's text has no NUL; what asks for one is refused before
                '\0' => {}
                other => fmt::Write::write_char(f, other)?,
            }
        }
        f.write_str("'::text")
    }
}

/// A text literal or NULL.
pub(super) struct OptionalText<'a>(pub(super) Option<&'a str>);

impl fmt::Display for OptionalText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => Text(text).fmt(f),
            None => f.write_str("null::text"),
        }
    }
}

/// An interval literal, in whole microseconds: PostgreSQL has no finer.
pub(super) struct Interval(pub(super) Duration);

/// A thousand years. The server's timestamps end some 292,000 years later.
const LONGEST: Duration = Duration::from_secs(1000 * 366 * 86_400);

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duration = self.0.min(LONGEST);
        let (seconds, micros) = (duration.as_secs(), duration.subsec_micros());
        write!(f, "'{seconds}.{micros:06} s'::interval")
    }
}

/// An identifier, quoted: `"schema"."table"`.
pub(super) fn quoted_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_doubled() {
        let text = Text(r"it's \ ''; drop table x --").to_string();
        assert_eq!(text, r"E'it''s \\ ''''; drop table x --'::text");
        assert_eq!(OptionalText(None).to_string(), "null::text");
    }

    #[test]
    fn intervals_are_exact_and_bounded() {
        let interval = |duration| Interval(duration).to_string();
        assert_eq!(
            interval(Duration::from_micros(1_500_001)),
            "'1.500001 s'::interval"
        );
        assert_eq!(interval(Duration::MAX), interval(LONGEST));
    }

    #[test]
    fn identifiers_cannot_end_their_quotes() {
        assert_eq!(quoted_identifier(r#"a"b"#), r#""a""b""#);
    }
}

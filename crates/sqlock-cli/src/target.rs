//! The URL of the server, which may hold a password.

use std::fmt;

/// A URL that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target(String);

impl Target {
    /// The URL itself, for nobody but the backend.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Where the server is, `host:port/database`, or `None` where the URL is not so well-formed
    /// that a piece of a password could not be in it.
    fn place(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once("://")?;
        let rest = match rest.split_once('@') {
            None => rest,
            Some((login, _)) if login.contains(['/', '?', '#']) => return None,
            Some((_, place)) if place.contains('@') => return None,
            Some((_, place)) => place,
        };
        let (place, _) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = place.split_once('/').unwrap_or((place, ""));
        let is_plain = |text: &str, besides: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || besides.contains(c))
        };
        let is_bracketed = |text: &str| {
            text.strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'))
                .is_some_and(|text| is_plain(text, ":.%"))
        };
        let is_host = |text: &str| is_bracketed(text) || !text.is_empty() && is_plain(text, "-._%");
        let is_port = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let is_server = is_host(server)
            || server
                .rsplit_once(':')
                .is_some_and(|(host, port)| is_host(host) && is_port(port));
        let is_sound = is_server && is_plain(database, "-._%");
        is_sound.then_some(place)
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place().unwrap_or("the server of the given URL"))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(url: &str) -> String {
        Target::from(url.to_owned()).to_string()
    }

    #[test]
    fn a_server_is_shown_by_its_place() {
        assert_eq!(
            shown("postgres://app:s3cret@db.internal:5433/app"),
            "db.internal:5433/app"
        );
        assert_eq!(
            shown("postgres://app@[::1]:5433/app?sslmode=require"),
            "[::1]:5433/app"
        );
        assert_eq!(shown("postgresql://[::1]/app"), "[::1]/app");
        assert_eq!(
            shown("postgres://%2Frun%2Fpostgresql/app"),
            "%2Frun%2Fpostgresql/app"
        );
        assert_eq!(
            shown("postgres://db/app?password=s3cret@x"),
            "the server of the given URL"
        );
    }

    #[test]
    fn a_url_that_is_not_one_is_not_shown() {
        for url in [
            "s3cret",
            "postgres:/app:s3cret@host",
            "postgres://app:s3cret",
            "postgres://app:s3/cret@host/app",
            "postgres://app:s3?cret@host/app",
            "postgres://app:s3#cret@host/app",
            "postgres://app:s3@cret@host/app",
            "postgres://app:s3 cret",
        ] {
            assert_eq!(shown(url), "the server of the given URL", "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_piece_of_a_password_is_shown(password in r"[A-Z@:/?#%&=\[\] ]{1,24}", sound in any::<bool>()) {
            let at = if sound { "@host:5432/db" } else { "" };
            for url in [
                format!("postgres://user:{password}{at}"),
                format!("postgres://user@host/db?password={password}"),
                format!("postgres://host/db?user=u&password={password}&x=1"),
            ] {
                let shown = format!("{0} {0:?}", Target::from(url.clone()));
                let shown = shown.replace("the server of the given URL", "").replace("Target", "");
                prop_assert!(!shown.contains(|c: char| c.is_ascii_uppercase()), "{url}: {shown}");
            }
        }
    }
}

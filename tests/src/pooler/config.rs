use std::fmt::Write as _;

use sqlx::postgres::PgConnectOptions;

/// What a PgBouncer is told in its files.
#[derive(Debug)]
pub(super) struct Config {
    server: PgConnectOptions,
    password: String,
    settings: Vec<(String, String)>,
}

impl Config {
    pub(super) fn new(server_url: &str, settings: Vec<(String, String)>) -> Self {
        Self {
            server: server_url.parse().expect("a server's url is valid"),
            password: password(server_url),
            settings,
        }
    }

    pub(super) fn user(&self) -> &str {
        self.server.get_username()
    }

    pub(super) fn password(&self) -> &str {
        &self.password
    }

    pub(super) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Where the server listens: a host or a socket's directory, and a port.
    pub(super) fn address(&self) -> (&str, u16) {
        let socket = self.server.get_socket().and_then(|path| path.to_str());
        let host = socket.unwrap_or_else(|| self.server.get_host());
        (host, self.server.get_port())
    }

    /// The file `pgbouncer.ini`. A setting given twice counts the second time.
    pub(super) fn text(&self, port: u16, users: &str) -> String {
        let (host, server_port) = self.address();
        let mut text = format!("[databases]\n* = host={host} port={server_port}\n\n{SECTION}\n");
        let port = port.to_string();
        let own = [
            ("listen_addr", "127.0.0.1"),
            ("listen_port", &port),
            ("unix_socket_dir", ""),
            ("auth_type", "trust"),
            ("auth_file", users),
            ("admin_users", self.user()),
        ];
        let given = self.settings.iter();
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.into_iter().chain(given) {
            writeln!(text, "{name} = {value}").expect("a text takes more text");
        }
        text
    }

    /// The file of users: whom it lets in, and by which password it gets in itself.
    pub(super) fn users(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        format!("{} {}\n", quoted(self.user()), quoted(&self.password))
    }
}

/// The heading that the settings stand under.
pub(super) const SECTION: &str = "[pgbouncer]";

/// Turns off what newer versions do by themselves and older ones do not know: from 1.24 on they
/// look after prepared statements.
pub(super) const STOCK_PREPARED_STATEMENTS: &str = "max_prepared_statements = 0";

/// The first minor version of PgBouncer 1 that knows [`STOCK_PREPARED_STATEMENTS`].
pub(super) const KNOWS_PREPARED_STATEMENTS: u32 = 21;

/// A URL's password, which sqlx does not give back.
fn password(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        return String::new();
    };
    decode(user.split_once(':').map_or("", |(_, password)| password))
}

fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).map(|code| u8::from_str_radix(code, 16));
        match code {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            _ => panic!("the password in the server's url is not encoded as a url's"),
        }
    }
    String::from_utf8(bytes).expect("the password is utf-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_taken_from_the_url_and_quoted() {
        let config = Config::new(
            "postgres://me:p%40s%22s@localhost:5433/postgres?a=b",
            vec![],
        );
        assert_eq!(config.users(), "\"me\" \"p@s\"\"s\"\n");
        let config = Config::new("postgres://me@localhost/postgres", vec![]);
        assert_eq!(config.users(), "\"me\" \"\"\n");
    }
}

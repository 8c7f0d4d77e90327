use anyhow::Result;
use testcontainers_modules::postgres::Postgres;
use testcontainers_modules::testcontainers::ImageExt as _;

use super::kept::Kept;
use super::port::on_free_port;
use crate::images::image;

const IMAGE: &str = "SQLOCK_TEST_POSTGRES_IMAGE";

const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "300"),
    ("fsync", "off"),
    ("autovacuum", "off"),
];

/// A PostgreSQL server in a container. On the host's network, as the pooler is: with no proxy in
/// between, the server itself sees that a client has gone.
#[derive(Debug)]
pub(super) struct Container {
    url: String,
    _kept: Kept,
}

impl Container {
    pub(super) fn start(settings: &[(String, String)]) -> Result<Self> {
        let (name, tag) = image(IMAGE, "postgres")?;
        let (port, kept) = on_free_port(|port| {
            let request = Postgres::default()
                .with_name(&name)
                .with_tag(&tag)
                .with_network("host")
                .with_cmd(command(port, settings));
            let (kept, ()) = Kept::start(request, async |_| Ok(()))?;
            Ok(kept)
        })?;
        let url = format!("postgres://postgres:postgres@127.0.0.1:{port}/postgres");
        Ok(Self { url, _kept: kept })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

fn command(port: u16, settings: &[(String, String)]) -> Vec<String> {
    let common = SETTINGS
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let own = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    common
        .chain([format!("port={port}")])
        .chain(own)
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

use anyhow::Result;
use testcontainers_modules::postgres::Postgres;
use testcontainers_modules::testcontainers::ImageExt as _;
use testcontainers_modules::testcontainers::core::IntoContainerPort as _;

use super::kept::{Kept, image};

const IMAGE: &str = "SQLOCK_TEST_POSTGRES_IMAGE";
const DEFAULT_IMAGE: &str = "postgres:17-alpine";

const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "300"),
    ("fsync", "off"),
    ("autovacuum", "off"),
];

/// A PostgreSQL server in a container.
#[derive(Debug)]
pub(super) struct Container {
    url: String,
    _kept: Kept,
}

impl Container {
    pub(super) fn start(settings: &[(String, String)]) -> Result<Self> {
        let image = image(IMAGE, DEFAULT_IMAGE)?;
        let request = Postgres::default()
            .with_name(image.0)
            .with_tag(image.1)
            .with_cmd(command(settings));
        let (kept, url) = Kept::start(request, async |container| {
            let host = container.get_host().await?;
            let port = container.get_host_port_ipv4(5432.tcp()).await?;
            Ok(format!(
                "postgres://postgres:postgres@{host}:{port}/postgres"
            ))
        })?;
        Ok(Self { url, _kept: kept })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

fn command(settings: &[(String, String)]) -> Vec<String> {
    let common = SETTINGS
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let own = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    common
        .chain(own)
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

//! What the figures were taken on.

use std::fs;

use anyhow::Result;

use crate::servers::Servers;

pub(crate) async fn describe(servers: &Servers) -> Result<Vec<(String, String)>> {
    let mut connection = servers.durable.connect().await;
    let version: String = sqlx::query_scalar("select current_setting('server_version')")
        .fetch_one(&mut connection)
        .await?;
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, model)| model);
    let cores = std::thread::available_parallelism()?;
    Ok(vec![
        (
            "processor".to_owned(),
            format!("{model}, {cores} cores, shared by clients and servers"),
        ),
        ("PostgreSQL".to_owned(), version),
        (
            "transport".to_owned(),
            "TCP on the loopback, without TLS".to_owned(),
        ),
    ])
}

use std::fmt::Write as _;

use anyhow::{Result, bail};
use testcontainers_modules::testcontainers::core::WaitFor;
use testcontainers_modules::testcontainers::{GenericImage, ImageExt as _};

use super::config::Config;
use super::container::IMAGE;
use crate::images::image;
use crate::server::kept::Kept;
use crate::server::port::on_free_port;

const CONF: &str = "/etc/sqlock-test/odyssey.conf";

/// An Odyssey in a container, in place of a PgBouncer: what a test sets of that, it is told in its
/// own words. It has no console that tests know.
#[derive(Debug)]
pub(super) struct Odyssey {
    port: u16,
    _kept: Kept,
}

impl Odyssey {
    pub(super) fn start(config: &Config) -> Result<Self> {
        let (name, tag) = image(IMAGE, "pgbouncer")?;
        let (port, kept) = on_free_port(|port| {
            let request = GenericImage::new(&name, &tag)
                .with_wait_for(WaitFor::message_on_stdout("listening on"))
                .with_entrypoint("odyssey")
                .with_cmd([CONF])
                .with_user("nobody")
                .with_network("host")
                .with_copy_to(CONF, text(config, port)?.into_bytes());
            let (kept, ()) = Kept::start(request, async |_| Ok(()))?;
            Ok(kept)
        })?;
        Ok(Self { port, _kept: kept })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

fn text(config: &Config, port: u16) -> Result<String> {
    let (mut mode, mut size, mut clients) = ("session", "20", "100");
    for (name, value) in config.settings() {
        match name.as_str() {
            "pool_mode" if value == "statement" => bail!("odyssey has no statement mode"),
            "pool_mode" => mode = value,
            "default_pool_size" => size = value,
            "max_client_conn" => clients = value,
            _ => bail!("a test sets {name}, which odyssey does not have"),
        }
    }
    let (host, server_port) = config.address();
    let mut text = String::new();
    writeln!(
        text,
        "daemonize no
log_to_stdout yes
log_format \"%p %t %l [%i %s] (%c) %m\\n\"
workers 1
client_max {clients}
listen {{
  host \"127.0.0.1\"
  port {port}
}}
storage \"server\" {{
  type \"remote\"
  host \"{host}\"
  port {server_port}
}}
database default {{
  user default {{
    authentication \"none\"
    storage \"server\"
    storage_user \"{user}\"
    storage_password \"{password}\"
    pool \"{mode}\"
    pool_size {size}
    pool_discard no
    pool_rollback yes
    client_fwd_error yes
  }}
}}",
        user = config.user(),
        password = config.password(),
    )?;
    Ok(text)
}

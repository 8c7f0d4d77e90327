use anyhow::Result;
use testcontainers_modules::testcontainers::core::WaitFor;
use testcontainers_modules::testcontainers::{GenericImage, ImageExt as _};

use super::config::{Config, KNOWS_PREPARED_STATEMENTS, STOCK_PREPARED_STATEMENTS};
use crate::images::image;
use crate::server::kept::Kept;
use crate::server::port::on_free_port;

pub(super) const IMAGE: &str = "SQLOCK_TEST_PGBOUNCER_IMAGE";

const INI: &str = "/etc/sqlock-test/pgbouncer.ini";
const USERS: &str = "/etc/sqlock-test/users";

/// A PgBouncer in a container. On the host's network: the server behind it may listen at 127.0.0.1
/// only, and so does it.
#[derive(Debug)]
pub(super) struct Container {
    port: u16,
    _kept: Kept,
}

impl Container {
    pub(super) fn start(config: &Config) -> Result<Self> {
        let (name, tag) = image(IMAGE, "pgbouncer")?;
        let (port, kept) = on_free_port(|port| {
            let request = GenericImage::new(&name, &tag)
                .with_wait_for(WaitFor::message_on_stderr("process up"))
                .with_entrypoint("sh")
                .with_cmd(["-c", &script()])
                // Any image has that account, and PgBouncer refuses root.
                .with_user("nobody")
                .with_network("host")
                .with_copy_to(INI, config.text(port, USERS).into_bytes())
                .with_copy_to(USERS, config.users().into_bytes());
            let (kept, ()) = Kept::start(request, async |_| Ok(()))?;
            Ok(kept)
        })?;
        Ok(Self { port, _kept: kept })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// Which version the image has is known in the container only.
fn script() -> String {
    format!(
        "minor=$(pgbouncer --version | sed -n 's/^PgBouncer 1\\.\\([0-9]*\\).*/\\1/p')\n\
         stock=\n\
         [ \"$minor\" -lt {KNOWS_PREPARED_STATEMENTS} ] || stock='{STOCK_PREPARED_STATEMENTS}'\n\
         sed \"s/^\\[pgbouncer\\]$/&\\n$stock/\" {INI} >/tmp/pgbouncer.ini\n\
         exec pgbouncer /tmp/pgbouncer.ini"
    )
}

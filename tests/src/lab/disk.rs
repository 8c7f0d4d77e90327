use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use sqlx::{AssertSqlSafe, postgres::PgConnection};

const SIZE: &str = "2m";

/// A small file system of its own, which the table of leases is on.
#[derive(Debug)]
pub(super) struct Disk {
    mounted_at: PathBuf,
}

impl Disk {
    /// Mounts one, as only root may, and moves the table onto it.
    pub(super) async fn make(admin: &mut PgConnection, name: &str) -> Result<Self> {
        let data: String = sqlx::query_scalar("show data_directory")
            .fetch_one(&mut *admin)
            .await?;
        let owner = fs::metadata(&data)?;
        let mounted_at = std::env::temp_dir().join(format!("sqlock-lab-disk-{name}"));
        fs::create_dir_all(&mounted_at)?;
        let (uid, gid) = (owner.uid(), owner.gid());
        let options = format!("size={SIZE},uid={uid},gid={gid},mode=700");
        mount(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tmpfs"],
            &mounted_at,
        )?;
        let disk = Self { mounted_at };
        let place = disk.mounted_at.display();
        for statement in [
            format!("create tablespace small location '{place}'"),
            "alter table public.sqlock_leases set tablespace small".to_owned(),
        ] {
            let statement = sqlx::query(AssertSqlSafe(statement));
            statement.persistent(false).execute(&mut *admin).await?;
        }
        Ok(disk)
    }

    pub(super) fn fill(&self) -> Result<()> {
        let mut ballast = File::create(self.ballast())?;
        loop {
            match ballast.write_all(&[0; 512]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn free(&self) -> Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.mounted_at.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: the server may have its files open still.
        let _ = mount("umount", &["--lazy"], &self.mounted_at);
        let _ = fs::remove_dir(&self.mounted_at);
    }
}

fn mount(program: &str, arguments: &[&str], place: &Path) -> Result<()> {
    let output = Command::new(program).args(arguments).arg(place).output();
    let output = output.with_context(|| format!("{program} cannot be run"))?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{program}: {}", error.trim());
    Ok(())
}

/// The database engine at the other end, by what it answers to `version()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Engine {
    /// PostgreSQL itself, or a service that runs it.
    PostgreSql,
    /// `CockroachDB`. Its session locks are stubs that are granted to everybody
    /// ([#13546](https://github.com/cockroachdb/cockroach/issues/13546)); those of a transaction
    /// are real in late versions ([#168353](https://github.com/cockroachdb/cockroach/pull/168353)).
    CockroachDb,
    /// `YugabyteDB`. Real from 2025.1 on; before, an error, or silently nothing where
    /// `yb_silence_advisory_locks_not_supported_error` is set
    /// ([#3642](https://github.com/yugabyte/yugabyte-db/issues/3642)).
    YugabyteDb,
    /// Materialize, which has none.
    Materialize,
    /// `RisingWave`, which has none.
    RisingWave,
    /// `CrateDB`, which has neither locks nor transactions.
    CrateDb,
    /// Amazon Redshift, which has none.
    Redshift,
    /// `QuestDB`, which has none.
    QuestDb,
    /// `GreptimeDB`, which has none.
    GreptimeDb,
    /// Some other engine that speaks PostgreSQL's protocol: Aurora DSQL, Spanner, Greenplum,
    /// `openGauss`, Doltgres and what is not known yet. Its locks are tested before they are used.
    Unknown,
}

/// What is known of an engine's locks without a look at them.
pub(super) enum Known {
    Genuine,
    Absent(&'static str),
    ToBeTested,
}

const NAMES: [(&str, Engine); 9] = [
    ("CockroachDB", Engine::CockroachDb),
    ("-YB-", Engine::YugabyteDb),
    ("YugabyteDB", Engine::YugabyteDb),
    ("Materialize", Engine::Materialize),
    ("RisingWave", Engine::RisingWave),
    ("CrateDB", Engine::CrateDb),
    ("Redshift", Engine::Redshift),
    ("QuestDB", Engine::QuestDb),
    ("Greptime", Engine::GreptimeDb),
];

impl Engine {
    /// Which engine answers `version()` so.
    ///
    /// ```
    /// use sqlock_postgres::preflight::Engine;
    ///
    /// let text = "PostgreSQL 17.2 on x86_64-linux, compiled by gcc-13.2.0, 64-bit";
    /// assert_eq!(Engine::of(text), Engine::PostgreSql);
    /// assert_eq!(Engine::of("PostgreSQL 16.2"), Engine::Unknown);
    /// assert_eq!(Engine::of("CockroachDB CCL v23.1.0"), Engine::CockroachDb);
    /// ```
    #[must_use]
    pub fn of(version: &str) -> Self {
        let named = NAMES.iter().find(|(name, _)| version.contains(name));
        match named {
            Some((_, engine)) => *engine,
            None if is_as_postgresql_writes_it(version) => Self::PostgreSql,
            None => Self::Unknown,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PostgreSql => "PostgreSQL",
            Self::CockroachDb => "CockroachDB",
            Self::YugabyteDb => "YugabyteDB",
            Self::Materialize => "Materialize",
            Self::RisingWave => "RisingWave",
            Self::CrateDb => "CrateDB",
            Self::Redshift => "Amazon Redshift",
            Self::QuestDb => "QuestDB",
            Self::GreptimeDb => "GreptimeDB",
            Self::Unknown => "an unknown engine",
        }
    }

    /// Whether it has tables with row locks, for leases.
    pub(super) const fn may_keep_leases(self) -> bool {
        matches!(
            self,
            Self::PostgreSql | Self::CockroachDb | Self::YugabyteDb | Self::Unknown
        )
    }

    pub(super) const fn session_locks(self) -> Known {
        match self {
            Self::CockroachDb => {
                Known::Absent("its session locks are stubs that are granted to everybody")
            }
            _ => self.transaction_locks(),
        }
    }

    pub(super) const fn transaction_locks(self) -> Known {
        match self {
            Self::PostgreSql => Known::Genuine,
            Self::CockroachDb | Self::YugabyteDb | Self::Unknown => Known::ToBeTested,
            Self::Materialize
            | Self::RisingWave
            | Self::CrateDb
            | Self::Redshift
            | Self::QuestDb
            | Self::GreptimeDb => Known::Absent("it has no advisory locks"),
        }
    }
}

/// `PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc …, 64-bit`,
/// or without a machine on Windows. Other engines put their own name somewhere, or leave things out.
fn is_as_postgresql_writes_it(version: &str) -> bool {
    let Some(rest) = version.strip_prefix("PostgreSQL ") else {
        return false;
    };
    let Some((number, rest)) = rest.split_once(' ') else {
        return false;
    };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ','));
    let is_fork = ["Greenplum", "Cloudberry", "openGauss", "GaussDB"]
        .iter()
        .any(|fork| rest.contains(fork));
    let is_built = match number.strip_suffix(',') {
        Some(_) => rest.starts_with("compiled by "),
        None => {
            (rest.starts_with("on ") || rest.contains(") on ")) && rest.contains(", compiled by ")
        }
    };
    is_number && is_built && rest.ends_with("-bit") && !is_fork
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgresql_in_its_packagings() {
        for version in [
            "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc \
             (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit",
            "PostgreSQL 9.6.24 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 4.8.5, 64-bit",
            "PostgreSQL 18beta1 on aarch64-darwin, compiled by clang-16.0.6, 64-bit",
            "PostgreSQL 17.0, compiled by msvc-19.41.34120, 64-bit",
            "PostgreSQL 16.4 (Ubuntu 16.4-1.pgdg22.04+1) on aarch64-unknown-linux-gnu, compiled \
             by gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, 64-bit",
        ] {
            assert_eq!(Engine::of(version), Engine::PostgreSql, "{version}");
        }
    }

    #[test]
    fn others_are_told_apart() {
        for (version, engine) in [
            (
                "CockroachDB CCL v24.3.0 (x86_64-pc-linux-gnu, built 2024/11/18)",
                Engine::CockroachDb,
            ),
            (
                "PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit",
                Engine::YugabyteDb,
            ),
            (
                "PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v0.130.0)",
                Engine::Materialize,
            ),
            ("PostgreSQL 13.14.0-RisingWave-2.0.0", Engine::RisingWave),
            ("CrateDB 5.9.0 (built 1234567/NA)", Engine::CrateDb),
            (
                "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, \
                 Redshift 1.0.77467",
                Engine::Redshift,
            ),
            (
                "PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB",
                Engine::QuestDb,
            ),
            (
                "PostgreSQL 9.4.26 (Greenplum Database 6.20.0) on x86_64-unknown-linux-gnu, \
                 compiled by gcc 6.4.0, 64-bit",
                Engine::Unknown,
            ),
            ("PostgreSQL 14.1", Engine::Unknown),
            ("PostgreSQL 16", Engine::Unknown),
            ("", Engine::Unknown),
        ] {
            assert_eq!(Engine::of(version), engine, "{version}");
        }
    }
}

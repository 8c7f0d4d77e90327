use std::{collections::BTreeMap, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use sqlock::ttl::TtlOptions;
use sqlx::{Connection as _, postgres::PgConnection};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{
    Backend, Facts, Fault, KEYS, Setup, TTL, Way, Worker, disk::Disk, facts::Write, proxy::Proxy,
    wall_clock::WallClock,
};
use crate::{PgBouncer, PoolMode, PostgresServer, TestDatabase, eventually::holds_within};

const WORKERS: usize = 3;
/// Within which all is free after the last holder's end.
const LIMIT: Duration = Duration::from_secs(5);
/// A worker's end, a shut-down included.
const PATIENCE: Duration = Duration::from_secs(20);
const QUERY_LIMIT: Duration = Duration::from_secs(3);

/// The servers and processes of one run.
#[derive(Debug)]
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) server: PostgresServer,
    pub(super) pooler: Option<PgBouncer>,
    pub(super) proxy: Proxy,
    pub(super) workers: Vec<Process>,
    /// What the table of leases is on, where one can be mounted.
    pub(super) disk: Option<Disk>,
    database: TestDatabase,
    resource: TestDatabase,
    started: u32,
    program: PathBuf,
    directory: PathBuf,
}

/// A worker process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) number: u32,
    child: Child,
    clock: Option<WallClock>,
}

impl World {
    pub(super) async fn make(setup: Setup, program: PathBuf, directory: PathBuf) -> Result<Self> {
        let server = PostgresServer::start(&[]).await;
        let database = server.database().await;
        // The resource is on a server that nothing happens to.
        let resource = TestDatabase::create().await;
        prepare(&database, &resource).await?;
        let pooler = match setup.way {
            Way::Direct => None,
            Way::Pooled => Some(
                PgBouncer::with(PoolMode::Transaction)
                    // fifteen seconds by default: no worker would come through in the calm
                    .setting("server_login_retry", "1")
                    .start(&server)
                    .await,
            ),
        };
        let port = match &pooler {
            Some(pooler) => pooler.port(),
            None => port_of(&server.url())?,
        };
        let disk = match setup.backend {
            Backend::Ttl => {
                let name = format!("{}-{port}", std::process::id());
                Disk::make(&mut database.connect().await, &name).await.ok()
            }
            Backend::Session | Backend::Xact => None,
        };
        let mut world = Self {
            setup,
            server,
            pooler,
            proxy: Proxy::start(port).await?,
            workers: Vec::new(),
            disk,
            database,
            resource,
            started: 0,
            program,
            directory,
        };
        for _ in 0..WORKERS {
            world.hire()?;
        }
        Ok(world)
    }

    /// One more worker.
    pub(super) fn hire(&mut self) -> Result<()> {
        self.started += 1;
        let number = self.started;
        let worker = Worker {
            process: number,
            backend: self.setup.backend.to_string(),
            pooled: self.setup.way == Way::Pooled,
            flaw: self.setup.flaw.map(|flaw| flaw.to_string()),
            locks: format!(
                "postgres://postgres@127.0.0.1:{}/{}?application_name=worker-{number}",
                self.proxy.port(),
                self.database.name()
            ),
            resource: self.resource.url(),
            journal: self.directory.join(format!("worker-{number}.jsonl")),
        };
        let log = std::fs::File::create(self.directory.join(format!("worker-{number}.log")))?;
        let clock = WallClock::new(self.directory.join(format!("worker-{number}.clock")))?;
        let child = Command::new(&self.program)
            .envs(clock.iter().flat_map(WallClock::environment))
            .arg(serde_json::to_string(&worker)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.workers.push(Process {
            number,
            child,
            clock,
        });
        Ok(())
    }

    /// Whether this machine lets it be done.
    pub(super) fn can(&self, fault: Fault) -> bool {
        match fault {
            Fault::DiskFull => self.disk.is_some(),
            Fault::StepClock => self.workers.iter().all(|worker| worker.clock.is_some()),
            _ => true,
        }
    }

    /// Leads the workers to where the server is now.
    pub(super) fn find_server(&self) -> Result<()> {
        self.proxy.lead_to(port_of(&self.server.url())?);
        Ok(())
    }

    /// The server itself, past proxy and pooler; `None` where it does not answer.
    pub(super) async fn admin(&self) -> Option<PgConnection> {
        let url = self.database.url();
        let connect = PgConnection::connect(&url);
        timeout(QUERY_LIMIT, connect).await.ok()?.ok()
    }

    /// The backends of workers.
    pub(super) async fn backends(&self) -> Vec<i32> {
        let Some(mut admin) = self.admin().await else {
            return Vec::new();
        };
        let query = sqlx::query_scalar(
            "select pid from pg_stat_activity \
             where datname = current_database() and backend_type = 'client backend' \
             and pid <> pg_backend_pid() order by pid",
        );
        let pids = timeout(QUERY_LIMIT, query.fetch_all(&mut admin)).await;
        pids.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Tells the workers to end, sees to it that they do, and looks at what is left.
    pub(super) async fn wind_up(&mut self) -> Result<Facts> {
        let mut facts = Facts {
            alive: self.workers.iter().map(|worker| worker.number).collect(),
            ..Facts::default()
        };
        for worker in &mut self.workers {
            worker.child.stdin.take();
        }
        for worker in &mut self.workers {
            let number = worker.number;
            match timeout(PATIENCE, worker.child.wait()).await {
                Ok(Ok(status)) if status.success() => {}
                Ok(_) => facts.leftovers.push(format!("worker {number} failed")),
                Err(_) => facts
                    .leftovers
                    .push(format!("worker {number} does not end")),
            }
        }
        let is_free = holds_within(LIMIT + TTL, async || {
            self.held().await.is_some_and(|held| held.is_empty())
        });
        if !is_free.await {
            let held = self.held().await;
            let what = format!("{:?} after the end of all", held.unwrap_or_default());
            facts.leftovers.push(what);
        }
        self.ask(&mut facts).await?;
        Ok(facts)
    }

    /// Locks, leases and transactions that nobody should have any more.
    async fn held(&self) -> Option<Vec<String>> {
        let mut admin = self.admin().await?;
        let query = "select format('advisory lock %s/%s of %s', classid, objid, pid) \
                from pg_locks where locktype = 'advisory' and granted \
                and database = (select oid from pg_database where datname = current_database()) \
             union all select format('lease of %s', name) \
                from public.sqlock_leases where owner is not null and expires_at > clock_timestamp() \
             union all select format('%s by %s', state, pid) from pg_stat_activity \
                where datname = current_database() and state like 'idle in transaction%'";
        let held = timeout(QUERY_LIMIT, sqlx::query_scalar(query).fetch_all(&mut admin)).await;
        held.ok()?.ok()
    }

    async fn ask(&self, facts: &mut Facts) -> Result<()> {
        let mut resource = self.resource.connect().await;
        let writes: Vec<(i64, Option<i64>)> =
            sqlx::query_as("select key, token from writes order by id")
                .fetch_all(&mut resource)
                .await?;
        let writes = writes.into_iter().map(|(key, token)| Write { key, token });
        facts.writes = writes.collect();
        let mut database = self.database.connect().await;
        let counts: Vec<(i64, i64)> = sqlx::query_as("select key, count from counter")
            .fetch_all(&mut database)
            .await?;
        facts.counts = counts.into_iter().collect::<BTreeMap<_, _>>();
        Ok(())
    }
}

impl Process {
    pub(super) fn pid(&self) -> Option<i32> {
        self.child.id().and_then(|pid| i32::try_from(pid).ok())
    }

    /// By how many seconds its wall clock is wrong from now on.
    pub(super) fn set_clock(&self, offset: &str) -> Result<()> {
        if let Some(clock) = &self.clock {
            clock.set(offset)?;
        }
        Ok(())
    }

    /// `kill -9`.
    pub(super) async fn kill(&mut self) {
        let _ = self.child.kill().await;
    }
}

async fn prepare(database: &TestDatabase, resource: &TestDatabase) -> Result<()> {
    let leases = TtlOptions::new().connect(&database.url())?;
    // A machine that is busy with other runs may be slow to connect.
    let is_made = holds_within(PATIENCE, async || leases.create_table().await.is_ok()).await;
    ensure!(is_made, "the table of leases cannot be made");
    let mut connection = database.connect().await;
    sqlx::raw_sql("create table counter (key bigint primary key, count bigint not null)")
        .execute(&mut connection)
        .await?;
    let mut other = resource.connect().await;
    sqlx::raw_sql(
        "create table resource (key bigint primary key, last_token bigint not null); \
         create table writes (id bigserial primary key, key bigint not null, token bigint)",
    )
    .execute(&mut other)
    .await?;
    for key in 0..KEYS {
        sqlx::query("insert into counter values ($1, 0)")
            .bind(key)
            .execute(&mut connection)
            .await?;
        sqlx::query("insert into resource values ($1, 0)")
            .bind(key)
            .execute(&mut other)
            .await?;
    }
    Ok(())
}

fn port_of(url: &str) -> Result<u16> {
    let options: sqlx::postgres::PgConnectOptions = url.parse()?;
    Ok(options.get_port())
}

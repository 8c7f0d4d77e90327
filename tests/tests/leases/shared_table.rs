//! A table that others use too, who are plain SQL here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlock::{
    Error, LockKey, Locks, LossCause,
    ttl::{SharedTable, SharedTableBackend},
};
use sqlock_tests::TestDatabase;
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    support::{PATIENCE, ask, execute, run},
    tools::{TTL, options},
};

/// Whose table it is, and how its users lock.
#[derive(Debug, Clone, Copy)]
struct Peer {
    table: &'static str,
    create: &'static str,
    /// Name, owner, seconds.
    lock: &'static str,
    /// Name, owner.
    unlock: &'static str,
    end: &'static str,
    shared: fn() -> SharedTable,
}

/// What many have written by hand.
const BY_HAND: Peer = Peer {
    table: "locks",
    create: "create table locks (
        name text primary key, owner text not null, expires_at timestamptz not null)",
    lock: "insert into locks as l (name, owner, expires_at)
           values ($1, $2, now() + make_interval(secs => $3))
           on conflict (name) do update set owner = excluded.owner, expires_at = excluded.expires_at
           where l.expires_at <= now()",
    unlock: "delete from locks where name = $1 and owner = $2",
    end: "expires_at",
    shared: || SharedTable::locks("public", "locks"),
};

/// That of `ShedLock`, with the database's time.
const SHEDLOCK: Peer = Peer {
    table: "shedlock",
    create: "create table shedlock (
        name varchar(64) primary key, lock_until timestamp not null, locked_at timestamp not null,
        locked_by varchar(255) not null)",
    lock: "insert into shedlock (name, locked_by, lock_until, locked_at)
           values ($1, $2, timezone('utc', current_timestamp) + make_interval(secs => $3),
             timezone('utc', current_timestamp))
           on conflict (name) do update set lock_until = excluded.lock_until,
             locked_at = excluded.locked_at, locked_by = excluded.locked_by
           where shedlock.lock_until <= timezone('utc', current_timestamp)",
    unlock: "update shedlock set lock_until = timezone('utc', current_timestamp)
             where name = $1 and locked_by = $2",
    end: "lock_until at time zone 'utc'",
    shared: || SharedTable::shedlock("public", "shedlock"),
};

impl Peer {
    async fn database(self) -> TestDatabase {
        let database = TestDatabase::create().await;
        let mut connection = database.connect().await;
        execute(&mut connection, self.create).await;
        // times without a zone must not be those of the session
        let zone =
            "alter database \"{}\" set timezone = 'Asia/Tokyo'".replace("{}", database.name());
        execute(&mut connection, &zone).await;
        database
    }

    fn node(self, database: &TestDatabase) -> Locks<SharedTableBackend> {
        let table = (self.shared)().leases(options());
        Locks::new(table.connect(&database.url()).expect("options"))
    }

    async fn lock(self, connection: &mut PgConnection, owner: &str, ttl: Duration) -> bool {
        let lock = sqlx::query(self.lock).bind("job").bind(owner);
        let done = lock.bind(ttl.as_secs_f64()).execute(connection).await;
        done.expect("a statement").rows_affected() == 1
    }

    async fn unlock(self, connection: &mut PgConnection, owner: &str) {
        let unlock = sqlx::query(self.unlock).bind("job").bind(owner);
        unlock.execute(connection).await.expect("a statement");
    }

    async fn seconds_left(self, connection: &mut PgConnection) -> f64 {
        let Self { table, end, .. } = self;
        let left =
            format!("select extract(epoch from {end} - clock_timestamp())::float8 from {table}");
        ask(connection, &left).await
    }
}

fn with_each(test: impl AsyncFn(Peer) + Sync) {
    run(async || {
        tokio::join!(test(BY_HAND), test(SHEDLOCK));
    });
}

/// Each keeps the other out, and each gets the lock when the other's has ended.
#[test]
fn ours_and_theirs_exclude_each_other() {
    with_each(async |peer| {
        let database = peer.database().await;
        let mut theirs = database.connect().await;
        let (one, other) = (peer.node(&database), peer.node(&database));
        assert!(
            peer.lock(&mut theirs, "them", Duration::from_secs(60))
                .await
        );
        assert!(one.try_acquire("job").await.unwrap().is_none());
        let both = one.lock_all(["job", "free"]).try_acquire().await;
        assert!(both.unwrap().is_none());
        peer.unlock(&mut theirs, "them").await;

        let lease = one.acquire_within("job", PATIENCE).await.unwrap();
        assert_eq!(lease.token(), None);
        assert!(other.try_acquire("job").await.unwrap().is_none());
        // what they do with a name that is not theirs
        peer.unlock(&mut theirs, "them").await;
        let started = Instant::now();
        while started.elapsed() < TTL * 2 {
            assert!(!peer.lock(&mut theirs, "them", TTL).await);
            assert!(lease.is_valid());
            sleep(TTL / 10).await;
        }
        lease.release().await.unwrap();
        assert!(peer.lock(&mut theirs, "them", TTL).await, "it was released");
        // theirs ends by itself
        let lease = one.acquire_within("job", PATIENCE).await.unwrap();
        drop(lease);
        let both = one.lock_all(["job", "free"]).within(PATIENCE).acquire();
        both.await.unwrap().release().await.unwrap();
    });
}

/// They take a lease over that has run out, and ours is told.
#[test]
fn what_they_take_over_is_lost() {
    with_each(async |peer| {
        let database = peer.database().await;
        let mut theirs = database.connect().await;
        let lease = peer.node(&database).acquire("job").await.unwrap();
        let Peer { table, end, .. } = peer;
        let column = end.split(' ').next().unwrap_or_default();
        let past = format!("update {table} set {column} = {column} - interval '1 h'");
        execute(&mut theirs, &past).await;
        assert!(
            peer.lock(&mut theirs, "them", Duration::from_secs(60))
                .await
        );
        let lost = timeout(PATIENCE, lease.lost()).await.unwrap();
        let cause = LossCause::TakenOver;
        assert!(
            matches!(&lost, Error::Lost { cause: told, .. } if *told == cause),
            "{lost:?}"
        );
        lease.release().await.unwrap_err();
        assert!(
            !peer.lock(&mut theirs, "third", TTL).await,
            "theirs is theirs"
        );
    });
}

/// The key stays taken, though the table does not say since when it is.
#[test]
fn hold_at_least_is_kept() {
    with_each(async |peer| {
        let database = peer.database().await;
        let mut theirs = database.connect().await;
        let lock = peer
            .node(&database)
            .lock("job")
            .hold_at_least(Duration::from_secs(60));
        lock.acquire().await.unwrap().release().await.unwrap();
        assert!(!peer.lock(&mut theirs, "them", TTL).await);
        assert!(peer.seconds_left(&mut theirs).await > 30.0);
    });
}

/// Ours and theirs, many times over, are never inside together.
#[test]
fn they_never_overlap_under_load() {
    with_each(async |peer| {
        let database = peer.database().await;
        let (inside, entries) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let enter = async |inside: &AtomicUsize, entries: &AtomicUsize| {
            let others = inside.fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "two hold the lock together");
            entries.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(2)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        let mut ours = JoinSet::new();
        for _ in 0..3 {
            let locks = peer.node(&database);
            let (inside, entries) = (Arc::clone(&inside), Arc::clone(&entries));
            ours.spawn(async move {
                for _ in 0..10 {
                    let lock = locks.lock("job").ttl(Duration::from_secs(60));
                    let lease = lock.acquire().await.unwrap();
                    enter(&inside, &entries).await;
                    lease.release().await.unwrap();
                }
            });
        }
        let owner = "them";
        let mut theirs = database.connect().await;
        while !ours.is_empty() {
            if peer.lock(&mut theirs, owner, Duration::from_secs(60)).await {
                enter(&inside, &entries).await;
                peer.unlock(&mut theirs, owner).await;
            }
            sleep(Duration::from_millis(3)).await;
            while let Some(done) = ours.try_join_next() {
                done.unwrap();
            }
        }
        assert!(entries.load(Ordering::SeqCst) >= 30);
    });
}

/// What others could not know by its name is refused, or it would exclude nobody.
#[test]
fn keys_are_plain_names() {
    run(async || {
        let database = BY_HAND.database().await;
        let locks = BY_HAND.node(&database);
        let keys = [
            LockKey::from_id(7),
            LockKey::in_namespace("app", "job").unwrap(),
            LockKey::new("#7").unwrap(),
            LockKey::new("7:job").unwrap(),
        ];
        for key in keys {
            let refused = locks.try_acquire(&key).await;
            let option = matches!(refused, Err(Error::InvalidOption { option: "key", .. }));
            assert!(option, "{key:?}");
        }
        // a table that is not there, and one without a unique name, are errors
        let other = SharedTable::locks("public", "nowhere").connect(&database.url());
        Locks::new(other.unwrap())
            .try_acquire("job")
            .await
            .unwrap_err();
        let mut side = database.connect().await;
        let drop = AssertSqlSafe("alter table locks drop constraint locks_pkey");
        sqlx::raw_sql(drop).execute(&mut side).await.unwrap();
        locks.try_acquire("job").await.unwrap_err();
    });
}

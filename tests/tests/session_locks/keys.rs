//! The numbers of keys, by the server's own word.

use sqlock::{AdvisoryId, LockKey, Locks, SessionBackend};
use sqlock_tests::TestDatabase;

use crate::support::{ask, execute, ids_held, keys_held, node, run};

const NAMES: &[&str] = &[
    "daily-report",
    "a",
    "Grüße",
    "日本語",
    "🔒",
    "O'Brien; drop table jobs",
    " ",
    "plumless",
];

/// Case 40: two names whose 32-bit checksums are equal are two locks.
#[test]
fn names_that_collide_at_32_bits_are_apart() {
    run(async || {
        let database = TestDatabase::create().await;
        let locks = node(&database).await;
        let other = node(&database).await;
        let _one = locks.try_acquire("plumless").await.unwrap().unwrap();
        let _two = other.try_acquire("buckeroo").await.unwrap().unwrap();
        let ids = ids_held(&database).await;
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1]);
    });
}

/// Case 41: a name's number is that of PostgreSQL's own md5, and the one that is locked.
#[test]
fn the_server_computes_the_same_numbers() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut server = database.connect().await;
        let locks = node(&database).await;
        for name in NAMES {
            let id: i64 = sqlx::query_scalar("select ('x' || md5($1))::bit(64)::bigint")
                .bind(name)
                .fetch_one(&mut server)
                .await
                .unwrap();
            let guard = locks.acquire(*name).await.unwrap();
            assert_eq!(guard.key().id(), AdvisoryId::Bigint(id), "{name}");
            assert_eq!(ids_held(&database).await, [id], "{name}");
            guard.release().await.unwrap();
        }
        // golden values: a new version must not lock another number
        let golden: i64 = ask(
            &mut server,
            "select ('x' || md5('daily-report'))::bit(64)::bigint",
        )
        .await;
        assert_eq!(golden, 2_067_039_765_893_743_488);
    });
}

/// Cases 41 and 42: so is that of a name in a namespace.
#[test]
fn the_server_computes_the_same_numbers_in_a_namespace() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut server = database.connect().await;
        for namespace in ["billing", "größe"] {
            let backend = SessionBackend::connect(&database.url()).await.unwrap();
            let locks = Locks::builder(backend).namespace(namespace).build();
            for name in NAMES {
                let formula = "select ('x' || md5(octet_length($1) || ':' || $1 || $2))\
                               ::bit(64)::bigint";
                let id: i64 = sqlx::query_scalar(formula)
                    .bind(namespace)
                    .bind(name)
                    .fetch_one(&mut server)
                    .await
                    .unwrap();
                let guard = locks.acquire(*name).await.unwrap();
                assert_eq!(ids_held(&database).await, [id], "{name}");
                guard.release().await.unwrap();
            }
        }
    });
}

/// Case 42: two applications that use one name do not meet.
#[test]
fn namespaces_keep_applications_apart() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut applications = Vec::new();
        for namespace in ["billing", "billin", "shop"] {
            let backend = SessionBackend::connect(&database.url()).await.unwrap();
            applications.push(Locks::builder(backend).namespace(namespace).build());
        }
        applications.push(node(&database).await);
        let mut guards = Vec::new();
        for locks in &applications {
            guards.push(locks.try_acquire("migrate").await.unwrap().unwrap());
        }
        // neither do a namespace and a name that could be read as another's
        let glued = applications[1].try_acquire("gmigrate").await.unwrap();
        assert!(glued.is_some());
        let ids = ids_held(&database).await;
        assert_eq!(ids.len(), 5, "{ids:?}");
    });
}

/// Case 43: NULL is no key. Whatever is a key, the extremes of numbers too, is locked as it is.
#[test]
fn every_number_is_locked_as_it_is() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut server = database.connect().await;
        let nothing: Option<bool> = ask(&mut server, "select pg_try_advisory_lock(null)").await;
        assert_eq!(nothing, None);
        let locks = node(&database).await;
        for id in [0, -1, 1, i64::MIN, i64::MAX, 1 << 32, -(1 << 32)] {
            let guard = locks.acquire(id).await.unwrap();
            assert_eq!(ids_held(&database).await, [id]);
            guard.release().await.unwrap();
        }
        for (class, object) in [(0, 0), (-1, 1), (i32::MIN, i32::MAX), (i32::MAX, i32::MIN)] {
            let guard = locks.acquire((class, object)).await.unwrap();
            let held = keys_held(&database).await;
            assert_eq!(held.len(), 1, "{held:?}");
            let pair = (held[0].classid.cast_signed(), held[0].objid.cast_signed());
            assert_eq!((pair, held[0].objsubid), ((class, object), 2));
            guard.release().await.unwrap();
        }
    });
}

/// Case 43, of its kind: an answer other than true is no grant, and a role's own function of the
/// same name is not the server's.
#[test]
fn a_grant_is_what_the_server_holds() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut server = database.connect().await;
        for answer in ["null", "true"] {
            execute(
                &mut server,
                &format!(
                    "create or replace function public.pg_try_advisory_lock(bigint) \
                     returns boolean language sql as 'select {answer}::boolean'"
                ),
            )
            .await;
            let name = database.name();
            let path = format!("alter database {name} set search_path = public, pg_catalog");
            execute(&mut server, &path).await;
            let locks = node(&database).await;
            let guard = locks.try_acquire(43).await.unwrap();
            assert_eq!(
                guard.is_some(),
                ids_held(&database).await == [43],
                "{answer}"
            );
            drop(guard);
            locks.shutdown().await.unwrap();
        }
    });
}

/// Case 46, without a standby: advisory locks are per database.
#[test]
fn locks_are_per_database() {
    run(async || {
        let database = TestDatabase::create().await;
        let second = TestDatabase::create().await;
        let (here, there) = (node(&database).await, node(&second).await);
        let key = LockKey::new("daily-report").unwrap();
        let _here = here.try_acquire(&key).await.unwrap().unwrap();
        let _there = there.try_acquire(&key).await.unwrap().unwrap();
        assert_eq!(ids_held(&database).await, ids_held(&second).await);
        assert!(
            node(&database)
                .await
                .try_acquire(&key)
                .await
                .unwrap()
                .is_none()
        );
        // and who holds it is told of this database only
        assert_eq!(here.inspect(&key).await.unwrap().len(), 1);
    });
}

//! The least that a database role needs: the recipe of the book's chapter on security.

use sqlock::{Locks, XactBackend, ttl::TtlOptions};
use sqlock_postgres::preflight::{Backend, examine, recommend};
use sqlock_tests::TestDatabase;
use sqlx::postgres::PgPoolOptions;

use crate::support::{SessionOptions, ask, execute, run};

const CHAPTER: &str = include_str!("../../../docs/src/security.md");

/// The SQL of the chapter, with names of this test's own.
fn recipe(heading: &str, database: &TestDatabase, role: &str) -> String {
    let (_, rest) = CHAPTER.split_once(heading).expect("the heading");
    let (_, rest) = rest.split_once("```sql\n").expect("a recipe");
    let (sql, _) = rest.split_once("```").expect("its end");
    sql.replace("app_locks", role)
        .replace("app_db", database.name())
}

#[test]
fn the_recipe_is_enough_and_gives_no_more() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut admin = database.connect().await;
        let role = format!("locks_of_{}", database.name());
        let of_all = recipe("### For all backends", &database, &role);
        execute(&mut admin, &of_all).await;
        let options = database.options().username(&role);

        let report = examine(&options).await.unwrap();
        assert_eq!(recommend(&report).backend, Some(Backend::Session));
        let session = SessionOptions::new().connect_with(options.clone()).await;
        let locks = Locks::new(session.unwrap());
        let guard = locks.acquire("k").await.unwrap();
        let pool = PgPoolOptions::new().connect_lazy_with(options.clone());
        let xact = Locks::new(XactBackend::new(pool));
        assert!(xact.try_acquire("k").await.unwrap().is_none());
        assert_eq!(xact.inspect("k").await.unwrap().len(), 1);
        guard.release().await.unwrap();
        xact.acquire("k").await.unwrap().commit().await.unwrap();
        locks.shutdown().await.unwrap();

        // by one who may create it, once
        let owner = TtlOptions::new().connect_with(database.options()).unwrap();
        owner.create_table().await.unwrap();
        let leases = TtlOptions::new().connect_with(options).unwrap();
        let locks = Locks::new(leases);
        assert!(locks.try_acquire("k").await.is_err(), "not yet");
        let of_leases = recipe("### For leases", &database, &role);
        execute(&mut admin, &of_leases).await;
        locks.backend().create_table().await.unwrap();
        let lease = locks.acquire("k").await.unwrap();
        assert_eq!(locks.inspect("k").await.unwrap().len(), 1);
        lease.release().await.unwrap();
        locks
            .backend()
            .sweep(std::time::Duration::ZERO)
            .await
            .unwrap();
        locks.shutdown().await.unwrap();

        for (may_not, privilege) in [
            ("has_schema_privilege", "'public', 'create'"),
            (
                "has_database_privilege",
                "current_database(), 'create, temporary'",
            ),
            (
                "has_table_privilege",
                "'sqlock_leases', 'truncate, references, trigger'",
            ),
            (
                "has_sequence_privilege",
                "'sqlock_leases_seq', 'select, update'",
            ),
        ] {
            let question = format!("select {may_not}('{role}', {privilege})");
            assert!(!ask::<bool>(&mut admin, &question).await, "{question}");
        }
        let drop = format!("drop owned by {role}; drop role {role}");
        execute(&mut admin, &drop).await;
    });
}

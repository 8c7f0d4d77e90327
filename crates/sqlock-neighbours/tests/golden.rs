//! Numbers that the real libraries gave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use sqlock_core::{
    AdvisoryId::{self, Bigint, Pair},
    InvalidKey, LockKey, RESERVED_PAIR_CLASSES,
};
use sqlock_neighbours::{
    django_pglock, dotnet, flyway, golang_migrate, hashtext, hashtextextended, rails_migrations,
    sqlalchemy_dlock, sqlx, sqlx_migrations, with_advisory_lock, with_advisory_lock_prefixed,
};

const LONG: &str = "a name of more than nine characters, with größe";

/// Of `pglock.advisory` in django-pglock 1.8.0.
#[test]
fn of_django_pglock() {
    for (name, id) in [
        ("a", -3_837_880_752_741_967_926),
        ("daily-report", -2_551_168_849_325_057_047),
        ("invoice/42", 5_328_336_150_650_300_250),
        ("ロック", -8_659_086_220_981_491_916),
        (LONG, -7_813_907_722_019_732_562),
        ("", 1_449_310_910_991_872_227),
    ] {
        assert_eq!(django_pglock(name).id(), Bigint(id), "{name}");
    }
}

/// Of `PostgresqlSadLock.convert` in sqlalchemy-dlock 0.9.0, on x86-64.
#[test]
fn of_sqlalchemy_dlock() {
    for (name, id) in [
        ("a", 3_405_396_810_240_292_928),
        ("daily-report", 3_660_988_262_889_610_215),
        ("invoice/42", -3_525_452_922_641_788_291),
        ("ロック", 7_075_526_956_531_042_285),
        (LONG, -7_257_621_680_687_197_062),
        ("", -5_426_141_060_434_712_860),
    ] {
        assert_eq!(sqlalchemy_dlock(name).id(), Bigint(id), "{name}");
    }
    let bytes = sqlalchemy_dlock(b"\xff\x00");
    assert_eq!(bytes.id(), Bigint(-1_503_969_092_144_797_301));
}

/// Of `PgAdvisoryLock::new` in sqlx 0.9.0; the first is in its documentation.
#[test]
fn of_sqlx() {
    for (name, id) in [
        (
            "my first Postgres advisory lock!",
            -5_560_419_505_042_474_287,
        ),
        ("a", -2_537_430_154_616_479_981),
        ("daily-report", -1_804_587_269_225_401_747),
        ("invoice/42", -1_808_771_845_599_862_180),
        ("ロック", 726_752_683_267_487_559),
        (LONG, 6_789_571_126_883_557_874),
        ("", 8_559_922_135_585_776_354),
    ] {
        assert_eq!(sqlx(name).id(), Bigint(id), "{name}");
    }
}

/// What the migrator of sqlx 0.9.0 held in databases of these names, by the word of `pg_locks`.
#[test]
fn of_the_migrator_of_sqlx() {
    for (database, id) in [
        ("app", 3_469_795_979_745_788_610),
        ("app_production", 2_307_577_224_067_799_112),
        ("größe", 1_581_780_532_360_263_566),
        ("postgres", 368_907_709_894_077_238),
    ] {
        assert_eq!(sqlx_migrations(database).id(), Bigint(id), "{database}");
    }
}

/// Of `ActiveRecord::Migrator` in Active Record 6.1.7, for a database of that name.
#[test]
fn of_rails() {
    for (database, id) in [
        ("app", 6_939_591_962_871_035_475),
        ("app_production", 4_615_154_450_383_096_620),
        ("größe", 3_163_561_066_261_125_285),
        ("postgres", 737_815_420_147_457_505),
    ] {
        assert_eq!(rails_migrations(database).id(), Bigint(id), "{database}");
    }
}

/// Of `lock_keys_for` in `with_advisory_lock` 7.5.0, with Ruby 3.1.
#[test]
fn of_with_advisory_lock() {
    for (name, number) in [
        ("a", 1_756_872_259),
        ("daily-report", 1_055_293_738),
        ("invoice/42", 1_885_687_413),
        ("ロック", 1_668_811_237),
        (LONG, 1_929_668_271),
    ] {
        let key = with_advisory_lock(name).unwrap();
        assert_eq!(key.id(), Pair(number, 0), "{name}");
    }
    for (prefix, number) in [
        (7, 7),
        (-1, 2_147_483_647),
        (99, 99),
        (5_000_000_000, 705_032_704),
        (0, 0),
    ] {
        let key = with_advisory_lock_prefixed(prefix, "daily-report").unwrap();
        assert_eq!(key.id(), Pair(1_055_293_738, number), "{prefix}");
    }
}

/// Of `GenerateAdvisoryLockId` in golang-migrate 4.18, with Go 1.19.
#[test]
fn of_golang_migrate() {
    for (database, schema, id) in [
        ("app", "public", 1_787_120_056),
        ("app_production", "billing", 3_099_301_913),
        ("größe", "public", 3_020_591_722),
        ("postgres", "public", 143_310_882),
    ] {
        let key = golang_migrate(database, schema, "schema_migrations");
        assert_eq!(key.id(), Bigint(id), "{database}");
    }
    // in its own tests
    let key = golang_migrate("database_name", "schema_name_1", "schema_name_2");
    assert_eq!(key.id(), Bigint(3_743_845_847));
}

/// Of `hashtext(name)` and `hashtextextended(name, 0)` in PostgreSQL 15, on x86-64.
#[test]
fn of_hashtext() {
    for (name, short, long) in [
        ("", -1_477_818_771, -6_939_563_903_564_495_251),
        ("a", 1_075_015_857, 3_591_986_179_850_072_241),
        ("abcdefgh", -1_960_928_205, -8_882_191_227_074_733_005),
        ("abcdefghi", -92_131_489, -3_278_210_106_038_014_113),
        ("abcdefghijk", -1_483_803_693, 3_112_909_444_737_856_467),
        ("daily-report", 1_067_228_265, 3_601_636_533_269_732_457),
        ("daily-reports", -106_411_209, 7_634_078_457_548_786_487),
        ("ロック", -1_334_324_483, -5_411_248_027_917_102_339),
        (LONG, 152_835_365, 6_225_580_719_479_723_301),
    ] {
        assert_eq!(hashtext(name).id(), Bigint(short), "{name}");
        assert_eq!(hashtextextended(name).id(), Bigint(long), "{name}");
    }
}

/// `String.hashCode()` is Java 17's; the number that it is added to, and the quotes, are read in the
/// source of Flyway 13, which was not run.
#[test]
fn of_flyway() {
    for (schema, table, id) in [
        ("public", "flyway_schema_history", 77_433_833_903_597),
        ("billing", "flyway_schema_history", 77_429_990_734_495),
        ("größe", "历史🔒", 77_431_905_343_411),
        ("a\"b", "t", 77_432_167_190_042),
    ] {
        assert_eq!(flyway(schema, table).id(), Bigint(id), "{schema}.{table}");
    }
}

/// Of `PostgresAdvisoryLockKey` in DistributedLock.Postgres 1.3, whose file was compiled and run by
/// Mono, for want of .NET; the hash of eighteen characters is in its own tests, too.
#[test]
fn of_dotnet() {
    for (name, id) in [
        ("", Pair(2_147_483_647, -1)),
        ("a", Pair(-1_023_410_177, -1)),
        ("A", Pair(-2_097_152_001, -1)),
        ("billing", Pair(-978_884_915, 1_001_635_839)),
        ("job:1234", Pair(-708_897_882, 748_270_719)),
        ("nightly-r", Pair(-576_242_034, -1_690_522_140)),
        ("~~~~~~~~~", Pair(-33_818_641, -541_098_244)),
        ("0123456789abcdef", Bigint(81_985_529_216_486_895)),
        ("7FFFFFFFFFFFFFFF", Bigint(i64::MAX)),
        ("ffffffffffffffff", Bigint(-1)),
        ("DEADBEEF,00000007", Pair(-559_038_737, 7)),
        ("deadbeef,cafebabe", Pair(-559_038_737, -889_275_714)),
        // ten characters, and what is nearly a number, are hashed
        ("nightly-rp", Bigint(-3_233_773_867_370_924_203)),
        ("0x3456789abcdef0", Bigint(8_678_274_565_535_610_751)),
        (" 123456789abcdef", Bigint(6_226_420_575_381_029_296)),
        ("+123456789abcdef", Bigint(-4_498_309_056_702_061_594)),
        ("12345678;12345678", Bigint(5_496_599_001_612_153_450)),
        ("daily-report", Bigint(3_762_250_416_075_791_230)),
        ("invoice/42", Bigint(-8_887_623_800_851_753_663)),
        ("ロック", Bigint(3_024_780_160_884_380_768)),
        ("größe", Bigint(-4_710_284_785_176_295_789)),
        ("some very long name", Bigint(1_765_484_347_666_752_899)),
        (&"漢".repeat(18), Bigint(-5_707_277_204_051_710_361)),
    ] {
        assert_eq!(dotnet(name).unwrap().id(), id, "{name}");
    }
}

/// A pair that sqlock itself needs is an error, and no other lock.
#[test]
fn reserved_pairs_are_refused() {
    let class = *RESERVED_PAIR_CLASSES.start();
    let refused = Err(InvalidKey::ReservedPair { class });
    assert_eq!(dotnet("73716c00,00000001"), refused);
    assert!(matches!(
        dotnet("9\\-A"),
        Err(InvalidKey::ReservedPair { .. })
    ));
    assert_eq!(
        dotnet("73716bff,00000001").unwrap().id(),
        Pair(class - 1, 1)
    );
    assert_eq!(dotnet("a\0"), Err(InvalidKey::ContainsNul));

    // found by trying numbers in turn
    let class = 1_936_813_308;
    let refused = Err(InvalidKey::ReservedPair { class });
    assert_eq!(with_advisory_lock("11667852"), refused);
}

/// None of them is the lock of the same name.
#[test]
fn they_are_other_locks_than_the_names() {
    let name = "daily-report";
    let mut ids: Vec<AdvisoryId> = [
        LockKey::new(name).unwrap(),
        sqlx(name),
        sqlx_migrations(name),
        rails_migrations(name),
        django_pglock(name),
        sqlalchemy_dlock(name),
        dotnet(name).unwrap(),
        with_advisory_lock(name).unwrap(),
    ]
    .iter()
    .map(LockKey::id)
    .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
}

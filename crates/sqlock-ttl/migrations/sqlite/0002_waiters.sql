-- Those who wait for leases, where `SqliteOptions::queue` is used: one row for each waiter and key.
-- Times are those of the leases.
create table if not exists "sqlock_leases_waiters" (
  name text not null,
  waiter text not null,
  priority integer not null,
  ticket integer not null,
  boot text not null,
  since integer not null,
  expires_at integer not null,
  host text,
  pid integer,
  label text,
  primary key (name, waiter)
) without rowid;

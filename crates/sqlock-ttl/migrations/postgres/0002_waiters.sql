-- Those who wait for leases, where `TtlOptions::queue` or `TtlOptions::listen_on` is used: one row
-- for each waiter and key. Not written to the log: after a crash of the server it is empty, and
-- those who still wait come back to the places that they had.
create unlogged table if not exists "public"."sqlock_leases_waiters" (
  name text collate "C" not null,
  waiter text not null,
  priority smallint not null,
  ticket bigint not null,
  since timestamptz not null,
  expires_at timestamptz not null,
  listens boolean not null,
  host text,
  pid bigint,
  label text,
  primary key (name, waiter)
) with (fillfactor = 50);

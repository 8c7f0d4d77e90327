-- The leases of sqlock, for the processes of one host.
--
-- Times are microseconds of the clock that the file goes by: the host's time since the boot that
-- `boot` names, which does not step and which all processes share. What another boot wrote has
-- ended: its processes are gone.
create table if not exists "sqlock_leases" (
  name text primary key not null,
  owner text,
  token integer not null,
  boot text,
  acquired_at integer,
  expires_at integer,
  host text,
  pid integer,
  label text,
  payload text
) without rowid;

-- One row, which the first to open the file writes. No token is below the floor, so that none is
-- given twice after a row was removed. The clock is `boot` or `wall`.
create table if not exists "sqlock_leases_meta" (
  id integer primary key not null check (id = 1),
  floor integer not null,
  clock text not null
);

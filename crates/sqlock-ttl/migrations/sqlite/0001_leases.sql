-- The leases of sqlock, for the processes of one host.
--
-- Times are microseconds of the host's clock since the boot that `boot` names, which does not step
-- and which all processes share. What another boot wrote has ended: its processes are gone.
create table if not exists sqlock_leases (
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

-- No token is below the floor, so that none is given twice after a row was removed.
create table if not exists sqlock_floor (
  id integer primary key check (id = 1),
  token integer not null
);
insert into sqlock_floor (id, token) values (1, 0) on conflict do nothing;

-- The leases of sqlock. A row is kept when its lease is given back, and says who had it last.
-- Half of each page stays free, and nothing but the name is indexed, so that rows are rewritten in
-- place.
create table if not exists "public"."sqlock_leases" (
  name text collate "C" primary key,
  owner text,
  token bigint not null,
  acquired_at timestamptz,
  expires_at timestamptz,
  host text,
  pid bigint,
  label text,
  payload text
) with (fillfactor = 50);

-- No token is below what this gives, so that none is given twice after a row was removed.
create sequence if not exists "public"."sqlock_leases_seq" as bigint;

-- Fencing tokens of sqlock's advisory locks, on PostgreSQL 15 and newer. Numbers come from an
-- unlogged sequence, which costs nothing and is reset by a crash; so they are counted from a base
-- that rises whenever that may have happened.

-- All tokens that were ever given are at most `reserved`. This is what a crash must not forget.
create table "public"."sqlock_fencing" (
  only_row boolean primary key default true check (only_row),
  reserved bigint not null
);
insert into "public"."sqlock_fencing" (reserved) values (0);

-- What the sequence's numbers are added to, and how far that may go. Gone after a crash or a
-- promotion; and told by `started` and `relation` where it is another server's, or a copy.
create unlogged table "public"."sqlock_fencing_now" (
  only_row boolean primary key default true check (only_row),
  base bigint not null,
  up_to bigint not null,
  started timestamptz not null,
  relation oid not null
);

create unlogged sequence "public"."sqlock_fencing_seq" as bigint;

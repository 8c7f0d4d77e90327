-- Fencing tokens of sqlock's advisory locks, on PostgreSQL 12 to 14, which have no unlogged
-- sequences: the numbers are a row's, and each draw is a commit.

-- All tokens that were ever given are at most `reserved`.
create table "public"."sqlock_fencing" (
  only_row boolean primary key default true check (only_row),
  reserved bigint not null
);
insert into "public"."sqlock_fencing" (reserved) values (0);

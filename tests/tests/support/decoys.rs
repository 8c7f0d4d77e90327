//! What the server's functions and operators are called, and is not the server's.

use sqlock_tests::TestDatabase;

use super::execute;

/// Of the functions and operators that locks could use, one of the same name and types, which fails
/// when it is called, in a schema that every later connection to this database has first.
pub(crate) async fn put_decoys_first(database: &TestDatabase) {
    let mut admin = database.connect().await;
    execute(&mut admin, DECOYS).await;
    let path = "search_path = decoys, public, pg_catalog";
    let set = format!("alter database {} set {path}", database.name());
    execute(&mut admin, &set).await;
    // that they are there, and first
    let mut victim = database.connect().await;
    for called in ["pg_try_advisory_xact_lock(1)", "1::bigint = 1::bigint"] {
        let select = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("select {called}")));
        let error = select.execute(&mut victim).await.unwrap_err();
        assert!(error.to_string().contains("decoy"), "{called}: {error}");
    }
}

const DECOYS: &str = r"
create schema decoys;
do $do$
declare
  one record;
begin
  for one in
    select p.oid, p.proname, pg_get_function_identity_arguments(p.oid) as arguments,
           pg_get_function_result(p.oid) as result
    from pg_proc as p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and not p.proretset
      and 'anyelement'::regtype <> all (p.proargtypes::oid[])
      and (p.proname like 'pg\_try\_advisory%' or p.proname like 'pg\_advisory%'
        or p.proname in ('set_config', 'current_setting', 'clock_timestamp', 'now', 'version',
          'pg_backend_pid', 'pg_is_in_recovery', 'pg_notify', 'host', 'inet_server_addr',
          'inet_server_port', 'pg_postmaster_start_time', 'nextval', 'to_regclass', 'format_type',
          'ceil', 'date_part', 'extract', 'current_database', 'transaction_timestamp',
          'statement_timestamp'))
  loop
    execute format(
      'create function decoys.%I(%s) returns %s language plpgsql as
       $f$ begin raise exception ''the decoy %s was called''; end $f$',
      one.proname, one.arguments, one.result, one.proname);
  end loop;
  for one in
    select o.oprname as name, o.oprleft::regtype as l, o.oprright::regtype as r,
           o.oprresult::regtype as result, row_number() over () as number
    from pg_operator as o
    where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprkind = 'b'
      and o.oprname in ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '&', '<<', '>>', '||')
      and o.oprleft = any (array['int2', 'int4', 'int8', 'text', 'name', 'oid', 'float8', 'numeric',
        'bool', 'interval', 'timestamptz', 'xid', 'regclass']::regtype[])
      and o.oprright = any (array['int2', 'int4', 'int8', 'text', 'name', 'oid', 'float8', 'numeric',
        'bool', 'interval', 'timestamptz', 'xid', 'regclass']::regtype[])
  loop
    execute format(
      'create function decoys.operator_%s(%s, %s) returns %s language plpgsql as
       $f$ begin raise exception ''the decoy %s was called''; end $f$',
      one.number, one.l, one.r, one.result, one.name);
    execute format(
      'create operator decoys.%s (function = decoys.operator_%s, leftarg = %s, rightarg = %s)',
      one.name, one.number, one.l, one.r);
  end loop;
end
$do$;
";

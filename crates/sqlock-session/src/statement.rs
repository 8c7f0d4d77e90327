//! The statements that take and free locks.
//!
//! Rows are served in order, and the columns of a row from left to right: the wait slot is taken
//! before the key is tried, and looked at after the key was freed. Everything that wakes waiters
//! rests on that; the conformance suite would show if it were not so.

use sqlock_core::{AdvisoryId, Mode};
use sqlock_postgres::{TokenKind, TokenSource};
use sqlx::{Row as _, postgres::PgRow};

use crate::{
    batch::{Outcome, Row, Step, Waiting},
    server_lock::OnServer,
};

/// Codes: 0 to 3 unlock, 4 to 7 try, 8 and 9 look for waiters and writers, 10 stop waiting. Added
/// to those of unlock and try: 1 for shared, 2 for a pair. 16 and 32: the slot and the gate are
/// held (10: are to be given back). 64: as a waiter. 128: with a token. A pair is packed into `k`.
const HAS_SLOT: i16 = 16;
const HAS_GATE: i16 = 32;
const AS_WAITER: i16 = 64;
const WITH_TOKEN: i16 = 128;

macro_rules! key_functions {
    () => {
        "case o & 15
          when 0 then pg_advisory_unlock(k)
          when 1 then pg_advisory_unlock_shared(k)
          when 2 then pg_advisory_unlock((k >> 32)::int, (k << 32 >> 32)::int)
          when 3 then pg_advisory_unlock_shared((k >> 32)::int, (k << 32 >> 32)::int)
          when 4 then pg_try_advisory_lock(k)
          when 5 then case when pg_try_advisory_xact_lock_shared(1936813057, h)
                      then pg_try_advisory_lock_shared(k) end
          when 6 then pg_try_advisory_lock((k >> 32)::int, (k << 32 >> 32)::int)
          when 7 then case when pg_try_advisory_xact_lock_shared(1936813057, h)
                      then pg_try_advisory_lock_shared((k >> 32)::int, (k << 32 >> 32)::int) end
        end"
    };
}

macro_rules! rows {
    () => {
        "unnest($1::smallint[], $2::bigint[], $3::int[])"
    };
}

macro_rules! looks {
    () => {
        "case when o & 15 in (0, 1, 2, 3, 8, 10) then pg_try_advisory_xact_lock(1936813056, h)
             when o & 15 = 9 then pg_try_advisory_xact_lock_shared(1936813057, h)
        end"
    };
}

macro_rules! plain {
    () => {
        concat!(
            "select pg_backend_pid(), ",
            key_functions!(),
            ", ",
            looks!(),
            " from "
        )
    };
}

/// Unlocks, looks and plain tries.
pub(crate) const PLAIN: &str = concat!(plain!(), rows!(), " as t(o, k, h)");

macro_rules! waiting_columns {
    () => {
        "case when slot and done and o & 64 <> 0
            then not pg_advisory_unlock_shared(1936813056, h) else slot end as slot,
       case when gate and done and o & 64 <> 0
            then not pg_advisory_unlock(1936813057, h) else gate end as gate"
    };
}

macro_rules! steps {
    () => {
        concat!(
            "(select o, h, i,
       case when o & 15 = 10 and o & 16 <> 0 then not pg_advisory_unlock_shared(1936813056, h)
            when o & 64 = 0 then false
            when o & 16 <> 0 then true
            else pg_try_advisory_lock_shared(1936813056, h) end as slot,
       case when o & 15 = 10 and o & 32 <> 0 then not pg_advisory_unlock(1936813057, h)
            when o & 64 = 0 or o & 1 = 1 then false
            when o & 32 <> 0 then true
            else pg_try_advisory_lock(1936813057, h) end as gate, ",
            key_functions!(),
            " as done, ",
            looks!(),
            " as quiet from "
        )
    };
}

/// `offset 0` keeps what is inside from being moved, and with it the order of the columns.
macro_rules! all_steps {
    () => {
        concat!(
            steps!(),
            rows!(),
            " with ordinality as t(o, k, h, i) offset 0) as s"
        )
    };
}

macro_rules! with_waiters {
    () => {
        concat!(
            "select pg_backend_pid(), done, quiet, ",
            waiting_columns!(),
            " from "
        )
    };
}

/// All of them. A waiter that is granted the key gives back its slot and gate in the same row.
/// (`case`, since the order of `and` and `or` is not promised.)
pub(crate) const WITH_WAITERS: &str = concat!(with_waiters!(), all_steps!());

/// The same for one row, with `k` and `h` as parameters. Its code stands in the text, so that the
/// server leaves out what other codes need when it plans, and makes no set of rows.
pub(crate) fn lone(code: i16, step: Step) -> String {
    let row = format!("(select {code}::smallint, $1::bigint, $2::int, 1)");
    if step.is_about_waiting() {
        let (columns, steps) = (with_waiters!(), steps!());
        format!("{columns}{steps}{row} as t(o, k, h, i) offset 0) as s")
    } else {
        format!("{}{row} as t(o, k, h, i)", plain!())
    }
}

/// A lock is held after the row, and somebody can be given it: a token is drawn then, and not
/// before.
const DRAWS: &str = "o & 128 <> 0 and (o & 15 in (8, 9) or done)";

/// All of them, and a token for each lock that is held after its row.
pub(crate) fn with_tokens(tokens: &TokenSource) -> String {
    let (waiting, steps) = (waiting_columns!(), all_steps!());
    match tokens.kind() {
        TokenKind::Sequence => format!(
            "select pg_backend_pid(), done, quiet, {waiting},
               case when {DRAWS} then {} end, {} from {steps}",
            tokens.next_token(),
            tokens.up_to()
        ),
        // the row is written when all locks have been tried, once for all of them
        _ => format!(
            "with t as materialized (
               select i, done, quiet, {waiting}, ({DRAWS}) is true as draws from {steps}),
             n as materialized (select count(*) filter (where draws) as n from t),
             u as ({})
             select pg_backend_pid(), done, quiet, slot, gate,
               case when draws then
                 (select reserved from u) - (select n from n) + sum(draws::int) over (order by i)
               end, (select reserved from u)
             from t order by i",
            tokens.advance_row()
        ),
    }
}

/// The three parameters of a row.
pub(crate) fn encode(row: &Row, fenced: Fenced) -> (i16, i64, i32) {
    let mode = |mode: Mode| i16::from(mode == Mode::Shared);
    let pair = match row.id {
        AdvisoryId::Bigint(_) => 0,
        AdvisoryId::Pair(..) => 2,
    };
    let flags =
        |waiting: Waiting| i16::from(waiting.slot) * HAS_SLOT + i16::from(waiting.gate) * HAS_GATE;
    let code = match row.step {
        Step::Unlock(m) => pair + mode(m),
        Step::Try(m) => 4 + pair + mode(m),
        Step::LookForWaiter => 8,
        Step::LookForWriter => 9,
        Step::StopWaiting(waiting) => 10 + flags(waiting),
        Step::TryAsWaiter { mode: m, waiting } => 4 + pair + mode(m) + AS_WAITER + flags(waiting),
    };
    let with_token = match fenced {
        Fenced::Yes if row.step.may_grant() => WITH_TOKEN,
        _ => 0,
    };
    (code + with_token, row.id.packed(), row.id.slot().0)
}

/// Whether tokens are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    Yes,
    No,
}

/// The server process that answered, and its answer.
pub(crate) fn decode(row: &PgRow) -> sqlx::Result<(i32, Outcome)> {
    let flag = |index| -> sqlx::Result<bool> {
        // NULL is no: only true means that a lock was had
        Ok(row.try_get::<Option<bool>, _>(index)?.unwrap_or(false))
    };
    let has_waiting = row.len() > 3;
    let waiting = Waiting {
        slot: has_waiting && flag(3)?,
        gate: has_waiting && flag(4)?,
    };
    let outcome = Outcome {
        done: flag(1)?,
        quiet: flag(2)?,
        waiting,
        token: if row.len() > 5 {
            TokenSource::token(row, 5)?
        } else {
            None
        },
    };
    Ok((row.try_get(0)?, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_lock::{GATE_CLASS, SLOT_CLASS};

    #[test]
    fn the_statements_name_the_reserved_classes() {
        for class in [SLOT_CLASS, GATE_CLASS] {
            assert!(WITH_WAITERS.contains(&format!("({class}, h)")), "{class}");
            assert!(PLAIN.contains(&format!("({class}, h)")), "{class}");
        }
    }

    #[test]
    fn a_lone_row_has_the_columns_of_its_step() {
        let waiting = Waiting::default();
        let id = AdvisoryId::Bigint(1);
        let mode = Mode::Exclusive;
        for step in [
            Step::Try(mode),
            Step::TryAsWaiter { mode, waiting },
            Step::StopWaiting(waiting),
        ] {
            let (code, ..) = encode(&Row { id, step }, Fenced::No);
            let statement = lone(code, step);
            assert!(statement.contains(&format!("select {code}::smallint, $1")));
            let has_waiting = statement.contains("as gate") && statement.contains("offset 0");
            assert_eq!(has_waiting, step.is_about_waiting(), "{statement}");
        }
    }

    #[test]
    fn codes_do_not_overlap() {
        let waiting = Waiting {
            slot: true,
            gate: true,
        };
        let id = AdvisoryId::Pair(1, 2);
        let steps = [
            Step::Unlock(Mode::Shared),
            Step::Try(Mode::Shared),
            Step::TryAsWaiter {
                mode: Mode::Exclusive,
                waiting,
            },
            Step::StopWaiting(waiting),
        ];
        let codes = |fenced| steps.map(|step| encode(&Row { id, step }, fenced).0);
        assert_eq!(codes(Fenced::No), [3, 7, 118, 58]);
        assert_eq!(codes(Fenced::Yes), [3, 135, 246, 58]);
    }
}

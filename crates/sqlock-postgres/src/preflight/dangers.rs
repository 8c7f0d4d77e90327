//! Which settings endanger the locks of which backend, why, and what to do.

use super::{
    Backend,
    settings::{Setting, Settings},
};

/// A setting that endangers locks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Danger {
    /// The setting's name.
    pub setting: &'static str,
    /// Its value, with its unit.
    pub value: String,
    /// What it does to locks.
    pub why: &'static str,
    /// What to set instead.
    pub advice: &'static str,
    /// Whose locks. What a backend sets for itself is no danger to it.
    pub backends: &'static [Backend],
}

/// What rules need to know beside the settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    /// The server sees its clients themselves, over TCP: what it does about those that vanish
    /// counts.
    pub(super) sees_clients: bool,
    pub(super) has_replicas: bool,
}

struct Rule {
    setting: &'static str,
    holds: fn(Settings<'_>, Context) -> bool,
    why: &'static str,
    advice: &'static str,
    backends: &'static [Backend],
}

/// After so many seconds a client that vanished without a word should be gone.
const VANISHED: i64 = 300;
/// A process takes a quarter of the server's locks at most; fewer are soon used up.
const FEW_LOCKS: usize = 4 * 128;

use Backend::{Session, Ttl, Xact};

const RULES: [Rule; 11] = [
    Rule {
        setting: "max_locks_per_transaction",
        holds: |settings, _| settings.lock_capacity().is_some_and(|all| all < FEW_LOCKS),
        why: "the server has room for few locks, and a client that uses them up stops new \
              connections for everybody",
        advice: "raise it to 64 or more; it takes a restart",
        backends: &[Session, Xact],
    },
    Rule {
        setting: "idle_in_transaction_session_timeout",
        holds: |settings, _| is_on(settings, "idle_in_transaction_session_timeout"),
        why: "it ends a holder whose transaction is idle while it works elsewhere, and frees its \
              lock",
        advice: "set it to 0 for the role, or above the longest work under a lock",
        backends: &[Xact],
    },
    Rule {
        setting: "transaction_timeout",
        holds: |settings, _| is_on(settings, "transaction_timeout"),
        why: "it ends a holder whose transaction takes longer, and frees its lock",
        advice: "set it to 0 for the role, or above the longest work under a lock",
        backends: &[Xact],
    },
    Rule {
        setting: "statement_timeout",
        holds: |settings, _| is_below(settings, "statement_timeout", 1000),
        why: "statements that take or renew a lock can fail when the server is busy",
        advice: "set it to 0 for the role, or to a second or more",
        backends: &[Xact, Ttl],
    },
    Rule {
        setting: "lock_timeout",
        holds: |settings, _| is_below(settings, "lock_timeout", 100),
        why: "statements that take or renew a lease can fail when another works on its row",
        advice: "set it to 0 for the role, or to 100 ms or more",
        backends: &[Ttl],
    },
    Rule {
        setting: "tcp_keepalives_idle",
        holds: |settings, context| context.sees_clients && keepalive(settings) > VANISHED,
        why: "the lock of a client that vanished without a word while it was idle stays held until \
              keepalives have failed",
        advice: "set tcp_keepalives_idle = 60, tcp_keepalives_interval = 10 and \
                 tcp_keepalives_count = 3",
        backends: &[Xact],
    },
    Rule {
        setting: "tcp_user_timeout",
        holds: |settings, context| {
            let limit = settings.number("tcp_user_timeout").unwrap_or(0);
            context.sees_clients && !(1..=VANISHED * 1000).contains(&limit)
        },
        why: "the lock of a client that vanished while the server was answering it stays held \
              until the operating system gives up, which keepalives do not hasten",
        advice: "set it to 60s",
        backends: &[Xact],
    },
    Rule {
        setting: "client_connection_check_interval",
        holds: |settings, context| {
            let interval = settings.number("client_connection_check_interval");
            context.sees_clients && interval == Some(0)
        },
        why: "a statement goes on after its client has vanished, and takes the lock that it waits \
              for",
        advice: "set it to 1s",
        backends: &[Xact],
    },
    Rule {
        setting: "default_transaction_isolation",
        holds: |settings, _| {
            settings
                .text("default_transaction_isolation")
                .is_some_and(|level| level != "read committed")
        },
        why: "a lock in a transaction of the application's own is refused there, as its snapshot \
              may be older than the lock",
        advice: "begin transactions that take a lock at read committed",
        backends: &[Xact],
    },
    Rule {
        setting: "default_transaction_read_only",
        holds: |settings, _| settings.text("default_transaction_read_only") == Some("on"),
        why: "leases cannot be written",
        advice: "set it to off for the role",
        backends: &[Ttl],
    },
    Rule {
        setting: "synchronous_standby_names",
        holds: |settings, context| {
            context.has_replicas && settings.text("synchronous_standby_names") == Some("")
        },
        why: "replication is asynchronous: a failover loses the last commits, so that a lease may \
              be granted again and its token go back",
        advice: "name a standby in it, or let the resource check tokens and expect the gap",
        backends: &[Ttl],
    },
];

pub(super) fn dangers(settings: &[Setting], context: Context) -> Vec<Danger> {
    let known = Settings(settings);
    let value = |name| {
        let setting = settings.iter().find(|setting| setting.name == name);
        setting.map_or_else(String::new, ToString::to_string)
    };
    RULES
        .iter()
        .filter(|rule| !settings.is_empty() && (rule.holds)(known, context))
        .map(|rule| Danger {
            setting: rule.setting,
            value: value(rule.setting),
            why: rule.why,
            advice: rule.advice,
            backends: rule.backends,
        })
        .collect()
}

fn is_on(settings: Settings<'_>, name: &str) -> bool {
    settings.number(name).is_some_and(|value| value > 0)
}

fn is_below(settings: Settings<'_>, name: &str, least: i64) -> bool {
    settings
        .number(name)
        .is_some_and(|value| value > 0 && value < least)
}

/// Seconds until keepalives have found that a client is gone.
fn keepalive(settings: Settings<'_>) -> i64 {
    let number = |name| settings.number(name).unwrap_or(0);
    number("tcp_keepalives_interval")
        .saturating_mul(number("tcp_keepalives_count"))
        .saturating_add(number("tcp_keepalives_idle"))
}

//! The command line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use sqlock::{InvalidKey, LockKey};

use crate::{exit::Code, target::Target};

/// Distributed locks for those who run PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "sqlock", version, about, max_term_width = 100, after_help = LOGGING)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Say more on standard error; twice and thrice for still more.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Run),
    Doctor(Doctor),
    #[command(subcommand, name = "__exec", hide = true)]
    Exec(Exec),
}

/// Run a command while holding a lock, so that of all machines that do the same only one runs it.
///
/// The lock is taken before the command starts and released when it has ended. Whatever ends the
/// lock ends the command: where the connection to the server is lost, or a lease could not be
/// renewed, the command gets SIGTERM, and SIGKILL after the grace period.
#[derive(Debug, Args)]
#[command(after_help = "See --help for exit codes and examples.", after_long_help = MORE_ON_RUN)]
pub(crate) struct Run {
    /// The server, postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    ///
    /// Others can read the arguments of a process; a password is safer in the variable, or in
    /// PGPASSWORD or ~/.pgpass.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) url: Option<Target>,

    /// How the lock is held. Without it: `auto` where there is a server, or else `sqlite`.
    #[arg(long, value_enum)]
    pub(crate) backend: Option<Backend>,

    /// The file of the backend `sqlite`, on a local disk; goes before a URL. Without it:
    /// `sqlock/locks.db` in the user's state directory.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,

    /// For how long a lease is valid unless it is renewed, which happens by itself: the time after
    /// which others get the lock of a machine that died. 30s without it.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Option<Duration>,

    /// For how long a lease stays taken from its beginning on, even if CMD ends before: for jobs
    /// that are shorter than the differences of the machines' clocks.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) hold_at_least: Option<Duration>,

    /// What others see of who holds the lock.
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Wait no longer than this for the lock: 30s, 5m, 1h 30m. Without it, and without --no-wait,
    /// wait for as long as it takes.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    /// Do not wait: where another holds the lock, exit at once.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Run beside others that use --shared, and exclude those that do not: many readers, or one
    /// writer.
    #[arg(long)]
    pub(crate) shared: bool,

    /// Give an advisory lock a fencing token too, in `SQLOCK_TOKEN`. Its tables are created in the
    /// schema `public` where they are missing. Leases always have one.
    #[arg(long)]
    pub(crate) fencing: bool,

    /// Exit with this code where others hold the lock, or the wait was in vain.
    #[arg(long, value_name = "N", default_value_t = Code::CONFLICT.0)]
    pub(crate) conflict_exit_code: u8,

    /// Exit with this code where the lock was lost while the command ran.
    #[arg(long, value_name = "N", default_value_t = Code::LOST.0)]
    pub(crate) lost_exit_code: u8,

    /// When the lock is lost, how long the command has to end after SIGTERM before it gets SIGKILL.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) grace: Duration,

    /// The name of the lock, up to 512 bytes.
    #[arg(value_name = "KEY", value_parser = parse_key)]
    pub(crate) key: LockKey,

    /// The command and its arguments.
    #[arg(value_name = "CMD", last = true, required = true, num_args = 1..)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// `session`, or `xact` where a transaction pooler is in between. The two exclude each other, so
    /// that machines may come by different ways.
    Auto,
    /// An advisory lock of a PostgreSQL session; not through a transaction pooler.
    Session,
    /// An advisory lock of a PostgreSQL transaction, through a transaction pooler too. The transaction
    /// is open, and takes one of the pooler's server connections, for as long as CMD runs: not for
    /// jobs of hours.
    Xact,
    /// A lease in a table of PostgreSQL, which is created where it is missing; through any pooler.
    Ttl,
    /// A lease in a file, for the processes of one machine; without a server.
    Sqlite,
}

/// Tell what the server behind a URL is, and which backend to use on it.
///
/// Its version and role, whether a pooler is in between and in which mode, whether its advisory
/// locks are real, which of its settings endanger locks, and what to do about them. Nothing is
/// changed, and no lock is taken on a server that says that it is PostgreSQL.
#[derive(Debug, Args)]
#[command(after_help = MORE_ON_DOCTOR)]
pub(crate) struct Doctor {
    /// The server, postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    ///
    /// Others can read the arguments of a process; a password is safer in the variable, or in
    /// PGPASSWORD or ~/.pgpass.
    #[arg(value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) url: Option<Target>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// How long to wait for the server.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,
}

impl Doctor {
    /// The URL that was given; an empty variable gives none.
    pub(crate) fn target(&self) -> Option<&Target> {
        self.url.as_ref().filter(|url| !url.reveal().is_empty())
    }
}

/// What `sqlock run` starts in between: see the module `guardian`.
#[derive(Debug, Subcommand)]
pub(crate) enum Exec {
    Guard {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    Program {
        #[arg(long)]
        parent: i32,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// How long to wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Within(Duration),
    Endless,
}

impl Run {
    pub(crate) fn patience(&self) -> Patience {
        match self.wait {
            _ if self.no_wait => Patience::None,
            Some(Duration::ZERO) => Patience::None,
            Some(limit) => Patience::Within(limit),
            None => Patience::Endless,
        }
    }

    /// The URL that was given; an empty variable gives none.
    pub(crate) fn target(&self) -> Option<&Target> {
        self.url.as_ref().filter(|url| !url.reveal().is_empty())
    }
}

fn parse_key(text: &str) -> Result<LockKey, InvalidKey> {
    LockKey::new(text)
}

const LOGGING: &str = "SQLOCK_LOG, of the form of RUST_LOG, says more exactly what -v logs.";

const MORE_ON_DOCTOR: &str = "\
Exit codes:
  0   a backend is recommended
  1   the server can keep no locks, such as a standby; the report says why
  64  the command line or the URL cannot be
  69  the server cannot be looked at";

const MORE_ON_RUN: &str = "\
Examples:
  One backup at a time on this machine, without a server:
      sqlock run --no-wait backup -- ./backup.sh

  The report of the night, on whichever machine is first:
      export DATABASE_URL=postgres://app@db.internal/app
      sqlock run --no-wait nightly-report -- ./report.sh

  The same from cron, where it is fine that another machine has it:
      sqlock run --no-wait --conflict-exit-code 0 nightly-report -- ./report.sh

  Migrations one after another, giving up after five minutes:
      sqlock run --wait 5m migrations -- ./migrate up

  Many exports at a time, but none during an import:
      sqlock run --shared warehouse -- ./export.sh
      sqlock run warehouse -- ./import.sh

  More than one command:
      sqlock run deploy -- sh -c './build.sh && ./publish.sh'

Environment of CMD:
  SQLOCK_KEY    the name of the lock
  SQLOCK_TOKEN  its fencing token, of a lease or with --fencing: a number that rises with every
                acquisition, by which a resource can tell a holder of old

Exit codes:
  that of CMD, or 128+N where signal N ended it; and
  64   the command line, the key or the URL cannot be
  69   the server cannot be reached, or does not give locks
  71   the system refused to start a process
  75   others hold the lock, or the wait was in vain (--conflict-exit-code)
  76   the lock was lost while CMD ran, and CMD was ended (--lost-exit-code)
  126  CMD cannot be executed
  127  CMD is not found

Signals:
  SIGHUP, SIGINT, SIGQUIT and SIGTERM are passed on to CMD and the processes of its group, and the
  lock is released when CMD has ended. While the lock is waited for they end the wait at once.

Processes:
  CMD, and what it started, does not outlive `sqlock run`. On Linux that holds for kill -9 and for
  every process that descends from CMD, and with `session` and `xact` the server keeps the lock until
  the last of them is gone; a lease of `ttl` or `sqlite` is kept until its TTL is over. On other
  systems kill -9 ends CMD's process group, the lock of `session` and `xact` being free at once, or
  only CMD where standard input, output or error is a terminal. A CMD that runs with the rights of
  another user cannot be killed; the lock of `session` and `xact` stays until it has ended.

  What CMD leaves in the background when it ends by itself runs on, without the lock.";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, error::ErrorKind};
    use proptest::prelude::*;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Run, clap::Error> {
        let all = ["sqlock", "run"].iter().chain(arguments);
        match Cli::try_parse_from(all)?.verb {
            Verb::Run(run) => Ok(run),
            Verb::Doctor(_) | Verb::Exec(_) => panic!("not what was asked for"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_dashes_is_the_command() {
        let run = parse(&["daily", "--", "sh", "-c", "x", "--", "--wait"]).unwrap();
        assert_eq!(run.key.name(), Some("daily"));
        assert_eq!(run.command, ["sh", "-c", "x", "--", "--wait"]);
        assert_eq!(run.patience(), Patience::Endless);
        assert_eq!(run.grace, Duration::from_secs(10));
        assert_eq!((run.conflict_exit_code, run.lost_exit_code), (75, 76));
    }

    #[test]
    fn waiting_is_limited_or_not_at_all() {
        let patience = |options: &[&str]| {
            let rest: &[&str] = &["k", "--", "true"];
            parse(&[options, rest].concat()).unwrap().patience()
        };
        let half_an_hour = Duration::from_secs(1800);
        assert_eq!(patience(&["--wait", "30m"]), Patience::Within(half_an_hour));
        assert_eq!(patience(&["--wait=0s"]), Patience::None);
        assert_eq!(patience(&["--no-wait"]), Patience::None);
    }

    #[test]
    fn mistakes_are_told() {
        let kind = |arguments: &[&str]| parse(arguments).unwrap_err().kind();
        assert_eq!(kind(&["k"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(kind(&["--", "true"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(kind(&["k", "true"]), ErrorKind::UnknownArgument);
        assert_eq!(kind(&["", "--", "true"]), ErrorKind::ValueValidation);
        assert_eq!(
            kind(&["--wait", "soon", "k", "--", "true"]),
            ErrorKind::ValueValidation
        );
        let both = ["--wait", "1s", "--no-wait", "k", "--", "true"];
        assert_eq!(kind(&both), ErrorKind::ArgumentConflict);
    }

    proptest! {
        /// Whatever is typed, it is a command or a complaint.
        #[test]
        fn any_words_are_understood_or_not(words in prop::collection::vec(word(), 0..8)) {
            if let Ok(mut run) = parse(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
                prop_assert!(!run.command.is_empty());
                prop_assert!(run.key.name().is_some_and(|name| !name.is_empty()));
                // what the command is told is its own
                run.command.clear();
                let shown = format!("{run:?}");
                prop_assert!(!shown.contains("S3cr3t"));
            }
        }

        #[test]
        fn any_text_is_a_time_or_not(text in "[0-9a-zµ. -]{0,24}") {
            let option = format!("--wait={text}");
            if let Ok(run) = parse(&[&option, "k", "--", "true"]) {
                prop_assert!(run.wait.is_some());
            }
        }
    }

    fn word() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("--".to_owned()),
            Just("--wait".to_owned()),
            Just("--no-wait".to_owned()),
            Just("--shared".to_owned()),
            Just("--backend".to_owned()),
            Just("xact".to_owned()),
            Just("--ttl".to_owned()),
            Just("99999999999999999999y".to_owned()),
            Just("1s".to_owned()),
            Just("--url=postgres://u:S3cr3t@h/d".to_owned()),
            Just("--conflict-exit-code".to_owned()),
            Just("256".to_owned()),
            "\\PC{0,12}".prop_map(|text| text.replace("--help", "")),
        ]
    }

    #[test]
    fn help_shows_no_hidden_verb_and_no_value_of_the_environment() {
        let help = Cli::command().render_long_help().to_string();
        assert!(!help.contains("__exec"), "{help}");
    }
}

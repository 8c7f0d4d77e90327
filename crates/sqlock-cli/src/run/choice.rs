//! Where the lock is: what was asked for, and what was left to us.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use sqlock::{
    InspectBackend, LeaseBackend, Lock, Locks, LocksBuilder, SessionBackend, SqliteBackend,
    TtlBackend,
    session::{Fencing, Preflight, SessionOptions},
    sqlite::SqliteOptions,
    ttl::{LeaseOptions, TtlOptions},
    xact::XactOptions,
};
use sqlock_postgres::connect_options;
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::time::timeout;

use super::name;
use crate::{
    args::{Backend, Run},
    exit::{Code, Failure},
    report::say,
    target::Target,
};

/// How long an attempt to connect may take.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// A backend, with what it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// An advisory lock; which of them, a look at the server says where it is `None`.
    Advisory(&'a Target, Option<Advisory>),
    Ttl(&'a Target),
    Sqlite(PathBuf),
}

/// The two exclude each other, so that it does not matter that others may have picked the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advisory {
    Session,
    Xact,
}

impl<'a> Choice<'a> {
    pub(super) fn of(args: &'a Run) -> Result<Self, Failure> {
        let backend = args.backend.unwrap_or(match (&args.file, args.target()) {
            (None, Some(_)) => Backend::Auto,
            _ => Backend::Sqlite,
        });
        let choice = match backend {
            Backend::Auto => Self::Advisory(server(args)?, None),
            Backend::Session => Self::Advisory(server(args)?, Some(Advisory::Session)),
            Backend::Xact => Self::Advisory(server(args)?, Some(Advisory::Xact)),
            Backend::Ttl => Self::Ttl(server(args)?),
            Backend::Sqlite => Self::Sqlite(match &args.file {
                Some(file) => file.clone(),
                None => default_file()?,
            }),
        };
        choice.check(args)?;
        Ok(choice)
    }

    /// What this backend cannot do is refused, and not passed over.
    fn check(&self, args: &Run) -> Result<(), Failure> {
        let refused = match self {
            Self::Advisory(..) if args.ttl.is_some() => {
                "--ttl: only a lease runs out, of the backend ttl or sqlite"
            }
            Self::Advisory(..) if args.hold_at_least.is_some() => {
                "--hold-at-least: only a lease outlives its holder, of the backend ttl or sqlite"
            }
            Self::Advisory(..) | Self::Ttl(_) if args.file.is_some() => {
                "--file: only the backend sqlite has a file"
            }
            Self::Ttl(_) | Self::Sqlite(_) if args.shared => "--shared: leases are exclusive",
            _ => return Ok(()),
        };
        Err(Failure::new(Code::USAGE, refused))
    }
}

fn server(args: &Run) -> Result<&Target, Failure> {
    args.target().ok_or_else(|| {
        let what = "no server: name one by --url, or in the variable DATABASE_URL";
        Failure::new(Code::USAGE, what)
    })
}

/// The user's state directory, as the XDG base directory specification has it.
fn default_file() -> Result<PathBuf, Failure> {
    let directory = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let state = directory("XDG_STATE_HOME")
        .or_else(|| Some(directory("HOME")?.join(".local").join("state")));
    let Some(state) = state else {
        let what = "no place for a file of locks: name one by --file, or a server by --url";
        return Err(Failure::new(Code::USAGE, what));
    };
    Ok(state.join("sqlock").join("locks.db"))
}

pub(super) async fn session(
    args: &Run,
    target: &Target,
    preflight: Preflight,
) -> Result<SessionBackend, Failure> {
    let mut options = SessionOptions::new()
        .application_name(holder(args))
        .preflight(preflight);
    if let Some(fencing) = fencing(args, target).await? {
        options = options.fencing(fencing);
    }
    options
        .connect(target.reveal())
        .await
        .map_err(|error| Failure::of(format!("cannot use {target}"), error))
}

pub(super) async fn transactions(
    args: &Run,
    target: &Target,
    preflight: Preflight,
) -> Result<XactOptions, Failure> {
    let options = XactOptions::new().preflight(preflight);
    Ok(match fencing(args, target).await? {
        Some(fencing) => options.fencing(fencing),
        None => options,
    })
}

/// Where the tokens are that were asked for.
async fn fencing(args: &Run, target: &Target) -> Result<Option<Fencing>, Failure> {
    if !args.fencing {
        return Ok(None);
    }
    let fencing = Fencing::new();
    match timeout(CONNECT, fencing.create(target.reveal())).await {
        Ok(Ok(())) => Ok(Some(fencing)),
        Ok(Err(error)) => Err(Failure::of(format!("cannot use {target}"), error)),
        Err(_) => Err(Failure::new(
            Code::UNAVAILABLE,
            format!("cannot use {target}: no answer within {CONNECT:?}"),
        )),
    }
}

/// A pool of the one connection that the lock takes. Nothing is sent yet.
pub(super) fn pool(args: &Run, target: &Target) -> Result<PgPool, Failure> {
    let options = connect_options(target.reveal())
        .map_err(|error| Failure::of(format!("cannot use {target}"), error))?;
    Ok(PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(CONNECT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.application_name(&holder(args))))
}

fn holder(args: &Run) -> String {
    match &args.label {
        Some(label) => label.clone(),
        None => name::of_holder(&args.key),
    }
}

pub(super) async fn leases_on_server(args: &Run, target: &Target) -> Result<TtlBackend, Failure> {
    let failed = |error| Failure::of(format!("cannot use {target}"), error);
    let options = TtlOptions::new().leases(leases(args));
    let backend = options.connect(target.reveal()).map_err(failed)?;
    backend.create_table().await.map_err(failed)?;
    Ok(backend)
}

pub(super) async fn leases_in_file(args: &Run, file: &Path) -> Result<SqliteBackend, Failure> {
    let is_new = !file.exists();
    let backend = SqliteOptions::new()
        .leases(leases(args))
        .open(file)
        .await
        .map_err(|error| Failure::of(format!("cannot use {}", file.display()), error))?;
    if is_new && args.file.is_none() {
        say(&format!(
            "locks of this machine are kept in {}; --url moves to a server",
            file.display()
        ));
    }
    Ok(backend)
}

fn leases(args: &Run) -> LeaseOptions {
    let mut options = LeaseOptions::new();
    if let Some(ttl) = args.ttl {
        options = options.ttl(ttl);
    }
    if let Some(duration) = args.hold_at_least {
        options = options.hold_at_least(duration);
    }
    options
}

/// The locks of a backend of leases, and the one that was asked for.
pub(super) fn lease<B: InspectBackend + LeaseBackend>(
    args: &Run,
    backend: B,
) -> (Locks<B>, Lock<B>) {
    let builder: LocksBuilder<B> = Locks::builder(backend);
    let label = args.label.as_deref().unwrap_or("sqlock run");
    let locks = builder.label(label).build();
    let lock = locks.lock(&args.key);
    (locks, lock)
}

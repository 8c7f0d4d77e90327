//! Stands for election until it is told to stop, and notes when it believes that it leads: for tests
//! that stop and kill it.

use std::{
    env,
    error::Error,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    ops::ControlFlow,
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sqlock::{
    Election, FencingToken, Locks, TellsLoss, Term,
    session::{Fencing, SessionOptions},
    ttl::{LeaseOptions, TtlOptions},
};
use tokio::sync::oneshot;

type Outcome<T> = Result<T, Box<dyn Error>>;
/// The term that was begun last, by its number in this process.
type Latest = Arc<Mutex<Option<(u64, Term)>>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [backend, url, ttl, notes] = arguments.as_slice() else {
        return Err("usage: stand-for-election session|ttl URL TTL-IN-MILLISECONDS NOTES".into());
    };
    let notes = OpenOptions::new().append(true).create(true).open(notes)?;
    match backend.as_str() {
        "session" => {
            let options = SessionOptions::new().fencing(Fencing::new());
            let locks = Locks::new(options.connect(url).await?);
            stand(locks.election("leader")?, notes).await
        }
        "ttl" => {
            let ttl = Duration::from_millis(ttl.parse()?);
            let leases = LeaseOptions::new().poll_interval(Duration::from_millis(50));
            let locks = Locks::new(TtlOptions::new().leases(leases).connect(url)?);
            let election = locks
                .election("leader")?
                .ttl(ttl)
                .step_down_before(ttl / 10);
            stand(election, notes).await
        }
        other => Err(format!("what is {other}?").into()),
    }
}

async fn stand<B: TellsLoss>(election: Election<B>, notes: File) -> Outcome<()> {
    let latest = Latest::default();
    let believing = Arc::clone(&latest);
    // on a thread of its own, which goes on whatever the runtime does
    thread::spawn(move || believe(&believing, notes));
    let (stop, stopped) = oneshot::channel();
    thread::spawn(move || {
        io::stdin().read_line(&mut String::new()).ok();
        stop.send(()).ok();
    });
    let stopped = async {
        stopped.await.ok();
    };
    let election = election.retry(Duration::from_millis(50));
    let terms = AtomicU64::new(0);
    let body = |term: Term| {
        let number = terms.fetch_add(1, Ordering::Relaxed);
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, term.clone()));
        lead(term)
    };
    match election.run_until(stopped, body).await? {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// Says that it leads, and works.
async fn lead(term: Term) -> ControlFlow<String> {
    let token = term.token().map_or(0, FencingToken::get);
    if writeln!(io::stdout(), "leading {token}").is_err() {
        return ControlFlow::Break("nobody listens".to_owned());
    }
    loop {
        // it may be over between the look of the election and this one
        if !term.is_leading() {
            return ControlFlow::Continue(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Notes the moments before and after each look that says that this process leads.
#[allow(
    clippy::disallowed_methods,
    reason = "a thread of its own, which may block"
)]
fn believe(latest: &Latest, mut notes: File) {
    loop {
        let term = latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((number, term)) = term {
            let token = term.token().map_or(0, FencingToken::get);
            let before = now();
            let leads = term.is_leading();
            let after = now();
            if leads {
                let note = format!("{} {number} {token} {before} {after}\n", process::id());
                // in one write, so that notes of several processes do not mix
                notes.write_all(note.as_bytes()).ok();
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Microseconds of the clock that all processes of this machine share, and that never steps.
fn now() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

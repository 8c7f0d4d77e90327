//! The task that owns the connection.
//!
//! Callers send it commands and wait for its answer, so that no caller's future ever holds the
//! connection, and a dropped future leaves nothing behind. Commands queue up while a round trip is
//! under way, and the next takes them all.

use std::{future::pending, pin::pin, time::Duration};

use sqlock_core::{AdvisoryId, Error, LossCause};
use sqlock_postgres::Failure;
use sqlx::postgres::PgConnectOptions;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    BACKEND,
    command::Command,
    inspect,
    link::{Fault, Link, statement_error},
    options::SessionOptions,
    outage::Outage,
    reconnect::Reconnect,
    statement::Fenced,
    table::{Table, Work},
};

/// For how long a session goes on listening after its last waiter has gone.
const LISTEN_LINGER: Duration = Duration::from_secs(1);
/// After a notification that could not be sent, the others rely on their polls for so long: each
/// attempt can hold up the session's locks for the length of its `lock_timeout`.
const ANNOUNCE_PAUSE: Duration = Duration::from_secs(5);
/// Statements that fail one after another before the session is given up.
const MAX_FAILURES: u32 = 8;

pub(crate) struct Owner {
    options: SessionOptions,
    connect: PgConnectOptions,
    commands: mpsc::UnboundedReceiver<Command>,
    table: Table,
    link: Option<Link>,
    reconnect: Reconnect,
    outage: Outage,
    last_answer: Instant,
    unlisten_at: Option<Instant>,
    announce_after: Option<Instant>,
    failures: u32,
}

enum Event {
    Commands(usize),
    Woken(Vec<AdvisoryId>),
    Fault(Fault),
    Due,
}

fn handing_out(options: &SessionOptions) -> Fenced {
    match options.fencing {
        Some(_) => Fenced::Yes,
        None => Fenced::No,
    }
}

impl Owner {
    /// Starts the task, on the runtime that is current.
    pub(crate) fn spawn(
        options: SessionOptions,
        connect: PgConnectOptions,
        outage: Outage,
        link: Option<Link>,
    ) -> mpsc::UnboundedSender<Command> {
        let (sender, commands) = mpsc::unbounded_channel();
        let mut owner = Self {
            table: Table::new(sender.downgrade(), options.timing, handing_out(&options)),
            reconnect: Reconnect::new(options.reconnect_limit),
            outage,
            options,
            connect,
            commands,
            link: None,
            last_answer: Instant::now(),
            unlisten_at: None,
            announce_after: None,
            failures: 0,
        };
        if let Some(link) = link {
            owner.adopt(link);
        }
        tokio::spawn(owner.run());
        sender
    }

    async fn run(mut self) {
        let mut inbox = Vec::new();
        loop {
            match self.next_event(&mut inbox).await {
                Event::Commands(0) => return,
                Event::Commands(_) => {
                    for command in inbox.drain(..) {
                        self.apply(command).await;
                    }
                }
                Event::Woken(keys) => keys.into_iter().for_each(|id| self.table.wake(id)),
                Event::Fault(fault) => self.give_up_session(fault, None),
                Event::Due => {}
            }
            self.serve().await;
        }
    }

    async fn next_event(&mut self, inbox: &mut Vec<Command>) -> Event {
        let due = self.next_due();
        let link = &mut self.link;
        let wake = pin!(async {
            match link {
                Some(link) => link.next_wake().await,
                None => pending().await,
            }
        });
        let due = pin!(async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        });
        tokio::select! {
            count = self.commands.recv_many(inbox, 1024) => Event::Commands(count),
            woken = wake => woken.map_or_else(Event::Fault, Event::Woken),
            () = due => Event::Due,
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let heartbeat = (self.link.is_some() && self.table.holds_any())
            .then(|| self.last_answer + self.options.heartbeat.interval);
        let connect = (self.link.is_none() && self.table.has_work())
            .then(|| self.reconnect.not_before())
            .flatten();
        // without a session there is nothing to unlisten, and a time that has passed would spin
        let unlisten = self.link.as_ref().and(self.unlisten_at);
        [self.table.next_tick(), heartbeat, connect, unlisten]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what there is to do, one statement after another, until there is nothing.
    async fn serve(&mut self) {
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.apply(command).await;
            }
            let now = Instant::now();
            self.table.tick(now);
            for id in self.link.iter_mut().flat_map(Link::buffered_wakes) {
                self.table.wake(id);
            }
            if self.link.is_none() && !(self.table.has_work() && self.connect(now).await) {
                return;
            }
            self.ask().await;
            self.announce().await;
            self.look_after_listening().await;
            self.beat().await;
            if self.link.is_some() && !self.table.has_work() && self.commands.is_empty() {
                return;
            }
        }
    }

    async fn apply(&mut self, command: Command) {
        match command {
            Command::Acquire(asked) => self.table.acquire(asked),
            Command::Forget { number, request } => self.table.forget(number, &request),
            Command::Release { grant, receipt } => self.table.release(grant, receipt.as_ref()),
            Command::Inspect { key, answer } => {
                if self.link.is_none() {
                    self.connect(Instant::now()).await;
                }
                let holders = match self.link.as_mut().and_then(|link| link.listener().ok()) {
                    Some(listener) => {
                        let limit = self.options.heartbeat.limit;
                        inspect::holders(listener, &key, limit).await
                    }
                    None => Err(self.outage.error()),
                };
                answer.send(holders).ok();
            }
            Command::ShutDown { done } => {
                // told first: nobody may believe in a lock that another can have
                let receipts = self.table.shut_down();
                let closed = match self.link.take() {
                    Some(link) => link.close().await,
                    None => Ok(()),
                };
                drop(receipts);
                done.send(closed).ok();
            }
        }
    }

    /// One statement for all that is wanted.
    async fn ask(&mut self) {
        let work = self.table.next_work(Instant::now());
        if work.batch.rows.is_empty() {
            return;
        }
        let Some(link) = &mut self.link else { return };
        if work.batch.has_waiters() && !link.is_listening() {
            // acknowledged before the wait slot is taken, or a release in between would wake nobody
            match link.listen().await {
                Ok(()) => {}
                Err(Fault::Statement(failure)) => {
                    tracing::warn!(?failure, "waiters rely on their polls: cannot listen");
                }
                Err(fault) => return self.give_up_session(fault, Some(work)),
            }
        }
        let Some(link) = &mut self.link else { return };
        let answer = link.ask(&work.batch).await;
        let now = Instant::now();
        match answer {
            Ok(outcomes) => {
                self.last_answer = now;
                self.failures = 0;
                if self.table.complete(work, &outcomes, now).is_err() {
                    self.undetermined("a lock that was held was not held any more");
                }
            }
            Err(Fault::Statement(failure)) => {
                self.recover(work, &failure).await;
            }
            Err(fault) => self.give_up_session(fault, Some(work)),
        }
    }

    /// A statement failed, having done some of its work: the server says what is held.
    async fn recover(&mut self, work: Work, failure: &Failure) {
        let Some(link) = &mut self.link else { return };
        let tokens = link.token_source().cloned();
        let error = || statement_error(failure, tokens.as_ref());
        // tables of tokens that were dropped are no reason to give up the locks that are held
        if !matches!(error(), Error::Fencing { .. }) {
            self.failures += 1;
        }
        if self.failures >= MAX_FAILURES {
            return self.end_session(&LossCause::Undetermined, Some(work), error);
        }
        match link.held_on_server().await {
            Ok(held) => {
                let recovered = self.table.recover(work, &held, Instant::now(), error);
                if recovered.is_err() {
                    self.undetermined("locks are missing after a statement that failed");
                }
            }
            Err(_) => self.end_session(&LossCause::Undetermined, Some(work), error),
        }
    }

    async fn announce(&mut self) {
        let keys = self.table.take_announcements();
        let now = Instant::now();
        let Some(link) = &mut self.link else { return };
        if keys.is_empty() || self.announce_after.is_some_and(|after| now < after) {
            return;
        }
        match link.announce(&keys).await {
            Ok(()) => self.announce_after = None,
            Err(Fault::Statement(failure)) => {
                tracing::warn!(?failure, "waiters rely on their polls: cannot notify them");
                self.announce_after = Some(Instant::now() + ANNOUNCE_PAUSE);
            }
            Err(fault) => self.give_up_session(fault, None),
        }
    }

    /// Every listening session makes everybody's notifications dearer.
    async fn look_after_listening(&mut self) {
        let now = Instant::now();
        let Some(link) = &mut self.link else { return };
        if !link.is_listening() || self.table.waits_for_others() {
            self.unlisten_at = None;
            return;
        }
        let at = *self.unlisten_at.get_or_insert(now + LISTEN_LINGER);
        if at > now {
            return;
        }
        self.unlisten_at = None;
        match link.unlisten().await {
            Ok(()) => {}
            Err(Fault::Statement(_)) => self.unlisten_at = Some(now + LISTEN_LINGER),
            Err(fault) => self.give_up_session(fault, None),
        }
    }

    async fn beat(&mut self) {
        let now = Instant::now();
        let is_due = now >= self.last_answer + self.options.heartbeat.interval;
        if !is_due || !self.table.holds_any() {
            return;
        }
        let Some(link) = &mut self.link else { return };
        match link.heartbeat().await {
            Ok(()) | Err(Fault::Statement(_)) => self.last_answer = Instant::now(),
            Err(fault) => self.give_up_session(fault, None),
        }
    }

    /// A new session for those who wait; never under locks that are held.
    async fn connect(&mut self, now: Instant) -> bool {
        if self.reconnect.not_before().is_some_and(|at| at > now) {
            return false;
        }
        match Link::open(&self.options, &self.connect).await {
            Ok(link) => {
                self.reconnect.succeeded();
                self.outage.is_over();
                self.adopt(link);
                true
            }
            Err(error) => {
                let whom = self.reconnect.failed(&error, Instant::now());
                tracing::warn!(%error, ?whom, "cannot connect");
                self.outage.goes_on(error);
                let outage = self.outage.clone();
                self.table.cannot_connect(whom, || outage.error());
                false
            }
        }
    }

    fn adopt(&mut self, link: Link) {
        let budget = link.facts().lock_budget();
        self.table
            .set_budget(self.options.lock_budget.unwrap_or(budget));
        self.link = Some(link);
        self.last_answer = Instant::now();
        self.unlisten_at = None;
        self.failures = 0;
    }

    fn give_up_session(&mut self, fault: Fault, work: Option<Work>) {
        match fault {
            Fault::Session { cause, failure } => {
                self.end_session(&cause, work, || failure.error());
            }
            Fault::Statement(failure) => {
                self.end_session(&LossCause::Undetermined, work, || {
                    failure.error(BACKEND, "acquire")
                });
            }
        }
    }

    fn undetermined(&mut self, why: &'static str) {
        tracing::warn!(why, "session given up");
        self.end_session(&LossCause::Undetermined, None, || Error::Unavailable {
            backend: BACKEND,
            source: why.into(),
        });
    }

    fn end_session(&mut self, cause: &LossCause, work: Option<Work>, error: impl Fn() -> Error) {
        // told first: nobody may believe in a lock that another can have
        self.table.session_lost(work, cause, error);
        self.link = None;
    }
}

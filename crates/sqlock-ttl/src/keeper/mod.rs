//! The task that takes, renews and gives back leases.
//!
//! Callers send it commands and wait for its answer, so that no caller's future ever holds a
//! connection, and a dropped future leaves nothing behind. What is asked while a transaction is
//! under way goes into the next one: one commit serves many. Renewals go beside it, on a
//! connection of their own.

mod book;
mod claims;
mod ending;
mod line;
mod outage;
mod renewals;
mod waiter;
mod waiting;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use sqlock_core::{Error, Result};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    clock::Moment,
    command::{Command, Done},
    holder::HolderInfo,
    options::LeaseOptions,
    store::{Exchanged, Heard, Listening, Renewal, Renewed, Store},
};
use book::Book;
use claims::Asked;
use renewals::Due;

pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    options: LeaseOptions,
    holder: Arc<HolderInfo>,
    commands: mpsc::UnboundedReceiver<Command>,
    book: Book,
    listening: Option<Listening>,
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Finished> + Send>>>,
}

/// A transaction that is over.
enum Finished {
    Exchange {
        asked: Asked,
        sent: Moment,
        answer: Result<Exchanged>,
    },
    Renewal {
        due: Vec<Due>,
        sent: Moment,
        answer: Result<Vec<Renewed>>,
    },
    News {
        told: Vec<Done>,
        answer: Result<()>,
    },
    Closed,
}

impl Keeper {
    /// Starts the task, on the runtime that is current.
    pub(crate) fn spawn(
        store: Arc<dyn Store>,
        options: LeaseOptions,
        process: Arc<str>,
    ) -> mpsc::UnboundedSender<Command> {
        let (sender, commands) = mpsc::unbounded_channel();
        let book = Book::new(
            store.name(),
            sender.downgrade(),
            options.clone(),
            store.plan(),
            process,
        );
        let keeper = Self {
            book,
            listening: None,
            store,
            options,
            holder: Arc::new(HolderInfo::of_this_process()),
            commands,
            under_way: FuturesUnordered::new(),
        };
        tokio::spawn(keeper.run());
        sender
    }

    async fn run(mut self) {
        let mut inbox = Vec::new();
        loop {
            let due = self.book.next_due();
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                count = self.commands.recv_many(&mut inbox, 1024) => {
                    if count == 0 {
                        break;
                    }
                    inbox.drain(..).for_each(|command| self.book.take_in(command));
                }
                Some(finished) = self.under_way.next() => self.finish(finished),
                heard = hear(&mut self.listening) => self.book.heard(heard, Instant::now()),
                () = timer => {}
            }
            self.go_on();
        }
        // nobody holds a guard any more: what is left was released
        self.listening = None;
        while self.book.is_leaving() || !self.under_way.is_empty() {
            self.go_on();
            let Some(finished) = self.under_way.next().await else {
                return;
            };
            self.finish(finished);
            if self.book.is_out_of_reach() {
                return;
            }
        }
    }

    fn go_on(&mut self) {
        let now = Instant::now();
        self.book.expire(now);
        if let Some(due) = self.book.due_renewals(now) {
            self.send_renewal(due);
        }
        if let Some(asked) = self.book.next_exchange(now) {
            self.send_exchange(asked);
        }
        if let Some((rows, told)) = self.book.next_news() {
            self.send_news(rows, told);
        }
        self.look_after_listening(now);
        if self.book.is_closing() {
            let store = Arc::clone(&self.store);
            let limit = self.options.statement_limit;
            self.under_way.push(Box::pin(async move {
                timeout(limit, store.close()).await.ok();
                Finished::Closed
            }));
        }
    }

    fn send_exchange(&mut self, asked: Asked) {
        let store = Arc::clone(&self.store);
        let holder = Arc::clone(&self.holder);
        let limit = self.options.statement_limit;
        // before the request leaves: the holder's deadline counts from here
        let sent = Moment::now();
        let exchange = asked.exchange();
        self.under_way.push(Box::pin(async move {
            let answer = store.exchange(&exchange, &holder);
            let answer = within(limit, store.name(), answer).await;
            Finished::Exchange {
                asked,
                sent,
                answer,
            }
        }));
    }

    fn send_renewal(&mut self, due: Vec<Due>) {
        let store = Arc::clone(&self.store);
        let limit = self.options.statement_limit;
        let sent = Moment::now();
        self.under_way.push(Box::pin(async move {
            let renewals: Vec<Renewal> = due.iter().flat_map(Due::renewals).collect();
            let renew = store.renew(&renewals);
            let answer = within(limit, store.name(), renew).await;
            Finished::Renewal { due, sent, answer }
        }));
    }

    fn send_news(&mut self, rows: Vec<Arc<str>>, told: Vec<Done>) {
        let store = Arc::clone(&self.store);
        let limit = self.options.statement_limit;
        self.under_way.push(Box::pin(async move {
            let wake = store.wake(&rows);
            let answer = within(limit, store.name(), wake).await;
            Finished::News { told, answer }
        }));
    }

    fn look_after_listening(&mut self, now: Instant) {
        if !self.book.wants_to_hear(now) {
            self.listening = None;
            self.book.deafened();
        } else if self.listening.is_none() {
            self.listening = self.store.listen();
        }
    }

    fn finish(&mut self, finished: Finished) {
        let now = Instant::now();
        match finished {
            Finished::Exchange {
                asked,
                sent,
                answer,
            } => self.book.exchanged(asked, sent, answer, now),
            Finished::Renewal { due, sent, answer } => self.book.renewed(due, sent, answer, now),
            Finished::News { told, answer } => self.book.told(told, answer, now),
            Finished::Closed => self.book.closed(),
        }
    }
}

/// What is heard next.
///
/// # Cancel safety
///
/// Safe: nothing is lost.
async fn hear(listening: &mut Option<Listening>) -> Heard {
    match listening {
        Some(listening) => match listening.heard.recv().await {
            Some(heard) => heard,
            // its task has ended with its runtime
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// An answer, or the error that there was none. Dropped midway, the connection is closed.
async fn within<T>(
    limit: Duration,
    backend: &'static str,
    answer: impl Future<Output = Result<T>>,
) -> Result<T> {
    timeout(limit, answer).await.unwrap_or_else(|_| {
        Err(Error::Unavailable {
            backend,
            source: format!("no answer within {limit:?}").into(),
        })
    })
}

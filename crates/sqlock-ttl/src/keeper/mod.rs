//! The task that takes, renews and gives back leases.
//!
//! Callers send it commands and wait for its answer, so that no caller's future ever holds a
//! connection, and a dropped future leaves nothing behind. What is asked while a transaction is
//! under way goes into the next one: one commit serves many. Renewals go beside it, on a
//! connection of their own.

mod book;
mod claims;
mod ending;
mod outage;
mod renewals;
mod waiter;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use sqlock_core::{Error, Result};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    clock::Moment,
    command::Command,
    holder::HolderInfo,
    options::LeaseOptions,
    store::{Claim, Exchanged, GiveBack, Renewal, Renewed, Store},
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
    Closed,
}

impl Keeper {
    /// Starts the task, on the runtime that is current.
    pub(crate) fn spawn(
        store: Arc<dyn Store>,
        options: LeaseOptions,
    ) -> mpsc::UnboundedSender<Command> {
        let (sender, commands) = mpsc::unbounded_channel();
        let keeper = Self {
            book: Book::new(store.name(), sender.downgrade(), options.clone()),
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
                () = timer => {}
            }
            self.go_on();
        }
        // nobody holds a guard any more: what is left was released
        while self.book.has_releases() || !self.under_way.is_empty() {
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
        let give_back: Vec<GiveBack> = asked.give_back();
        let claims: Vec<Claim> = asked.claims();
        self.under_way.push(Box::pin(async move {
            let exchange = store.exchange(&give_back, &claims, &holder);
            let answer = within(limit, store.name(), exchange).await;
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

    fn finish(&mut self, finished: Finished) {
        let now = Instant::now();
        match finished {
            Finished::Exchange {
                asked,
                sent,
                answer,
            } => self.book.exchanged(asked, sent, answer, now),
            Finished::Renewal { due, sent, answer } => self.book.renewed(due, sent, answer, now),
            Finished::Closed => self.book.closed(),
        }
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

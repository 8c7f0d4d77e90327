use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlock_core::LockKey;
use tokio::time::Instant;

use super::Flaw;

/// A row a key, by a clock that can be set.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) flaw: Flaw,
    /// Held by those who block the table.
    pub(super) gate: Arc<tokio::sync::Mutex<()>>,
    start: Instant,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    rows: HashMap<LockKey, Row>,
    /// By which the clock is ahead, in microseconds.
    ahead: i64,
    last_owner: u64,
}

#[derive(Debug, Default)]
struct Row {
    owner: Option<u64>,
    token: i64,
    expires_at: i64,
}

/// What a claim is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) owner: u64,
    pub(super) token: i64,
}

impl Table {
    pub(super) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            gate: Arc::default(),
            start: Instant::now(),
            content: Mutex::default(),
        }
    }

    /// Once nobody blocks the table.
    pub(super) async fn enter(&self) {
        drop(self.gate.lock().await);
    }

    fn now(&self, content: &Content) -> i64 {
        micros(self.start.elapsed()) + content.ahead
    }

    pub(super) fn take(&self, keys: &[LockKey], ttl: Duration) -> Option<Taken> {
        let content = &mut *self.content.lock().unwrap();
        let now = self.now(content);
        let is_taken = |key| {
            let row = content.rows.get(key);
            row.is_some_and(|row| row.owner.is_some() && !self.has_ended(row, now))
        };
        if keys.iter().any(is_taken) {
            return None;
        }
        content.last_owner += 1;
        let owner = content.last_owner;
        let mut token = 0;
        for key in keys {
            let row = content.rows.entry(key.clone()).or_default();
            row.owner = Some(owner);
            row.token += if self.flaw == Flaw::TokensGoBack {
                -1
            } else {
                1
            };
            row.expires_at = now + micros(ttl);
            token = if keys.len() == 1 {
                row.token
            } else {
                row.token.max(token)
            };
        }
        Some(Taken { owner, token })
    }

    fn has_ended(&self, row: &Row, now: i64) -> bool {
        self.flaw != Flaw::NeverEnds && row.expires_at <= now
    }

    /// Whether it is ours for another `ttl`.
    pub(super) fn renew(&self, keys: &[LockKey], owner: u64, ttl: Duration) -> bool {
        let content = &mut *self.content.lock().unwrap();
        let now = self.now(content);
        keys.iter().all(|key| {
            let Some(row) = content.rows.get_mut(key) else {
                return false;
            };
            let is_ours = row.owner == Some(owner) || self.flaw == Flaw::RenewsByName;
            let is_late = self.has_ended(row, now) && self.flaw != Flaw::RevivesExpired;
            if is_ours && !is_late {
                row.owner = Some(owner);
                row.expires_at = row.expires_at.max(now + micros(ttl));
            }
            is_ours && !is_late
        })
    }

    pub(super) fn give_back(&self, keys: &[LockKey], owner: u64) {
        let content = &mut *self.content.lock().unwrap();
        for key in keys {
            if let Some(row) = content.rows.get_mut(key)
                && row.owner == Some(owner)
            {
                row.owner = None;
            }
        }
    }

    /// For how long the server takes it to be this owner's.
    pub(super) fn left(&self, key: &LockKey) -> Duration {
        let content = &*self.content.lock().unwrap();
        let row = content.rows.get(key);
        let left = row.map_or(0, |row| row.expires_at - self.now(content));
        Duration::from_micros(u64::try_from(left).unwrap_or_default())
    }

    pub(super) fn held(&self) -> usize {
        let content = &*self.content.lock().unwrap();
        let now = self.now(content);
        let rows = content.rows.values();
        rows.filter(|row| row.owner.is_some() && !self.has_ended(row, now))
            .count()
    }

    pub(super) fn step(&self, micros: i64) {
        self.content.lock().unwrap().ahead += micros;
    }
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).expect("not that long")
}

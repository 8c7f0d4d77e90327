//! What tokens were handed out, and whether they rose.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use sqlock::{Held, LockGuard};

/// Of one order of tokens.
#[derive(Debug, Default)]
pub(crate) struct Record(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    /// The last of each key.
    last: HashMap<String, i64>,
    all: HashSet<(String, i64)>,
}

impl Record {
    /// To be called while the guard holds its key.
    pub(crate) fn granted<H: Held>(&self, guard: &LockGuard<H>) {
        let token = guard.token().expect("a token").get();
        let mut given = self.0.lock().expect("no panic");
        for key in guard.keys() {
            let key = key.to_string();
            let last = given.last.insert(key.clone(), token);
            assert!(last < Some(token), "{key}: {token} after {last:?}");
            assert!(given.all.insert((key, token)), "{token} was given twice");
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().expect("no panic").all.len()
    }
}

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::SystemTime,
};

use super::{BACKEND, node::Node};
use crate::{AdvisoryId, FencingToken, Holder, LockKey, Lost, LostSender, Mode, Request};

/// Of the process, so that tokens rise over all tables that a test may make.
static LAST_TOKEN: AtomicI64 = AtomicI64::new(0);

/// Names one grant. Keys are granted again and again; a number is never given twice, so that an
/// end that is sent twice cannot end another's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(u64);

/// What the holder learns of its grant.
pub(super) struct Grant {
    pub(super) node: Arc<Node>,
    pub(super) number: Number,
    pub(super) keys: Arc<[LockKey]>,
    pub(super) token: FencingToken,
    pub(super) lost: Lost,
}

#[derive(Debug)]
struct Record {
    node: Arc<Node>,
    keys: Arc<[LockKey]>,
    holder: Holder,
    /// Gone where the grant is being taken away.
    signal: Option<LostSender>,
}

/// Who holds what.
#[derive(Debug, Default)]
pub(super) struct Grants {
    last: u64,
    records: BTreeMap<Number, Record>,
    by_key: HashMap<AdvisoryId, Vec<Number>>,
}

impl Grants {
    pub(super) fn admit(&self, request: &Request) -> bool {
        request.keys().iter().all(|key| {
            self.records_of(key.id())
                .all(|record| request.mode() == Mode::Shared && record.holder.mode == Mode::Shared)
        })
    }

    pub(super) fn add(&mut self, node: &Arc<Node>, request: &Request) -> Grant {
        self.last += 1;
        let number = Number(self.last);
        let keys = Arc::clone(request.keys());
        for key in keys.iter() {
            self.by_key.entry(key.id()).or_default().push(number);
        }
        let (sender, lost) = LostSender::new(BACKEND, request);
        let record = Record {
            node: Arc::clone(node),
            keys: Arc::clone(&keys),
            holder: holder(request),
            signal: Some(sender),
        };
        self.records.insert(number, record);
        Grant {
            node: Arc::clone(node),
            number,
            keys,
            token: FencingToken::new(LAST_TOKEN.fetch_add(1, Ordering::Relaxed) + 1),
            lost,
        }
    }

    /// The signal of a grant that ends now, or `None` where it was over before or is being taken
    /// away.
    pub(super) fn end(&mut self, number: Number) -> Option<LostSender> {
        let signal = self.condemn(number)?;
        self.remove(number);
        Some(signal)
    }

    /// Begins to take a grant away: its keys stay taken until it is removed.
    pub(super) fn condemn(&mut self, number: Number) -> Option<LostSender> {
        self.records.get_mut(&number)?.signal.take()
    }

    pub(super) fn remove(&mut self, number: Number) {
        let Some(record) = self.records.remove(&number) else {
            return;
        };
        for key in record.keys.iter() {
            if let Some(numbers) = self.by_key.get_mut(&key.id()) {
                numbers.retain(|other| *other != number);
                if numbers.is_empty() {
                    self.by_key.remove(&key.id());
                }
            }
        }
    }

    pub(super) fn of_node(&self, node: &Arc<Node>) -> Vec<Number> {
        let mine = |(number, record): (&Number, &Record)| {
            Arc::ptr_eq(&record.node, node).then_some(*number)
        };
        self.records.iter().filter_map(mine).collect()
    }

    pub(super) fn of_key(&self, id: AdvisoryId) -> Vec<Number> {
        self.by_key.get(&id).cloned().unwrap_or_default()
    }

    pub(super) fn holders(&self, id: AdvisoryId) -> Vec<Holder> {
        self.records_of(id)
            .map(|record| record.holder.clone())
            .collect()
    }

    pub(super) fn count(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    fn records_of(&self, id: AdvisoryId) -> impl Iterator<Item = &Record> {
        self.by_key
            .get(&id)
            .into_iter()
            .flatten()
            .filter_map(|number| self.records.get(number))
    }
}

fn holder(request: &Request) -> Holder {
    Holder {
        label: request.label().map(str::to_owned),
        pid: Some(i64::from(std::process::id())),
        since: Some(SystemTime::now()),
        ..Holder::unknown(request.mode())
    }
}

use std::{
    collections::BTreeMap,
    fmt::{Debug, Write},
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// An event, or a span when it is opened.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) level: Level,
    /// The event's message, or the span's name.
    pub(crate) message: String,
    fields: BTreeMap<&'static str, String>,
}

impl Event {
    pub(crate) fn field(&self, name: &str) -> &str {
        match self.fields.get(name) {
            Some(value) => value,
            None => panic!("no field {name}: {self:?}"),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

/// The events of `work`, in their order.
pub(crate) fn captured(work: impl Future<Output = ()>) -> Vec<Event> {
    run(work).events.lock().unwrap().clone()
}

/// The spans of `work`, in the order in which they were opened.
pub(crate) fn spans(work: impl Future<Output = ()>) -> Vec<Event> {
    run(work).spans.lock().unwrap().clone()
}

fn run(work: impl Future<Output = ()>) -> Arc<Captured> {
    let captured = Arc::<Captured>::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let subscriber = Capturing(Arc::clone(&captured));
    tracing::subscriber::with_default(subscriber, || runtime.block_on(work));
    captured
}

#[derive(Default)]
struct Captured {
    events: Mutex<Vec<Event>>,
    spans: Mutex<Vec<Event>>,
    last_span: AtomicU64,
}

struct Capturing(Arc<Captured>);

impl Subscriber for Capturing {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sqlock")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut span = event(attributes.metadata());
        attributes.record(&mut span);
        span.message = attributes.metadata().name().to_owned();
        self.0.spans.lock().unwrap().push(span);
        span::Id::from_u64(self.0.last_span.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, captured: &tracing::Event<'_>) {
        let mut event = event(captured.metadata());
        captured.record(&mut event);
        self.0.events.lock().unwrap().push(event);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn event(metadata: &Metadata<'_>) -> Event {
    Event {
        level: *metadata.level(),
        message: String::new(),
        fields: BTreeMap::new(),
    }
}

impl Visit for Event {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.message, "{value:?}").unwrap();
        } else {
            self.fields.insert(field.name(), format!("{value:?}"));
        }
    }
}

//! The warnings of a piece of work.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Runs `work` on a runtime of this thread. Each warning is one text: its message and its fields.
pub(crate) fn warnings_of(work: impl Future<Output = ()>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let warnings = Arc::<Mutex<Vec<String>>>::default();
    let subscriber = Warnings(Arc::clone(&warnings));
    tracing::subscriber::with_default(subscriber, || runtime.block_on(work));
    warnings.lock().unwrap().clone()
}

struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sqlock") && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}: {value:?}; ").unwrap();
    }
}

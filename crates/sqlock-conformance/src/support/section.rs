use std::sync::atomic::{AtomicUsize, Ordering};

/// What a lock protects: it notices two who are inside together.
#[derive(Debug, Default)]
pub(crate) struct Section {
    inside: AtomicUsize,
    entries: AtomicUsize,
}

impl Section {
    /// Inside until the returned value is dropped, which must be before the lock is released:
    /// bind it after the guard.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        assert_eq!(others, 0, "two hold the lock together");
        self.entries.fetch_add(1, Ordering::SeqCst);
        inside
    }

    pub(crate) fn entries(&self) -> usize {
        self.entries.load(Ordering::SeqCst)
    }
}

#[must_use]
pub(crate) struct Inside<'a>(&'a Section);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

use std::sync::atomic::{AtomicUsize, Ordering};

/// What a semaphore protects: it notices where too many are inside together.
#[derive(Debug)]
pub(crate) struct Room {
    places: usize,
    inside: AtomicUsize,
}

impl Room {
    pub(crate) fn for_at_most(places: usize) -> Self {
        Self {
            places,
            inside: AtomicUsize::new(0),
        }
    }

    /// Inside until the returned value is dropped, which must be before the permit is returned:
    /// bind it after the guard.
    pub(crate) fn enter(&self) -> InRoom<'_> {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = InRoom(self);
        assert!(others < self.places, "{} hold {}", others + 1, self.places);
        inside
    }
}

#[must_use]
pub(crate) struct InRoom<'a>(&'a Room);

impl Drop for InRoom<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

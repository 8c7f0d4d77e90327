//! Panics, on whatever thread and in whatever task.

use std::{
    panic,
    sync::{Mutex, Once},
};

static OURS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on, panics in the code of sqlock are noted; those of tests are not.
pub(crate) fn note() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let file = info.location().map_or("", |location| location.file());
            if file.starts_with("crates/") {
                OURS.lock().unwrap().push(info.to_string());
            }
            report(info);
        }));
    });
}

#[track_caller]
pub(crate) fn assert_none() {
    let panics = OURS.lock().unwrap().clone();
    assert!(panics.is_empty(), "{panics:?}");
}

#![allow(dead_code, reason = "each test uses its part of it")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sqlock_core::{
    BoxError, Error, FencingToken, Held, LockBackend, LockGuard, LockKey, LossCause, Lost,
    LostSender, Request, Result, Transactional,
};

/// A backend that grants whatever it is asked for, and notes what is done to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    log: Vec<&'static str>,
    sender: Option<LostSender>,
    requests: Vec<Request>,
    fail_releases: bool,
}

impl Fake {
    /// What was done to the held locks, since the last call.
    pub(crate) fn log(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().log)
    }

    pub(crate) fn last_request(&self) -> Request {
        self.0.lock().unwrap().requests.last().unwrap().clone()
    }

    pub(crate) fn fail_releases(&self) {
        self.0.lock().unwrap().fail_releases = true;
    }

    pub(crate) fn lose(&self, cause: LossCause) {
        let sender = self.0.lock().unwrap().sender.take();
        if let Some(sender) = sender {
            sender.lose(cause);
        }
    }

    pub(crate) fn confirm_release(&self) {
        let sender = self.0.lock().unwrap().sender.take();
        if let Some(sender) = sender {
            sender.released();
        }
    }

    pub(crate) fn drop_sender(&self) {
        let sender = self.0.lock().unwrap().sender.take();
        drop(sender);
    }

    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().log.push(what);
    }
}

#[async_trait]
impl LockBackend for Fake {
    type Held = FakeHeld;

    fn name(&self) -> &'static str {
        "fake"
    }

    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<FakeHeld>>> {
        let (sender, lost) = LostSender::new("fake", &request);
        let keys = Arc::clone(request.keys());
        let mut state = self.0.lock().unwrap();
        state.sender = Some(sender);
        state.requests.push(request);
        drop(state);
        Ok(Some(LockGuard::arm(FakeHeld {
            backend: self.clone(),
            keys,
            lost,
            connection: 0,
        })))
    }

    async fn shutdown(&self) -> Result<()> {
        self.note("shutdown");
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct FakeHeld {
    backend: Fake,
    keys: Arc<[LockKey]>,
    lost: Lost,
    connection: u32,
}

#[async_trait]
impl Held for FakeHeld {
    fn backend(&self) -> &'static str {
        "fake"
    }

    fn keys(&self) -> &[LockKey] {
        &self.keys
    }

    fn token(&self) -> Option<FencingToken> {
        None
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }

    async fn release(&mut self) -> Result<()> {
        self.backend.note("release begins");
        tokio::task::yield_now().await;
        if self.backend.0.lock().unwrap().fail_releases {
            return Err(Error::Unavailable {
                backend: "fake",
                source: BoxError::from("told so"),
            });
        }
        self.backend.note("release ends");
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<()> {
        self.backend.note("roll back");
        Ok(())
    }

    fn abandon(&mut self) {
        self.backend.note("abandon");
    }
}

impl Transactional for FakeHeld {
    type Connection = u32;

    fn connection(&mut self) -> &mut u32 {
        &mut self.connection
    }
}

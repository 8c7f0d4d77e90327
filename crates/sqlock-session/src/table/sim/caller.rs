//! Those who ask for locks, and what they do with the answer.

use std::{fmt, future::Future, pin::Pin};

use sqlock_core::{Lost, Mode, Request, Result};
use tokio::sync::{mpsc, oneshot};

use super::{
    request::{Guard, poll_once},
    server::SessionId,
};
use crate::command::{Asked, Command};

/// How a release ended, and whether the lock was lost before, in the session that had it.
pub(super) type Released = (Result<()>, Lost, SessionId);
type Answered = oneshot::Receiver<Result<Option<Guard>>>;

#[derive(Debug)]
pub(super) struct Caller {
    pub(super) process: usize,
    /// Its place in the order of arrival, of which the table must know.
    pub(super) arrival: u64,
    number: u64,
    pub(super) request: Request,
    pub(super) state: State,
    owner: mpsc::UnboundedSender<Command>,
    pub(super) says_goodbye: bool,
    /// There was a reason to refuse it, at some time since it asked.
    pub(super) excuse: bool,
}

pub(super) enum State {
    Waiting(Answered),
    /// Of this session.
    Holding(Guard, SessionId),
    Releasing(Pin<Box<dyn Future<Output = Result<()>>>>, Lost, SessionId),
    Done,
}

impl Caller {
    pub(super) fn ask(
        process: usize,
        (arrival, number): (u64, u64),
        request: Request,
        owner: mpsc::UnboundedSender<Command>,
    ) -> (Self, Command) {
        let (answer, answered) = oneshot::channel();
        let acquire = Command::Acquire(Asked {
            number,
            request: request.clone(),
            answer,
        });
        let caller = Self {
            process,
            arrival,
            number,
            request,
            state: State::Waiting(answered),
            owner,
            says_goodbye: true,
            excuse: false,
        };
        (caller, acquire)
    }

    pub(super) fn waits(&self) -> bool {
        self.request.deadline().is_some()
    }

    pub(super) fn mode(&self) -> Mode {
        self.request.mode()
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    pub(super) fn guard(&self) -> Option<(&Guard, SessionId)> {
        match &self.state {
            State::Holding(guard, session) => Some((guard, *session)),
            _ => None,
        }
    }

    /// The answer, if there is one: `None` where it is lost.
    pub(super) fn answer(&mut self) -> Option<Option<Result<Option<Guard>>>> {
        let State::Waiting(answered) = &mut self.state else {
            return None;
        };
        let answer = match answered.try_recv() {
            Ok(answer) => Some(answer),
            Err(oneshot::error::TryRecvError::Empty) => return None,
            Err(oneshot::error::TryRecvError::Closed) => None,
        };
        self.state = State::Done;
        Some(answer)
    }

    /// Starts a release that waits for its end.
    pub(super) fn release(&mut self) {
        if let State::Holding(guard, session) = std::mem::replace(&mut self.state, State::Done) {
            let lost = guard.lost();
            self.state = State::Releasing(Box::pin(guard.release()), lost, session);
        }
    }

    pub(super) fn released(&mut self) -> Option<Released> {
        let State::Releasing(release, lost, session) = &mut self.state else {
            return None;
        };
        let result = poll_once(release.as_mut())?;
        let released = (result, lost.clone(), *session);
        self.state = State::Done;
        Some(released)
    }

    /// Goes away: stops waiting, or drops the guard or the release.
    pub(super) fn leave(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let State::Waiting(mut answered) = state {
            answered.close();
            let (number, request) = (self.number, self.request.clone());
            if self.says_goodbye {
                self.owner.send(Command::Forget { number, request }).ok();
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "waiting",
            Self::Holding(..) => "holding",
            Self::Releasing(..) => "releasing",
            Self::Done => "done",
        })
    }
}

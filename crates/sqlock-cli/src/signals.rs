//! The signals that ask a command to end.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

const ASKING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// SIGHUP, SIGINT, SIGQUIT and SIGTERM, but for those that were ignored when this process started,
/// as `nohup` has it: they stay so, for the command too.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = ASKING
            .into_iter()
            .filter(|signal| !ignored.contains(signal));
        let streams = heeded.map(|signal| {
            let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
            Ok((signal, stream))
        });
        Ok(Self(streams.collect::<io::Result<_>>()?))
    }

    /// Cancel safe: no signal is lost.
    pub(crate) async fn recv(&mut self) -> Signal {
        poll_fn(|context| self.poll(context)).await
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Signal> {
        for (signal, stream) in &mut self.0 {
            if stream.poll_recv(context).is_ready() {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    }
}

/// The signal of this number, where it is one that asks to end.
pub(crate) fn asking(number: u8) -> Option<Signal> {
    ASKING
        .into_iter()
        .find(|signal| signal.as_raw() == i32::from(number))
}

/// Known on Linux only. Elsewhere nothing counts as ignored.
fn ignored() -> Vec<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = ignored_mask(&status).unwrap_or(0);
    ASKING
        .into_iter()
        .filter(|signal| mask >> (signal.as_raw() - 1) & 1 == 1)
        .collect()
}

fn ignored_mask(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_mask(status), Some(0x1001));
        assert_eq!(ignored_mask("Name:\tx\n"), None);
    }

    #[test]
    fn only_signals_that_ask_to_end_are_passed_on() {
        assert_eq!(asking(15), Some(Signal::TERM));
        assert_eq!(asking(9), None);
        assert_eq!(asking(0), None);
    }
}

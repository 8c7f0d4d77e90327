//! What `sqlock run` and its guardian say to each other.

use std::{
    fs, io,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, getpeername, recvmsg,
    },
    process::Signal,
};

use crate::signals;

/// More than `sqlock run` has open, fewer than the kernel takes in one message.
const MOST_SOCKETS: usize = 63;

/// What `sqlock run` asks of its guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Pass a signal on.
    Forward(Signal),
    /// The lock is lost: ask every process of the command to end.
    Stop,
    /// Time is up: end them.
    Kill,
}

const STOP: u8 = 0;
const KILL: u8 = u8::MAX;

impl Order {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Forward(signal) => u8::try_from(signal.as_raw()).unwrap_or(STOP),
            Self::Stop => STOP,
            Self::Kill => KILL,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            STOP => Some(Self::Stop),
            KILL => Some(Self::Kill),
            number => signals::asking(number).map(Self::Forward),
        }
    }
}

/// What the guardian is given before anything else.
#[derive(Debug)]
pub(super) struct Luggage {
    /// The standard input for the command, since the guardian's own is the channel.
    pub(super) stdin: OwnedFd,
    /// Held and never used: among them is the connection that holds the lock.
    pub(super) connections: Vec<OwnedFd>,
}

/// Gives the guardian our standard input and our sockets.
pub(super) fn send_luggage(channel: &UnixStream) -> io::Result<()> {
    let stdin = io::stdin().as_raw_fd();
    let mut all = vec![stdin];
    // not the channel: it would never close
    let others = own_sockets().into_iter();
    let others = others.filter(|number| *number != channel.as_raw_fd());
    all.extend(others.take(MOST_SOCKETS));
    send_descriptors(channel, &all).or_else(|_| {
        tracing::debug!("the guardian is not given the lock's connection");
        send_descriptors(channel, &[stdin])
    })
}

fn send_descriptors(channel: &UnixStream, descriptors: &[RawFd]) -> io::Result<()> {
    let message = [ControlMessage::ScmRights(descriptors)];
    let byte = [IoSlice::new(&[STOP])];
    let none = None::<&()>;
    sendmsg(
        channel.as_raw_fd(),
        &byte,
        &message,
        MsgFlags::empty(),
        none,
    )?;
    Ok(())
}

/// By their numbers, as sqlx does not show those that it owns. Linux only.
fn own_sockets() -> Vec<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    entries
        .flatten()
        .filter(is_socket)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect()
}

/// Takes over what [`send_luggage`] gave; `None` where `sqlock run` is gone already.
pub(super) fn receive_luggage(channel: impl AsFd) -> io::Result<Option<Luggage>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + MOST_SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = loop {
        let mut buffers = [IoSliceMut::new(&mut byte)];
        match recvmsg(&channel, &mut buffers, &mut control, receive_flags()) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    match descriptors.next() {
        Some(stdin) if received.bytes > 0 => Ok(Some(Luggage {
            stdin,
            connections: descriptors.filter(is_connection).collect(),
        })),
        _ => Ok(None),
    }
}

/// Not for the command to inherit.
fn receive_flags() -> RecvFlags {
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    flags
}

/// Whether it leads to another process, and is not one of a pair by which a process talks to
/// itself.
fn is_connection(socket: &OwnedFd) -> bool {
    match getpeername(socket) {
        Ok(Some(peer)) if peer.address_family() == AddressFamily::UNIX => socket
            .try_clone()
            .and_then(|socket| UnixStream::from(socket).peer_addr())
            .is_ok_and(|peer| !peer.is_unnamed()),
        Ok(Some(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood() {
        for order in [
            Order::Stop,
            Order::Kill,
            Order::Forward(Signal::TERM),
            Order::Forward(Signal::HUP),
        ] {
            assert_eq!(Order::from_byte(order.to_byte()), Some(order));
        }
        assert_eq!(Order::from_byte(9), None);
    }
}

#![deny(unused_must_use)]

use sqlock::{Locks, SessionBackend};

fn example(locks: Locks<SessionBackend>) {
    locks.lock("report").shared();
}

fn main() {}

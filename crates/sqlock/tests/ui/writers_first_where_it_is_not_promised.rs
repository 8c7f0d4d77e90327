use sqlock::{Locks, XactBackend};

fn example(locks: &Locks<XactBackend>) {
    let _catalog = locks.read_write("catalog");
}

fn main() {}

//! Readers and writers that lose their lock. Capability `lost_readers`.

use sqlock_core::{Error, WritersFirst};

use super::read_write::is_free;
use crate::{LossHarness, World, support::within};

/// A reader and a writer are told of their loss.
pub async fn readers_and_writers_are_told<H: LossHarness<Backend: WritersFirst>>(world: World<H>) {
    let (one, other) = world.two_nodes().await;
    let (here, there) = (one.read_write("k").unwrap(), other.read_write("k").unwrap());
    let reader = here.read().await.unwrap();
    world.harness().break_holder(&one).await;
    within(H::NOTICE, "the reader's signal", reader.lost().wait()).await;
    is_free::<H>(&there).await;
    assert!(reader.release().await.is_err());

    let writer = within(H::PATIENCE, "the writer's turn", here.write()).await;
    let writer = writer.unwrap();
    world.harness().break_holder(&one).await;
    within(H::NOTICE, "the writer's signal", writer.lost().wait()).await;
    is_free::<H>(&there).await;
    assert!(matches!(writer.check(), Err(Error::Lost { .. })));
}

//! A worker of the fault laboratory.

use std::env;

use anyhow::{Context as _, Result};
use sqlock_tests::lab::Worker;

#[tokio::main]
async fn main() -> Result<()> {
    let argument = env::args().nth(1).context("a worker is told what to do")?;
    Worker::run(&argument).await
}

mod apart;
mod poll;
mod room;
mod runtimes;
mod section;
mod tasks;

pub(crate) use apart::Apart;
pub(crate) use poll::{Pace, poll_times};
pub(crate) use room::Room;
pub(crate) use runtimes::{elsewhere, on_a_thread, runtime};
pub(crate) use section::Section;
pub(crate) use tasks::{join_all, random, within};

use std::time::Duration;

/// Long enough for a request to reach the server and be refused there.
pub(crate) const A_MOMENT: Duration = Duration::from_millis(60);

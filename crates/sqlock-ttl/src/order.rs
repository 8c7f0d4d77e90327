use std::fmt::Debug;

use crate::store::List;

/// Whether those who wait are served in order: [`AnyOrder`] or [`InOrder`].
pub trait Order: sealed::Sealed + Debug + Send + Sync + 'static {}

/// No order is promised between processes: whoever looks first after a release gets the lock.
#[derive(Debug, Clone, Copy)]
pub struct AnyOrder;

/// By priority, and then by arrival, over all processes.
#[derive(Debug, Clone, Copy)]
pub struct InOrder;

impl Order for AnyOrder {}
impl Order for InOrder {}

/// What is written of those who wait, where somebody may listen and where nobody does.
pub(crate) fn list<O: Order>(is_heard: bool) -> List {
    O::list(if is_heard {
        List::Listeners
    } else {
        List::None
    })
}

mod sealed {
    use super::{AnyOrder, InOrder, List};

    pub trait Sealed {
        /// What is written of those who wait, at least.
        #[expect(private_interfaces, reason = "nobody outside can name this trait")]
        fn list(least: List) -> List;
    }

    impl Sealed for AnyOrder {
        #[expect(private_interfaces, reason = "nobody outside can name this trait")]
        fn list(least: List) -> List {
            least
        }
    }

    impl Sealed for InOrder {
        #[expect(private_interfaces, reason = "nobody outside can name this trait")]
        fn list(_: List) -> List {
            List::Queue
        }
    }
}

/// Emits one `#[test]` a case for a [`Harness`](crate::Harness), grouped in modules by theme.
///
/// See the [crate's documentation](crate) for an example and the capabilities. Two harnesses in
/// one file are put into a module each.
#[macro_export]
macro_rules! conformance {
    (
        harness = $harness:ty
        $(, capabilities = [$($capability:ident),* $(,)?])?
        $(,)?
    ) => {
        #[doc(hidden)]
        type ConformanceHarness = $harness;
        $crate::__cases!(always);
        $($($crate::__cases!($capability);)*)?
    };
}

/// The list of all cases: a new one is named here, and so reaches every backend.
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    (always) => {
        $crate::__emit! {
            exclusion: [
                nodes_exclude_each_other,
                tasks_of_one_node_exclude_each_other,
                the_same_node_does_not_enter_twice,
                a_released_lock_can_be_taken_again,
                a_try_does_not_wait,
            ],
        }
    };
    (advisory_ids) => {};
    (inspect) => {};
    (loss) => {};
    (shared) => {};
    (tokens) => {};
    ($unknown:ident) => {
        compile_error!(concat!(
            "there is no capability `", stringify!($unknown), "`; ",
            "there are advisory_ids, inspect, loss, shared and tokens",
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __emit {
    ($($theme:ident: [$($case:ident),* $(,)?],)*) => {
        $(
            mod $theme {
                $(
                    #[test]
                    fn $case() {
                        $crate::run::<super::ConformanceHarness>(
                            concat!(stringify!($theme), "::", stringify!($case)),
                            $crate::cases::$theme::$case,
                        );
                    }
                )*
            }
        )*
    };
}

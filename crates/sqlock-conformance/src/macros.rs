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
            keys: [
                two_keys_are_independent,
                names_are_compared_byte_by_byte,
                any_character_can_be_in_a_name,
                the_longest_name_is_a_lock,
                an_invalid_name_holds_nothing,
                reserved_pairs_and_no_keys_are_refused,
                namespaces_are_apart,
            ],
            release: [
                release_returns_when_the_lock_is_free,
                drop_frees_the_lock,
                a_panic_frees_the_lock,
                a_release_that_is_never_polled_frees_the_lock,
                a_doubled_release_spares_the_next_holder,
                ending_twice_spares_the_next_holder,
                many_guards_end_together,
            ],
            waiting: [
                a_timeout_keeps_to_the_budget,
                an_empty_budget_does_not_wait,
                a_budget_can_be_endless,
                a_waiter_is_served_when_the_lock_ends,
                a_queue_of_waiters_drains,
                a_timed_out_waiter_does_not_take_the_lock_later,
                a_timeout_that_meets_a_grant_leaks_nothing,
                those_behind_one_that_gives_up_are_served,
            ],
            cancellation: [
                of_a_try,
                of_a_try_that_is_refused,
                of_an_acquire,
                of_an_acquire_that_waits,
                of_an_acquire_that_is_just_granted,
                of_a_body,
                of_a_release,
                of_an_acquire_by_a_timer,
            ],
            several: [
                one_guard_holds_them_all,
                all_or_none,
                nothing_is_held_while_waiting,
                one_budget_for_all_of_them,
                opposite_orders_do_not_deadlock,
                overlapping_requests_are_all_served,
                doubles_are_taken_once,
                fifty_locks_in_one_guard,
            ],
            semaphores: [
                there_are_as_many_permits_as_told,
                a_dropped_guard_returns_its_permit,
                a_waiter_gets_any_permit,
                a_crowd_is_served,
                tasks_aborted_at_random_return_their_permits,
                a_cancelled_acquire_returns_its_permit,
                a_cancelled_waiter_leaves_the_line,
                a_timeout_names_the_semaphore,
                numbers_of_permits_do_not_add_up,
                semaphores_are_apart,
            ],
            bodies: [
                run_once_runs_where_the_lock_is_free,
                run_once_runs_once,
                with_lock_waits,
                an_error_of_the_body_frees_the_lock,
                a_panic_of_the_body_frees_the_lock,
                a_body_borrows_what_is_around_it,
                an_aborted_body_is_over_when_the_lock_is_free,
                an_erased_backend_runs_in_a_spawned_task,
                a_generic_function_spawns,
            ],
            load: [
                a_hundred_tasks_never_overlap,
                a_thousand_operations_on_twenty_names,
                tasks_aborted_at_random_leave_nothing,
            ],
            runtimes: [
                drop_needs_no_runtime,
                a_guard_can_outlive_its_runtime,
                shutdown_of_the_runtime_frees_its_guards,
                shutdown_of_the_runtime_ends_its_waiters,
                shutdown_of_the_runtime_under_load,
            ],
            sends: [
                every_future_and_guard_is_send,
            ],
        }
    };
    (advisory_ids) => {
        $crate::__emit! {
            advisory_ids: [
                a_name_and_its_number_are_one_lock,
                numbers_and_pairs_are_apart,
                extreme_numbers_are_locks_of_their_own,
                a_name_and_its_number_are_taken_once,
            ],
        }
    };
    (clock_steps) => {
        $crate::__emit! {
            clock_steps: [
                a_step_ahead_is_a_loss,
                after_a_step_ahead_the_token_decides,
                a_step_back_prolongs_nothing_for_the_holder,
            ],
        }
    };
    (elections) => {
        $crate::__emit! {
            elections: [
                one_leads_at_a_time,
                the_next_leads_after_a_stop,
                a_leader_that_is_lost_steps_down,
                a_dropped_election_leaves_nothing,
                a_panic_of_the_body_ends_its_term,
                elections_aborted_at_random,
            ],
        }
    };
    (inspect) => {
        $crate::__emit! {
            inspect: [
                the_holder_is_shown,
                any_key_can_be_asked_for,
                waiters_are_not_holders,
            ],
        }
    };
    (leases) => {
        $crate::__emit! {
            leases: [
                a_paused_holder_is_succeeded,
                a_lease_is_renewed,
                a_holder_that_was_taken_over_disturbs_nobody,
                a_late_renewal_revives_nothing,
                an_extension_outlasts_the_ttl,
                the_end_is_told,
                a_grant_that_comes_too_late_is_not_given,
            ],
        }
    };
    (loss) => {
        $crate::__emit! {
            loss: [
                the_holder_is_told,
                a_late_signal_fires_at_once,
                release_reports_the_loss,
                bodies_are_stopped,
                the_next_acquire_succeeds,
                all_is_lost_together,
                waiters_survive_a_broken_connection,
                no_signal_after_a_normal_end,
            ],
            lost_permits: [
                a_lost_permit_comes_back,
                losses_make_no_permits,
            ],
        }
    };
    (rebirth) => {
        $crate::__emit! {
            rebirth: [
                a_node_outlives_its_runtime,
            ],
        }
    };
    (shared) => {
        $crate::__emit! {
            shared: [
                readers_hold_together,
                readers_and_writers_exclude_each_other,
                readers_of_one_node_are_counted,
                a_doubled_shared_release_spares_other_readers,
                waiters_of_both_kinds_are_served,
                readers_and_writers_under_load,
                a_cancelled_waiter_holds_up_nobody,
                several_keys_are_shared_together,
            ],
        }
    };
    (shutdown) => {
        $crate::__emit! {
            shutdown: [
                what_is_held_is_free_when_it_returns,
                guards_are_told,
                requests_are_refused,
                it_can_be_repeated,
                it_goes_on_when_its_future_is_dropped,
                it_meets_releases_and_drops,
            ],
        }
    };
    (writers_first) => {
        $crate::__emit! {
            writers_first: [
                a_waiting_writer_is_not_starved,
            ],
            read_write: [
                readers_share_and_a_writer_does_not,
                a_stream_of_readers_lets_a_writer_in,
                a_cancelled_one_leaves_nothing,
            ],
        }
    };
    (lost_readers) => {
        $crate::__emit! {
            lost_readers: [
                readers_and_writers_are_told,
            ],
        }
    };
    (tokens) => {
        $crate::__emit! {
            tokens: [
                they_rise_over_nodes,
                they_rise_under_contention,
                they_rise_over_every_key_of_a_guard,
                an_erased_guard_has_its_token,
            ],
        }
    };
    ($unknown:ident) => {
        compile_error!(concat!(
            "there is no capability `",
            stringify!($unknown),
            "`; ",
            "there are advisory_ids, clock_steps, elections, inspect, leases, loss, lost_readers, rebirth, ",
            "shared, shutdown, tokens and writers_first",
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

//! The suite convicts backends that are wrong: a case that cannot fail proves nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "support for tests")]

#[macro_use]
mod convict;
mod flawed;

use flawed::{Flaw, FlawedWorld, Has};

/// Without a flaw the wrapper passes, so that each conviction below is the flaw's doing.
mod without_a_flaw {
    use super::{Flaw, FlawedWorld, Has};

    struct Sound;

    impl Has for Sound {
        const FLAW: Flaw = Flaw::None;
    }

    sqlock_conformance::conformance! {
        harness = FlawedWorld<Sound>,
        capabilities = [advisory_ids, elections, inspect, loss, lost_readers, rebirth, shared, shutdown, tokens, writers_first],
    }
}

convict! {
    FlawedWorld;

    nodes_apart NodesApart: [
        exclusion::nodes_exclude_each_other,
        load::a_hundred_tasks_never_overlap,
        load::a_thousand_operations_on_twenty_names,
        load::tasks_aborted_at_random_leave_nothing,
        several::overlapping_requests_are_all_served,
        bodies::run_once_runs_once,
        waiting::a_queue_of_waiters_drains,
        shared::readers_and_writers_under_load,
        semaphores::there_are_as_many_permits_as_told,
        semaphores::a_crowd_is_served,
        semaphores::numbers_of_permits_do_not_add_up,
        lost_permits::losses_make_no_permits,
        elections::one_leads_at_a_time,
        elections::elections_aborted_at_random,
    ]
    reenters Reenters: [
        exclusion::tasks_of_one_node_exclude_each_other,
        exclusion::the_same_node_does_not_enter_twice,
        load::a_hundred_tasks_never_overlap,
        bodies::an_erased_backend_runs_in_a_spawned_task,
        shared::readers_and_writers_exclude_each_other,
        shared::readers_of_one_node_are_counted,
        semaphores::there_are_as_many_permits_as_told,
        semaphores::a_crowd_is_served,
        read_write::readers_share_and_a_writer_does_not,
    ]
    try_waits TryWaits: [
        exclusion::a_try_does_not_wait,
        several::all_or_none,
    ]
    folds_case FoldsCase: [keys::names_are_compared_byte_by_byte]
    truncates_names TruncatesNames: [keys::the_longest_name_is_a_lock]
    cannot_quote CannotQuote: [keys::any_character_can_be_in_a_name]
    drops_namespaces DropsNamespaces: [keys::namespaces_are_apart]
    names_apart_from_numbers NamesApartFromNumbers: [
        advisory_ids::a_name_and_its_number_are_one_lock,
    ]
    pairs_are_numbers PairsAreNumbers: [advisory_ids::numbers_and_pairs_are_apart]
    numbers_of_32_bits NumbersOf32Bits: [advisory_ids::extreme_numbers_are_locks_of_their_own]
    one_key_for_all OneKeyForAll: [
        keys::two_keys_are_independent,
        several::one_guard_holds_them_all,
        semaphores::there_are_as_many_permits_as_told,
        semaphores::semaphores_are_apart,
    ]
    leaks_on_drop LeaksOnDrop: [
        release::drop_frees_the_lock,
        release::a_release_that_is_never_polled_frees_the_lock,
        release::many_guards_end_together,
        runtimes::a_guard_can_outlive_its_runtime,
        runtimes::shutdown_of_the_runtime_frees_its_guards,
        runtimes::shutdown_of_the_runtime_under_load,
        cancellation::of_a_try,
        cancellation::of_an_acquire,
        cancellation::of_an_acquire_by_a_timer,
        cancellation::of_a_body,
        waiting::a_waiter_is_served_when_the_lock_ends,
        load::tasks_aborted_at_random_leave_nothing,
        bodies::an_aborted_body_is_over_when_the_lock_is_free,
        several::fifty_locks_in_one_guard,
        semaphores::a_dropped_guard_returns_its_permit,
        semaphores::tasks_aborted_at_random_return_their_permits,
        elections::a_dropped_election_leaves_nothing,
        elections::elections_aborted_at_random,
    ]
    leaks_in_panic LeaksInPanic: [
        release::a_panic_frees_the_lock,
        bodies::a_panic_of_the_body_frees_the_lock,
        elections::a_panic_of_the_body_ends_its_term,
    ]
    drop_spawns DropSpawns: [
        runtimes::drop_needs_no_runtime,
        runtimes::shutdown_of_the_runtime_frees_its_guards,
    ]
    leaks_on_cancelled_release LeaksOnCancelledRelease: [
        cancellation::of_a_release,
        cancellation::of_a_body,
        release::a_doubled_release_spares_the_next_holder,
    ]
    releases_late ReleasesLate: [
        release::release_returns_when_the_lock_is_free,
        exclusion::a_released_lock_can_be_taken_again,
        bodies::run_once_runs_where_the_lock_is_free,
        bodies::an_error_of_the_body_frees_the_lock,
    ]
    frees_by_key FreesByKey: [
        release::a_doubled_release_spares_the_next_holder,
        release::ending_twice_spares_the_next_holder,
        shared::a_doubled_shared_release_spares_other_readers,
    ]
    leaks_on_cancel LeaksOnCancel: [
        cancellation::of_a_try,
        cancellation::of_an_acquire,
        cancellation::of_an_acquire_that_waits,
        cancellation::of_an_acquire_that_is_just_granted,
        runtimes::shutdown_of_the_runtime_ends_its_waiters,
        shared::a_cancelled_waiter_holds_up_nobody,
        inspect::waiters_are_not_holders,
        semaphores::a_cancelled_acquire_returns_its_permit,
        semaphores::a_cancelled_waiter_leaves_the_line,
        read_write::a_cancelled_one_leaves_nothing,
        elections::a_dropped_election_leaves_nothing,
    ]
    takes_later TakesLater: [
        waiting::a_timed_out_waiter_does_not_take_the_lock_later,
        waiting::a_timeout_that_meets_a_grant_leaks_nothing,
        waiting::those_behind_one_that_gives_up_are_served,
        several::all_or_none,
        semaphores::a_timeout_names_the_semaphore,
    ]
    times_out_early TimesOutEarly: [waiting::a_timeout_keeps_to_the_budget]
    ignores_budget IgnoresBudget: [
        waiting::a_timeout_keeps_to_the_budget,
        waiting::an_empty_budget_does_not_wait,
        several::one_budget_for_all_of_them,
    ]
    misses_wake_ups MissesWakeUps: [
        waiting::a_waiter_is_served_when_the_lock_ends,
        waiting::a_queue_of_waiters_drains,
        waiting::a_budget_can_be_endless,
        bodies::with_lock_waits,
        several::nothing_is_held_while_waiting,
        several::opposite_orders_do_not_deadlock,
        shared::waiters_of_both_kinds_are_served,
        semaphores::a_waiter_gets_any_permit,
        elections::the_next_leads_after_a_stop,
    ]
    holds_while_waiting HoldsWhileWaiting: [several::nothing_is_held_while_waiting]
    budgets_each_key BudgetsEachKey: [several::one_budget_for_all_of_them]
    leaks_when_refused LeaksWhenRefused: [
        several::all_or_none,
        cancellation::of_a_try_that_is_refused,
    ]
    bound_to_its_runtime BoundToItsRuntime: [rebirth::a_node_outlives_its_runtime]
    shutdown_keeps ShutdownKeeps: [
        shutdown::what_is_held_is_free_when_it_returns,
        shutdown::guards_are_told,
        shutdown::requests_are_refused,
    ]
    shutdown_admits ShutdownAdmits: [shutdown::requests_are_refused]
    shutdown_fails_twice ShutdownFailsTwice: [shutdown::it_can_be_repeated]
    shutdown_is_lazy ShutdownIsLazy: [shutdown::it_goes_on_when_its_future_is_dropped]
    never_tells NeverTells: [
        loss::the_holder_is_told,
        loss::bodies_are_stopped,
        loss::release_reports_the_loss,
        loss::all_is_lost_together,
        shutdown::guards_are_told,
        lost_permits::a_lost_permit_comes_back,
        lost_readers::readers_and_writers_are_told,
        elections::a_leader_that_is_lost_steps_down,
    ]
    tells_after_the_end TellsAfterTheEnd: [loss::no_signal_after_a_normal_end]
    forgets_losses ForgetsLosses: [loss::a_late_signal_fires_at_once]
    swallows_losses SwallowsLosses: [loss::release_reports_the_loss]
    loses_one_only LosesOneOnly: [
        loss::all_is_lost_together,
        lost_permits::a_lost_permit_comes_back,
    ]
    breaks_for_good BreaksForGood: [
        loss::the_next_acquire_succeeds,
    ]
    waiters_die_with_it WaitersDieWithIt: [loss::waiters_survive_a_broken_connection]
    shared_is_exclusive SharedIsExclusive: [
        shared::readers_hold_together,
        shared::waiters_of_both_kinds_are_served,
        shared::several_keys_are_shared_together,
        read_write::readers_share_and_a_writer_does_not,
    ]
    starves_writers StarvesWriters: [
        writers_first::a_waiting_writer_is_not_starved,
        read_write::a_stream_of_readers_lets_a_writer_in,
    ]
    one_token_for_all OneTokenForAll: [
        tokens::they_rise_over_nodes,
        tokens::they_rise_over_every_key_of_a_guard,
        tokens::an_erased_guard_has_its_token,
        elections::one_leads_at_a_time,
    ]
    tokens_of_the_node TokensOfTheNode: [tokens::they_rise_over_nodes]
    tokens_before_the_grant TokensBeforeTheGrant: [tokens::they_rise_under_contention]
    sees_nobody SeesNobody: [inspect::the_holder_is_shown, inspect::any_key_can_be_asked_for]
    sees_everybody SeesEverybody: [
        inspect::waiters_are_not_holders,
        inspect::any_key_can_be_asked_for,
    ]
}

//! The cases of leases convict backends that are wrong: a case that cannot fail proves nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "support for tests")]

#[macro_use]
mod convict;
mod leasing;

use leasing::{Flaw, Has, LeaseWorld};

/// Without a flaw the leases pass, so that each conviction below is the flaw's doing.
mod without_a_flaw {
    use super::{Flaw, Has, LeaseWorld};

    struct Sound;

    impl Has for Sound {
        const FLAW: Flaw = Flaw::None;
    }

    type ConformanceHarness = LeaseWorld<Sound>;

    sqlock_conformance::__cases!(clock_steps);
    sqlock_conformance::__cases!(leases);
    sqlock_conformance::__cases!(tokens);
}

convict! {
    LeaseWorld;

    never_ends NeverEnds: [
        leases::a_paused_holder_is_succeeded,
        leases::a_late_renewal_revives_nothing,
        clock_steps::a_step_ahead_is_a_loss,
    ]
    never_renews NeverRenews: [leases::a_lease_is_renewed]
    revives_expired RevivesExpired: [
        leases::a_late_renewal_revives_nothing,
        clock_steps::a_step_ahead_is_a_loss,
    ]
    renews_by_name RenewsByName: [clock_steps::after_a_step_ahead_the_token_decides]
    believes_forever BelievesForever: [
        leases::a_paused_holder_is_succeeded,
        clock_steps::a_step_back_prolongs_nothing_for_the_holder,
    ]
    goes_by_the_servers_clock GoesByTheServersClock: [
        clock_steps::a_step_back_prolongs_nothing_for_the_holder,
    ]
    tells_nobody TellsNobody: [leases::the_end_is_told]
    gives_late GivesLate: [leases::a_grant_that_comes_too_late_is_not_given]
    extends_itself_only ExtendsItselfOnly: [leases::an_extension_outlasts_the_ttl]
    extends_nothing ExtendsNothing: [leases::an_extension_outlasts_the_ttl]
    tokens_go_back TokensGoBack: [
        leases::a_holder_that_was_taken_over_disturbs_nobody,
        clock_steps::after_a_step_ahead_the_token_decides,
    ]
}

/// One test a flaw and case; it passes where the case fails.
macro_rules! convict {
    ($world:ident; $($module:ident $flaw:ident: [$($theme:ident::$case:ident),* $(,)?])*) => {
        $(
            mod $module {
                use super::{Flaw, $world, Has};

                struct Flawed;

                impl Has for Flawed {
                    const FLAW: Flaw = Flaw::$flaw;
                }

                $(
                    #[test]
                    #[should_panic]
                    fn $case() {
                        sqlock_conformance::run::<$world<Flawed>>(
                            stringify!($case),
                            sqlock_conformance::cases::$theme::$case,
                        );
                    }
                )*
            }
        )*
    };
}

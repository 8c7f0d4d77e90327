//! The mistakes that a user makes, and what the compiler says about them.

#[test]
fn mistakes_get_an_answer() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}

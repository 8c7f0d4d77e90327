//! What the processes noted, and whether it can be.

use std::{collections::BTreeMap, fs, path::Path};

/// A look at a term that said that its process leads, at some moment between the two.
#[derive(Debug, Clone, Copy)]
struct Look {
    before: i64,
    after: i64,
}

/// A term as its process believed in it: surely from the end of the first look to the beginning of
/// the last one.
#[derive(Debug)]
pub(crate) struct Term {
    #[allow(dead_code, reason = "told where a history cannot be")]
    process: u32,
    token: i64,
    first: Look,
    last: Look,
}

/// The terms in the order in which they were believed in first.
pub(crate) fn read(notes: &Path) -> Vec<Term> {
    parse(&fs::read_to_string(notes).expect("notes"))
}

fn parse(notes: &str) -> Vec<Term> {
    let mut terms: BTreeMap<(u32, i64), Term> = BTreeMap::new();
    for note in notes.lines() {
        let fields: Vec<i64> = note.split(' ').filter_map(|n| n.parse().ok()).collect();
        let [process, number, token, before, after] = fields[..] else {
            panic!("what is {note:?}?");
        };
        let process = u32::try_from(process).expect("a pid");
        let look = Look { before, after };
        let term = terms.entry((process, number)).or_insert(Term {
            process,
            token,
            first: look,
            last: look,
        });
        term.last = look;
    }
    let mut terms: Vec<Term> = terms.into_values().collect();
    terms.sort_by_key(|term| term.first.before);
    terms
}

/// Those who surely believed that they lead at the same instant.
pub(crate) fn contradictions(terms: &[Term]) -> Vec<(&Term, &Term)> {
    let mut found = Vec::new();
    for (number, one) in terms.iter().enumerate() {
        let others = terms[number + 1..].iter();
        found.extend(
            others
                .filter(|other| overlap(one, other))
                .map(|other| (one, other)),
        );
    }
    found
}

fn overlap(one: &Term, other: &Term) -> bool {
    let from = one.first.after.max(other.first.after);
    let until = one.last.before.min(other.last.before);
    // a term that was looked at only once has no length, but may lie within another
    from < until || contains(one, other.first) || contains(other, one.first)
}

fn contains(term: &Term, look: Look) -> bool {
    term.first.after <= look.before && look.after <= term.last.before
}

/// Terms whose token is not above that of the term before.
pub(crate) fn inversions(terms: &[Term]) -> Vec<(&Term, &Term)> {
    let pairs = terms.windows(2).map(|pair| (&pair[0], &pair[1]));
    pairs
        .filter(|(before, after)| before.token >= after.token)
        .collect()
}

#[test]
fn a_history_that_cannot_be_is_found() {
    let sound = "1 0 5 10 11\n1 0 5 20 21\n2 0 6 22 23\n2 0 6 40 41\n";
    assert!(contradictions(&parse(sound)).is_empty());
    assert!(inversions(&parse(sound)).is_empty());
    // a look that a pause stretched proves nothing
    let stretched = "1 0 5 10 11\n1 0 5 20 99\n2 0 6 30 31\n2 0 6 40 41\n";
    assert!(contradictions(&parse(stretched)).is_empty());
    for two in [
        "1 0 5 10 11\n1 0 5 30 31\n2 0 6 22 23\n2 0 6 40 41\n",
        "1 0 5 10 11\n2 0 6 22 23\n1 0 5 30 31\n",
        "1 0 5 10 11\n2 0 6 22 23\n2 0 6 40 41\n1 0 5 50 51\n",
    ] {
        assert_eq!(contradictions(&parse(two)).len(), 1, "{two}");
    }
    let back = "1 0 5 10 11\n1 1 5 20 21\n";
    assert_eq!(inversions(&parse(back)).len(), 1);
}

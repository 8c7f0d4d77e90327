use std::collections::{BTreeMap, HashSet};

use super::{Facts, Grant, Violation, tenure::Tenure};

/// None twice, and none that goes back, neither as it was given nor as the resource saw it.
pub(super) fn tokens(tenures: &BTreeMap<Grant, Tenure>, facts: &Facts, found: &mut Vec<Violation>) {
    let mut seen = HashSet::new();
    for tenure in tenures.values() {
        let (key, Some(token)) = (tenure.key, tenure.token) else {
            continue;
        };
        if !seen.insert((key, token)) {
            found.push(Violation::TokenRepeated { key, token });
        }
        // Whoever asked after another had the lock has a higher one.
        for later in tenures.values() {
            let is_after = later.key == key && later.asked > tenure.granted;
            if let Some(after) = later.token.filter(|after| is_after && *after < token) {
                found.push(Violation::TokenWentBack {
                    key,
                    before: token,
                    after,
                });
            }
        }
    }
    let mut last = BTreeMap::new();
    for write in &facts.writes {
        let Some(token) = write.token else { continue };
        let before = last.entry(write.key).or_insert(token);
        if token < *before {
            found.push(Violation::WriteWentBack {
                key: write.key,
                before: *before,
                after: token,
            });
        }
        *before = token;
    }
}

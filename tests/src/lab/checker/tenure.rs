use std::{collections::BTreeMap, fmt};

use super::{Entry, Event};

/// A grant, by its process and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grant {
    /// Whose.
    pub process: u32,
    /// Which.
    pub number: u32,
}

/// What becomes of one grant in a history.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) grant: Grant,
    pub(super) key: i64,
    pub(super) token: Option<i64>,
    pub(super) asked: i64,
    pub(super) granted: i64,
    pub(super) believed: Option<i64>,
    pub(super) lost: Option<i64>,
    pub(super) ending: Option<i64>,
    pub(super) released: bool,
}

/// All of a history.
pub(super) fn tenures(history: &[Entry]) -> BTreeMap<Grant, Tenure> {
    let mut tenures = BTreeMap::new();
    for Entry { at, process, event } in history {
        let process = *process;
        if let Event::Granted {
            grant,
            key,
            token,
            asked,
        } = *event
        {
            let grant = Grant {
                process,
                number: grant,
            };
            let tenure = Tenure {
                grant,
                key,
                token,
                asked,
                granted: *at,
                believed: None,
                lost: None,
                ending: None,
                released: false,
            };
            tenures.insert(grant, tenure);
        }
    }
    for Entry { at, process, event } in history {
        let (Event::Believed { grant: number }
        | Event::Lost { grant: number, .. }
        | Event::Ending { grant: number }
        | Event::Released { grant: number }) = *event
        else {
            continue;
        };
        let Some(tenure) = tenures.get_mut(&Grant {
            process: *process,
            number,
        }) else {
            continue;
        };
        match event {
            Event::Believed { .. } => tenure.believed = tenure.believed.max(Some(*at)),
            Event::Lost { .. } => tenure.lost = Some(*at),
            Event::Ending { .. } => tenure.ending = Some(*at),
            _ => tenure.released = true,
        }
    }
    tenures
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant {} of process {}", self.number, self.process)
    }
}

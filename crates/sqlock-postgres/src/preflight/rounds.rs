//! The pooler look, without the asking.
//!
//! Two connections are asked in turn which server process answers. On a direct server, and through
//! a pooler in session mode, each has one of its own for as long as it lives. Through a transaction
//! pooler an idle pool gives both the same, and a busy one gives each another time and again.

use super::{Evidence, ServerProcess};

pub(super) const ROUNDS: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Pooled(Evidence),
    SeveralServers {
        one: ServerProcess,
        other: ServerProcess,
    },
}

#[derive(Debug, Default)]
pub(super) struct Rounds {
    asked: usize,
    first: Option<ServerProcess>,
    second: Option<ServerProcess>,
    /// To be asked again before anything is concluded: only a connection that still answers, and by
    /// the same process, shows that both were there at once.
    to_confirm: Option<Side>,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

impl Rounds {
    /// Whom to ask next. In the order 1 2 2 1: strictly in turn, a pool of two that hands out its
    /// connections one after the other would give each side its own every time.
    pub(super) fn next(&self) -> Option<Side> {
        if self.to_confirm.is_some() {
            return self.to_confirm;
        }
        match self.asked {
            asked if asked >= 2 * ROUNDS => None,
            asked if matches!(asked % 4, 0 | 3) => Some(Side::First),
            _ => Some(Side::Second),
        }
    }

    /// Takes an answer, and tells what is seen by now.
    pub(super) fn answered(&mut self, side: Side, process: ServerProcess) -> Option<Seen> {
        let is_confirming = self.to_confirm.take() == Some(side);
        self.asked += usize::from(!is_confirming);
        if let Some(before) = self.last(side).replace(process.clone())
            && before != process
        {
            let after = process;
            return Some(Seen::Pooled(Evidence::Moved { before, after }));
        }
        let other = self.last(side.other()).clone()?;
        if other != process && other.server_started == process.server_started {
            return None;
        }
        if !is_confirming {
            self.to_confirm = Some(side.other());
            return None;
        }
        Some(if other == process {
            Seen::Pooled(Evidence::Shared { process })
        } else {
            Seen::SeveralServers {
                one: process,
                other,
            }
        })
    }

    fn last(&mut self, side: Side) -> &mut Option<ServerProcess> {
        match side {
            Side::First => &mut self.first,
            Side::Second => &mut self.second,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn process(pid: i32) -> ServerProcess {
        ServerProcess {
            pid,
            address: String::new(),
            server_started: "1".to_owned(),
        }
    }

    fn look(mut answer: impl FnMut(Side) -> ServerProcess) -> Option<Seen> {
        let mut rounds = Rounds::default();
        while let Some(side) = rounds.next() {
            let seen = rounds.answered(side, answer(side));
            if seen.is_some() {
                return seen;
            }
        }
        None
    }

    #[test]
    fn connections_with_processes_of_their_own_are_left_alone() {
        assert_eq!(look(|side| process(side as i32)), None);
    }

    #[test]
    fn an_idle_pool_gives_both_the_same() {
        let seen = look(|_| process(7));
        let process = process(7);
        assert_eq!(seen, Some(Seen::Pooled(Evidence::Shared { process })));
    }

    #[test]
    fn pools_that_hand_out_in_turn_are_seen_whatever_their_size() {
        for size in 2..50 {
            let mut pool: VecDeque<i32> = (0..size).collect();
            let seen = look(|_| {
                pool.rotate_left(1);
                process(pool[0])
            });
            let is_moved = matches!(seen, Some(Seen::Pooled(Evidence::Moved { .. })));
            assert!(is_moved, "{size}: {seen:?}");
        }
    }

    /// The second connection came only after the first had been ended, and was given its pid.
    #[test]
    fn a_pid_that_is_used_again_shows_nothing_by_itself() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.answered(Side::First, process(7)), None);
        assert_eq!(rounds.answered(Side::Second, process(7)), None);
        // asked, the first would now fail
        assert_eq!(rounds.next(), Some(Side::First));
    }

    #[test]
    fn two_servers_are_no_pooler_also_where_their_pids_agree() {
        let seen = look(|side| ServerProcess {
            pid: 45,
            address: String::new(),
            server_started: (side as i32).to_string(),
        });
        assert!(
            matches!(seen, Some(Seen::SeveralServers { .. })),
            "{seen:?}"
        );
    }

    /// `10.0.0.1` and `127.0.0.1` may well be one server.
    #[test]
    fn two_addresses_of_one_server_are_left_alone() {
        let seen = look(|side| ServerProcess {
            pid: side as i32,
            address: format!("10.0.0.{}:5432", side as i32),
            server_started: "1".to_owned(),
        });
        assert_eq!(seen, None);
    }
}

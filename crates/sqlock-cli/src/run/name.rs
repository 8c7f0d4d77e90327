//! What others see of who holds the lock.

use sqlock::LockKey;

/// As much as PostgreSQL keeps of an application's name.
const MOST: usize = 63;
const MOST_OF_HOST: usize = 24;

/// `sqlock run KEY@HOST:PID`. Of a key that is too long the beginning is left.
pub(crate) fn of_holder(key: &LockKey) -> String {
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    compose(&key.to_string(), &host, std::process::id())
}

fn compose(key: &str, host: &str, pid: u32) -> String {
    let place = format!("@{}:{pid}", cut(host, MOST_OF_HOST));
    let start = format!("sqlock run {key}");
    if start.len() + place.len() <= MOST {
        return start + &place;
    }
    format!("{}..{place}", cut(&start, MOST - 2 - place.len()))
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_says_what_where_and_who() {
        assert_eq!(compose("daily", "db1", 42), "sqlock run daily@db1:42");
        let long = compose(&"x".repeat(100), "db1", 42);
        assert_eq!(long.len(), 63);
        assert!(long.ends_with("x..@db1:42"), "{long}");
    }

    proptest! {
        #[test]
        fn a_name_fits(key in ".{1,200}", host in ".{0,80}", pid in any::<u32>()) {
            prop_assert!(compose(&key, &host, pid).len() <= MOST);
        }
    }
}

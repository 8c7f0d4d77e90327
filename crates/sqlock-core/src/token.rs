use std::fmt;

/// A number that rises with every acquisition of a key and never goes back.
///
/// A resource that remembers the highest token it has seen, and refuses lower ones, is safe from
/// a holder that was paused, lost its lock and did not notice ([Kleppmann 2016]; the *sequencers*
/// of Chubby). Tokens of different keys are not comparable, and there may be gaps.
///
/// It is an `i64` since that is PostgreSQL's `bigint`:
///
/// ```
/// # use sqlock_core::FencingToken;
/// let token = FencingToken::new(41);
/// assert!(FencingToken::new(42) > token);
/// // UPDATE report SET body = $1, last_token = $2 WHERE id = $3 AND last_token < $2
/// assert_eq!(token.get(), 41);
/// ```
///
/// [Kleppmann 2016]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(i64);

impl FencingToken {
    /// For backends: the token with this value.
    #[must_use]
    pub const fn new(value: i64) -> Self {
        Self(value)
    }

    /// The value, to be stored and compared by the resource.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

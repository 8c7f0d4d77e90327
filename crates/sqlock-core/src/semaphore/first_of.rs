use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

/// What the first of several attempts gives that does not come to nothing; `None` where all do.
/// The others are dropped.
pub(super) async fn first_of<T, E, F>(attempts: impl Iterator<Item = F>) -> Result<Option<T>, E>
where
    F: Future<Output = Result<Option<T>, E>>,
{
    let mut attempts: Vec<Pin<Box<F>>> = attempts.map(Box::pin).collect();
    poll_fn(move |context| {
        let mut at = 0;
        while at < attempts.len() {
            match attempts[at].as_mut().poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(None)) => drop(attempts.swap_remove(at)),
                Poll::Ready(answer) => return Poll::Ready(answer),
            }
        }
        if attempts.is_empty() {
            Poll::Ready(Ok(None))
        } else {
            Poll::Pending
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    type Attempt = Pin<Box<dyn Future<Output = Result<Option<u8>, u8>>>>;

    async fn first(attempts: Vec<Attempt>) -> Result<Option<u8>, u8> {
        first_of(attempts.into_iter()).await
    }

    #[tokio::test]
    async fn the_first_that_comes_to_something_counts() {
        let nothing = || Box::pin(ready(Ok(None))) as Attempt;
        let answer = vec![nothing(), Box::pin(pending()), Box::pin(ready(Ok(Some(7))))];
        assert_eq!(first(answer).await, Ok(Some(7)));
        let error = vec![nothing(), Box::pin(ready(Err(3))), Box::pin(pending())];
        assert_eq!(first(error).await, Err(3));
        assert_eq!(first(vec![nothing(), nothing()]).await, Ok(None));
    }

    #[tokio::test]
    async fn one_that_comes_to_nothing_leaves_the_others() {
        let late = async {
            tokio::task::yield_now().await;
            Ok(Some(1))
        };
        let attempts: Vec<Attempt> = vec![Box::pin(ready(Ok(None))), Box::pin(late)];
        assert_eq!(first(attempts).await, Ok(Some(1)));
    }
}

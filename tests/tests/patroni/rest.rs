//! Patroni's REST interface, as far as it is needed.

use std::{io, net::IpAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const PORT: u16 = 8008;
const LIMIT: Duration = Duration::from_secs(2);

/// Whether the node says that it is the primary, as a balancer would ask it.
pub(crate) async fn is_primary(node: IpAddr) -> bool {
    let answer = timeout(LIMIT, request(node, "GET", "/primary", "")).await;
    matches!(answer, Ok(Ok(answer)) if status(&answer) == Some(200))
}

/// The node's word on itself.
pub(crate) async fn state(node: IpAddr) -> String {
    let answer = timeout(LIMIT, request(node, "GET", "/patroni", "")).await;
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

/// Asks for a switchover, and waits for its end.
pub(crate) async fn switch_over(node: IpAddr, leader: &str, candidate: &str) {
    let body = format!(r#"{{"leader": "{leader}", "candidate": "{candidate}"}}"#);
    let answer = request(node, "POST", "/switchover", &body).await;
    let answer = answer.expect("an answer");
    assert_eq!(status(&answer), Some(200), "{answer}");
}

async fn request(node: IpAddr, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((node, PORT)).await?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn status(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1)?.parse().ok()
}

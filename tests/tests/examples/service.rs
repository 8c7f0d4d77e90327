use sqlock_tests::TestDatabase;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    example::Example,
    support::{PATIENCE, node, run, until_waiting, within},
};

/// Two requests for one invoice exclude each other, and one that is under way is answered before the
/// service ends.
#[test]
fn axum_service() {
    run(async || {
        let database = TestDatabase::create().await;
        let mut service = Example::start("axum_service", &database);
        let line = service.line().await;
        let address = line.strip_prefix("listening on ").expect(&line);

        let answer = answer_to(pay(address, 7).await).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with("invoice 7 is paid"), "{answer}");

        let guard = node(&database).await.acquire("invoice/42").await.unwrap();
        let waiting = pay(address, 42).await;
        until_waiting(&database, 1).await;
        service.terminate();
        let line = service.line().await;
        assert_eq!(line, "ending, once the requests are answered");
        guard.release().await.unwrap();
        let answer = answer_to(waiting).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(service.finish().await, ["ended"]);
        database.wait_until_no_advisory_locks(PATIENCE).await;
    });
}

async fn pay(address: &str, invoice: u32) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /invoices/{invoice}/pay HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: 0\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

async fn answer_to(mut connection: TcpStream) -> String {
    let mut answer = String::new();
    let read = connection.read_to_string(&mut answer);
    within(PATIENCE, "an answer", read).await.unwrap();
    answer
}

//! A server that speaks as much of PostgreSQL's protocol as locks take, and answers what it is told.

#![allow(dead_code, reason = "each test binary takes what it needs")]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const SSL_REQUEST: u32 = 80_877_103;
pub(crate) const BOOL: i32 = 16;
pub(crate) const INT8: i32 = 20;
pub(crate) const INT4: i32 = 23;
pub(crate) const TEXT: i32 = 25;

/// Types and values, in text.
pub(crate) type Row = Vec<(i32, Option<String>)>;

/// What is answered to a statement.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Row(Row),
    /// All of the types of the first.
    Rows(Vec<Row>),
    /// No row, as for `begin`.
    Done,
    /// A code and a message.
    Error(&'static str, &'static str),
    /// The same, with which the server ends the session.
    Fatal(&'static str, &'static str),
    /// None, ever.
    Silence,
    /// The connection ends.
    HangUp,
    /// The beginning of an answer; then the connection ends, or is silent.
    Half(Box<Answer>, End),
    /// No answer of PostgreSQL's.
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Closed,
    Silent,
}

impl Answer {
    pub(crate) fn text(value: impl ToString) -> Self {
        Self::Row(vec![(TEXT, Some(value.to_string()))])
    }

    pub(crate) fn bool(value: bool) -> Self {
        let value = if value { "t" } else { "f" };
        Self::Row(vec![(BOOL, Some(value.to_owned()))])
    }

    /// To the question which process answers.
    pub(crate) fn process(pid: usize, server_started: &str) -> Self {
        Self::Row(vec![
            (INT4, Some(pid.to_string())),
            (TEXT, None),
            (INT4, None),
            (TEXT, Some(server_started.to_owned())),
        ])
    }

    pub(crate) fn unknown() -> Self {
        Self::Error("42883", "unknown function")
    }
}

/// By the number of the connection, from 0 on, and the statement.
type Script = dyn Fn(usize, &str) -> Answer + Send + Sync;

#[derive(Debug)]
pub(crate) struct FakeServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl FakeServer {
    pub(crate) async fn start(
        script: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let (asked, connections) = (Arc::clone(&server.asked), Arc::clone(&server.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = connections.fetch_add(1, Ordering::Relaxed);
                let client = Client {
                    stream,
                    number,
                    script: Arc::clone(&script),
                    asked: Arc::clone(&asked),
                    status: b'I',
                };
                // ends with the client
                tokio::spawn(async move { drop(client.serve().await) });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://app@{}/app?sslmode=disable", self.address)
    }

    /// All statements so far, of whatever connection.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

struct Client {
    stream: TcpStream,
    number: usize,
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<String>>>,
    /// `I` outside of a transaction, and `T` within one.
    status: u8,
}

impl Client {
    async fn serve(mut self) -> std::io::Result<()> {
        loop {
            let body = self.body().await?;
            if body[..4] != SSL_REQUEST.to_be_bytes() {
                break;
            }
            self.stream.write_all(b"N").await?;
        }
        let mut out = message(b'R', &0i32.to_be_bytes());
        out.extend(message(b'Z', b"I"));
        self.stream.write_all(&out).await?;
        // of the extended protocol
        let mut prepared = String::new();
        let mut out = Vec::new();
        let (mut end, mut has_failed) = (None, false);
        loop {
            let kind = self.stream.read_u8().await?;
            let body = self.body().await?;
            match kind {
                // after an error a server passes over all until the client is in step again
                b'P' | b'D' | b'B' | b'E' | b'C' if has_failed || end.is_some() => {}
                b'Q' => {
                    let sql = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                    let answer = self.ask(&sql);
                    end = push(&mut out, &answer, Part::Whole);
                    if end.is_none() {
                        self.end_statement(&sql, &answer);
                        out.extend(message(b'Z', &[self.status]));
                    }
                    self.send(&mut out, end).await?;
                }
                b'P' => {
                    let sql = body.split(|byte| *byte == 0).nth(1).unwrap_or_default();
                    prepared = String::from_utf8_lossy(sql).into_owned();
                    out.extend(message(b'1', &[]));
                }
                b'D' => {
                    // that it is described is not counted as a question
                    out.extend(message(b't', &parameters(&prepared)));
                    push(
                        &mut out,
                        &(self.script)(self.number, &prepared),
                        Part::Description,
                    );
                }
                b'B' => out.extend(message(b'2', &[])),
                b'E' => {
                    let answer = self.ask(&prepared);
                    end = push(&mut out, &answer, Part::Data);
                    has_failed = matches!(answer, Answer::Error(..));
                }
                b'C' => out.extend(message(b'3', &[])),
                b'S' => {
                    has_failed = false;
                    if end.is_none() {
                        out.extend(message(b'Z', &[self.status]));
                    }
                    self.send(&mut out, end.take()).await?;
                }
                b'X' => return Ok(()),
                _ => {}
            }
        }
    }

    async fn body(&mut self) -> std::io::Result<Vec<u8>> {
        let length = self.stream.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    fn ask(&self, sql: &str) -> Answer {
        self.asked.lock().unwrap().push(sql.to_owned());
        (self.script)(self.number, sql)
    }

    fn end_statement(&mut self, sql: &str, answer: &Answer) {
        let sql = sql.to_lowercase();
        let ends = sql.starts_with("rollback") || sql.starts_with("commit");
        if sql.starts_with("begin") && !matches!(answer, Answer::Error(..)) {
            self.status = b'T';
        } else if ends && !sql.contains("chain") {
            self.status = b'I';
        }
    }

    async fn send(&mut self, out: &mut Vec<u8>, end: Option<End>) -> std::io::Result<()> {
        self.stream.write_all(out).await?;
        out.clear();
        match end {
            None => Ok(()),
            Some(End::Closed) => Err(std::io::ErrorKind::BrokenPipe.into()),
            Some(End::Silent) => std::future::pending().await,
        }
    }
}

/// What of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Of a simple query: all of it, in text.
    Whole,
    /// Of a prepared statement.
    Description,
    /// Of its execution, in binary.
    Data,
}

/// How the connection ends, where it does.
fn push(out: &mut Vec<u8>, answer: &Answer, part: Part) -> Option<End> {
    match answer {
        Answer::Row(row) => rows(out, std::slice::from_ref(row), part),
        Answer::Rows(all) => rows(out, all, part),
        _ if part == Part::Description => out.extend(message(b'n', &[])),
        Answer::Done => out.extend(message(b'C', b"DONE\0")),
        Answer::Error(code, text) => out.extend(error("ERROR", code, text)),
        Answer::Fatal(code, text) => {
            out.extend(error("FATAL", code, text));
            return Some(End::Closed);
        }
        Answer::Silence => return Some(End::Silent),
        Answer::HangUp => return Some(End::Closed),
        Answer::Half(answer, end) => {
            push(out, answer, part);
            out.truncate(out.len() / 2);
            return Some(*end);
        }
        Answer::Bytes(bytes) => out.extend(bytes),
    }
    None
}

fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    let fields = format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0");
    message(b'E', fields.as_bytes())
}

/// As many as the statement has, all of them unspecified.
fn parameters(sql: &str) -> Vec<u8> {
    let count = (1..10).take_while(|n| sql.contains(&format!("${n}")));
    let count = u16::try_from(count.count()).unwrap();
    let mut body = count.to_be_bytes().to_vec();
    body.extend([0; 4].repeat(count.into()));
    body
}

fn rows(out: &mut Vec<u8>, rows: &[Row], part: Part) {
    let count = |row: &Row| i16::try_from(row.len()).unwrap().to_be_bytes().to_vec();
    if part != Part::Data {
        let mut description = rows.first().map_or_else(|| vec![0, 0], count);
        for (kind, _) in rows.first().into_iter().flatten() {
            description.extend(b"c\0");
            description.extend([0; 6]);
            description.extend(kind.to_be_bytes());
            description.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        }
        out.extend(message(b'T', &description));
    }
    if part == Part::Description {
        return;
    }
    for row in rows {
        let mut data = count(row);
        for (kind, value) in row {
            match value {
                Some(value) => {
                    let value = encode(*kind, value, part);
                    data.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                    data.extend(value);
                }
                None => data.extend((-1i32).to_be_bytes()),
            }
        }
        out.extend(message(b'D', &data));
    }
    out.extend(message(b'C', b"SELECT 1\0"));
}

fn encode(kind: i32, value: &str, part: Part) -> Vec<u8> {
    match kind {
        _ if part == Part::Whole => value.into(),
        BOOL => vec![u8::from(value == "t")],
        INT4 => value.parse::<i32>().unwrap().to_be_bytes().to_vec(),
        INT8 => value.parse::<i64>().unwrap().to_be_bytes().to_vec(),
        _ => value.into(),
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    let mut out = vec![kind];
    out.extend(length.to_be_bytes());
    out.extend(body);
    out
}

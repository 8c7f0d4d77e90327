//! A server that speaks as much of PostgreSQL's protocol as a simple query takes.

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
pub(crate) const INT4: i32 = 23;
pub(crate) const TEXT: i32 = 25;

/// What is answered to a simple query.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// One row: types and values, in text.
    Row(Vec<(i32, Option<String>)>),
    /// No row, as for `begin`.
    Done,
    /// A code and a message.
    Error(&'static str, &'static str),
    /// None, ever.
    Silence,
    /// The connection ends.
    HangUp,
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
                let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
                tokio::spawn(async move {
                    // ends with the client
                    drop(serve(stream, number, &*script, &asked).await);
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://app@{}/app", self.address)
    }

    /// All statements so far, of whatever connection.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    script: &Script,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    loop {
        let length = stream.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut body).await?;
        if body[..4] != SSL_REQUEST.to_be_bytes() {
            break;
        }
        stream.write_all(b"N").await?;
    }
    let mut out = message(b'R', &0i32.to_be_bytes());
    out.extend(message(b'Z', b"I"));
    stream.write_all(&out).await?;
    loop {
        let kind = stream.read_u8().await?;
        let length = stream.read_u32().await?;
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut body).await?;
        let answer = match kind {
            b'Q' => {
                let sql = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                asked.lock().unwrap().push(sql.clone());
                script(number, &sql)
            }
            b'S' => Answer::Error("0A000", "no extended queries"),
            b'X' => return Ok(()),
            _ => continue,
        };
        let mut out = match answer {
            Answer::Row(row) => rows(&row),
            Answer::Done => message(b'C', b"DONE\0"),
            Answer::Error(code, text) => {
                let fields = format!("SERROR\0VERROR\0C{code}\0M{text}\0\0");
                message(b'E', fields.as_bytes())
            }
            Answer::Silence => continue,
            Answer::HangUp => return Ok(()),
        };
        out.extend(message(b'Z', b"I"));
        stream.write_all(&out).await?;
    }
}

fn rows(row: &[(i32, Option<String>)]) -> Vec<u8> {
    let count = i16::try_from(row.len()).unwrap().to_be_bytes();
    let (mut description, mut data) = (count.to_vec(), count.to_vec());
    for (kind, value) in row {
        description.extend(b"c\0");
        description.extend([0; 6]);
        description.extend(kind.to_be_bytes());
        description.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        match value {
            Some(value) => {
                data.extend(i32::try_from(value.len()).unwrap().to_be_bytes());
                data.extend(value.as_bytes());
            }
            None => data.extend((-1i32).to_be_bytes()),
        }
    }
    let mut out = message(b'T', &description);
    out.extend(message(b'D', &data));
    out.extend(message(b'C', b"SELECT 1\0"));
    out
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    let mut out = vec![kind];
    out.extend(length.to_be_bytes());
    out.extend(body);
    out
}

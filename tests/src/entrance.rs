use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

/// The address that clients know, which leads to whichever server is the primary: what a virtual
/// address, or a balancer that asks, is in earnest.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use sqlock_tests::Entrance;
///
/// let entrance = Entrance::open(([127, 0, 0, 1], 5432).into()).await?;
/// let url = format!("postgres://postgres@127.0.0.1:{}/postgres", entrance.port());
/// // … fail over …
/// entrance.lead_to(([127, 0, 0, 1], 5433).into());
/// # let _ = url; Ok(()) }
/// ```
#[derive(Debug)]
pub struct Entrance {
    port: u16,
    target: watch::Sender<SocketAddr>,
    connections: Connections,
    accepting: JoinHandle<()>,
}

type Connections = Arc<Mutex<Vec<AbortHandle>>>;

impl Entrance {
    /// On a free port.
    ///
    /// # Errors
    ///
    /// Where no port can be had.
    pub async fn open(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (target, watched) = watch::channel(target);
        let connections = Connections::default();
        let all = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    continue;
                };
                let target = *watched.borrow();
                let relay = tokio::spawn(relay(client, target));
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(|connection| !connection.is_finished());
                all.push(relay.abort_handle());
            }
        });
        Ok(Self {
            port,
            target,
            connections,
            accepting,
        })
    }

    /// On 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where new connections go from now on; those that are there stay where they are.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Ends all connections, on both sides.
    pub fn cut(&self) {
        let mut all = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for connection in all.drain(..) {
            connection.abort();
        }
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn relay(mut client: TcpStream, target: SocketAddr) {
    let Ok(mut server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    // either end's end is the other's
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

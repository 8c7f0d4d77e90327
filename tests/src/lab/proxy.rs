use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::AbortHandle,
    time::sleep,
};

/// What happens to what goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Fair,
    /// Nothing goes through; what was sent arrives later.
    Blocked,
    /// Nothing comes from the server.
    Deaf,
    /// Nothing goes to the server.
    Mute,
    Delayed(Duration),
    /// A byte at a time.
    Trickling,
}

/// A relay between the workers and the server.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    target: Arc<AtomicU16>,
    weather: watch::Sender<Weather>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    accepting: AbortHandle,
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl Proxy {
    pub(super) async fn start(target: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (weather, watched) = watch::channel(Weather::Fair);
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let all = Arc::clone(&connections);
        let target = Arc::new(AtomicU16::new(target));
        let led_to = Arc::clone(&target);
        let accepting = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    continue;
                };
                let target = SocketAddr::from(([127, 0, 0, 1], led_to.load(Ordering::Relaxed)));
                let relay = tokio::spawn(relay(client, target, watched.clone()));
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(|connection| !connection.is_finished());
                all.push(relay.abort_handle());
            }
        });
        Ok(Self {
            port,
            target,
            weather,
            connections,
            accepting: accepting.abort_handle(),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// New connections are led there.
    pub(super) fn lead_to(&self, target: u16) {
        self.target.store(target, Ordering::Relaxed);
    }

    pub(super) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Ends all connections, on both sides.
    pub(super) fn cut(&self) {
        let mut all = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for connection in all.drain(..) {
            connection.abort();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn relay(client: TcpStream, target: SocketAddr, weather: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Either end's end is the other's.
    tokio::select! {
        _ = pass(from_client, to_server, Direction::Up, weather.clone()) => {}
        _ = pass(from_server, to_client, Direction::Down, weather) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let size = from.read(&mut buffer).await?;
        let open = weather.wait_for(|weather| !weather.blocks(direction)).await;
        let now = open.map_or(Weather::Fair, |weather| *weather);
        if size == 0 {
            return Ok(());
        }
        match now {
            Weather::Trickling => {
                for byte in buffer.get(..size).unwrap_or_default().chunks(1) {
                    to.write_all(byte).await?;
                    tokio::task::yield_now().await;
                }
            }
            Weather::Delayed(by) => {
                sleep(by).await;
                to.write_all(buffer.get(..size).unwrap_or_default()).await?;
            }
            Weather::Fair | Weather::Blocked | Weather::Deaf | Weather::Mute => {
                to.write_all(buffer.get(..size).unwrap_or_default()).await?;
            }
        }
    }
}

impl Weather {
    fn blocks(self, direction: Direction) -> bool {
        match direction {
            Direction::Up => matches!(self, Self::Blocked | Self::Mute),
            Direction::Down => matches!(self, Self::Blocked | Self::Deaf),
        }
    }
}

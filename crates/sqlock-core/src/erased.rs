use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    FencingToken, Held, LockBackend, LockGuard, LockKey, Locks, Lost, Request, Result,
    SharedBackend, TellsLoss, WritersFirst,
};

/// A held lock of any backend.
///
/// A type of its own: with an alias of `Box<dyn Held>`, futures that hold it across an await are
/// not provably `Send` in `tokio::spawn`.
pub struct BoxHeld(Box<dyn Held>);

/// Any backend, chosen at run time: [`Locks::erased`].
///
/// ```
/// # use sqlock_core::{DynBackend, Locks, MemoryBackend};
/// let locks: Locks<DynBackend> = Locks::new(MemoryBackend::new()).erased();
/// ```
pub struct DynBackend(Box<dyn LockBackend<Held = BoxHeld>>);

/// Any backend that has a shared mode, chosen at run time: [`Locks::erased_shared`].
pub struct DynSharedBackend(Box<dyn SharedBackend<Held = BoxHeld>>);

/// Any backend that tells of losses, chosen at run time: [`Locks::erased_tells_loss`].
pub struct DynTellsLoss(Box<dyn TellsLoss<Held = BoxHeld>>);

/// Any backend that promises a waiting writer its turn, chosen at run time:
/// [`Locks::erased_writers_first`].
pub struct DynWritersFirst(Box<dyn WritersFirst<Held = BoxHeld>>);

impl<B: LockBackend> Locks<B> {
    /// The same locks, with a type that does not name the backend.
    #[must_use]
    pub fn erased(self) -> Locks<DynBackend> {
        self.map_backend(|backend| DynBackend(Box::new(Erased(backend))))
    }

    /// The same locks, with a type that does not name the backend but has shared mode.
    #[must_use]
    pub fn erased_shared(self) -> Locks<DynSharedBackend>
    where
        B: SharedBackend,
    {
        self.map_backend(|backend| DynSharedBackend(Box::new(Erased(backend))))
    }

    /// The same locks, with a type that does not name the backend but has elections.
    ///
    /// ```
    /// # use sqlock_core::{DynTellsLoss, Locks, MemoryBackend};
    /// # fn example() -> sqlock_core::Result<()> {
    /// let locks: Locks<DynTellsLoss> = Locks::new(MemoryBackend::new()).erased_tells_loss();
    /// let election = locks.election("scheduler")?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn erased_tells_loss(self) -> Locks<DynTellsLoss>
    where
        B: TellsLoss,
    {
        self.map_backend(|backend| DynTellsLoss(Box::new(Erased(backend))))
    }

    /// The same locks, with a type that does not name the backend but has
    /// [`read_write`](Locks::read_write).
    #[must_use]
    pub fn erased_writers_first(self) -> Locks<DynWritersFirst>
    where
        B: WritersFirst,
    {
        self.map_backend(|backend| DynWritersFirst(Box::new(Erased(backend))))
    }
}

#[async_trait]
impl Held for BoxHeld {
    fn backend(&self) -> &'static str {
        self.0.backend()
    }
    fn keys(&self) -> &[LockKey] {
        self.0.keys()
    }
    fn token(&self) -> Option<FencingToken> {
        self.0.token()
    }
    fn lost(&self) -> Lost {
        self.0.lost()
    }
    async fn release(&mut self) -> Result<()> {
        self.0.release().await
    }
    async fn roll_back(&mut self) -> Result<()> {
        self.0.roll_back().await
    }
    fn abandon(&mut self) {
        self.0.abandon();
    }
}

macro_rules! forward_backend {
    ($erased:ty) => {
        #[async_trait]
        impl LockBackend for $erased {
            type Held = BoxHeld;
            fn name(&self) -> &'static str {
                self.0.name()
            }
            async fn acquire(&self, request: Request) -> Result<Option<LockGuard<BoxHeld>>> {
                self.0.acquire(request).await
            }
            async fn shutdown(&self) -> Result<()> {
                self.0.shutdown().await
            }
        }

        impl std::fmt::Debug for $erased {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

forward_backend!(DynBackend);
forward_backend!(DynSharedBackend);
forward_backend!(DynTellsLoss);
forward_backend!(DynWritersFirst);

macro_rules! forward_shared {
    ($erased:ty) => {
        #[async_trait]
        impl SharedBackend for $erased {
            async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<BoxHeld>>> {
                self.0.acquire_shared(request).await
            }
        }
    };
}

forward_shared!(DynSharedBackend);
forward_shared!(DynWritersFirst);

impl TellsLoss for DynTellsLoss {}
impl WritersFirst for DynWritersFirst {}

impl std::fmt::Debug for BoxHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BoxHeld").field(&self.keys()).finish()
    }
}

#[derive(Debug)]
struct Erased<B>(Arc<B>);

#[async_trait]
impl<B: LockBackend> LockBackend for Erased<B> {
    type Held = BoxHeld;
    fn name(&self) -> &'static str {
        self.0.name()
    }
    async fn acquire(&self, request: Request) -> Result<Option<LockGuard<BoxHeld>>> {
        Ok(self.0.acquire(request).await?.map(Nested::erase))
    }
    async fn shutdown(&self) -> Result<()> {
        self.0.shutdown().await
    }
}

#[async_trait]
impl<B: SharedBackend> SharedBackend for Erased<B> {
    async fn acquire_shared(&self, request: Request) -> Result<Option<LockGuard<BoxHeld>>> {
        Ok(self.0.acquire_shared(request).await?.map(Nested::erase))
    }
}

impl<B: TellsLoss> TellsLoss for Erased<B> {}
impl<B: WritersFirst> WritersFirst for Erased<B> {}

/// A guard within a guard. The outer one decides the inner one's fate, and only the outer one
/// speaks of it in events.
struct Nested<H: Held>(LockGuard<H>);

impl<H: Held> Nested<H> {
    fn erase(guard: LockGuard<H>) -> LockGuard<BoxHeld> {
        LockGuard::arm(BoxHeld(Box::new(Self(guard))))
    }
}

#[async_trait]
impl<H: Held> Held for Nested<H> {
    fn backend(&self) -> &'static str {
        self.0.held().backend()
    }
    fn keys(&self) -> &[LockKey] {
        self.0.keys()
    }
    fn token(&self) -> Option<FencingToken> {
        self.0.token()
    }
    fn lost(&self) -> Lost {
        self.0.lost()
    }
    async fn release(&mut self) -> Result<()> {
        self.0.held_mut().release().await?;
        self.0.disarm();
        Ok(())
    }
    async fn roll_back(&mut self) -> Result<()> {
        self.0.held_mut().roll_back().await?;
        self.0.disarm();
        Ok(())
    }
    fn abandon(&mut self) {
        self.0.held_mut().abandon();
        self.0.disarm();
    }
}

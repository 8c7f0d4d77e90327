use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where Debian's package libfaketime, and others, put the library.
const PLACES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// The wall clock of a process, which can be set while it runs. Its monotonic clock goes on.
#[derive(Debug)]
pub(super) struct WallClock {
    library: &'static Path,
    file: PathBuf,
}

impl WallClock {
    /// `None` where the library is missing.
    pub(super) fn new(file: PathBuf) -> io::Result<Option<Self>> {
        let mut places = PLACES.iter().map(Path::new);
        let Some(library) = places.find(|place| place.exists()) else {
            return Ok(None);
        };
        let clock = Self { library, file };
        clock.set("+0")?;
        Ok(Some(clock))
    }

    /// What the process is started with.
    pub(super) fn environment(&self) -> [(&'static str, &Path); 4] {
        [
            ("LD_PRELOAD", self.library),
            ("FAKETIME_TIMESTAMP_FILE", &self.file),
            ("FAKETIME_CACHE_DURATION", Path::new("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
        ]
    }

    /// By how many seconds it is wrong from now on.
    pub(super) fn set(&self, offset: &str) -> io::Result<()> {
        // At once, so that it is never read half written.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset}\n"))?;
        fs::rename(new, &self.file)
    }
}

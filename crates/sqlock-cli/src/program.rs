//! Whether a command can be run, by the rules of a shell, before anything waits for a lock.

use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::exit::{Code, Failure};

/// # Errors
///
/// 127 where there is no such program, 126 where it cannot be executed.
pub(crate) fn check(program: &OsStr) -> Result<(), Failure> {
    let path = env::var_os("PATH");
    let path = path
        .as_deref()
        .unwrap_or_else(|| OsStr::new("/bin:/usr/bin"));
    check_in(program, path)
}

fn check_in(program: &OsStr, path: &OsStr) -> Result<(), Failure> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        env::split_paths(path)
            .map(|directory| directory.join(program))
            .collect()
    };
    if candidates.iter().any(|path| is_executable(path)) {
        return Ok(());
    }
    let is_there = candidates.iter().any(|path| path.exists());
    Err(if is_there && !program.is_empty() {
        not_executable(program, io::ErrorKind::PermissionDenied.into())
    } else {
        not_found(program)
    })
}

/// Why the system did not execute it after all.
pub(crate) fn refused(program: &OsStr, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(program),
        _ => not_executable(program, error),
    }
}

fn not_found(program: &OsStr) -> Failure {
    let program = program.display();
    Failure::new(Code::NOT_FOUND, format!("{program}: command not found"))
}

fn not_executable(program: &OsStr, error: io::Error) -> Failure {
    let program = program.display();
    let what = format!("{program}: cannot be executed: {error}");
    Failure::new(Code::NOT_EXECUTABLE, what)
}

/// Whether it has the permission for somebody; whether for us, the system will tell.
fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_as_a_shell_does() {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("text");
        std::fs::write(&text, "no program").unwrap();
        std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o644)).unwrap();
        let path = env::join_paths(["/nowhere".as_ref(), directory.path(), "/bin".as_ref()]);
        let path = path.unwrap();
        let code = |program: &OsStr| {
            let checked = check_in(program, &path);
            checked.err().map(|failure| failure.code)
        };
        assert_eq!(code("sh".as_ref()), None);
        assert_eq!(code("/bin/sh".as_ref()), None);
        assert_eq!(code("no-such-program".as_ref()), Some(Code::NOT_FOUND));
        assert_eq!(code("/bin/no-such-program".as_ref()), Some(Code::NOT_FOUND));
        assert_eq!(code("".as_ref()), Some(Code::NOT_FOUND));
        assert_eq!(code("text".as_ref()), Some(Code::NOT_EXECUTABLE));
        assert_eq!(code(text.as_os_str()), Some(Code::NOT_EXECUTABLE));
        assert_eq!(
            code(directory.path().as_os_str()),
            Some(Code::NOT_EXECUTABLE)
        );
    }
}

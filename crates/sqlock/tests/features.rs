//! A feature that was left out is named by the compiler.

use std::{fs, path::Path, process::Command};

/// Compiles a program that uses `SessionBackend` without the feature `session`.
#[test]
fn a_feature_left_out_is_named() {
    let facade = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("feature-left-out");
    fs::create_dir_all(package.join("src")).expect("a directory");
    let manifest = format!(
        "[package]\nname = \"feature-left-out\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nsqlock = {{ path = {facade:?} }}\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).expect("a manifest");
    let program = "fn main() { let _ = sqlock::SessionBackend::connect; }\n";
    fs::write(package.join("src/main.rs"), program).expect("a program");
    let lock_file = facade.join("../../Cargo.lock");
    fs::copy(lock_file, package.join("Cargo.lock")).expect("a lock file");

    let check = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet"])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .output()
        .expect("cargo runs");

    let said = String::from_utf8_lossy(&check.stderr);
    assert!(!check.status.success(), "{said}");
    assert!(
        said.contains("cannot find `SessionBackend` in `sqlock`"),
        "{said}"
    );
    assert!(
        said.contains("gated behind the `session` feature"),
        "{said}"
    );
}

//! The container engine, by its command.

use std::process::{Command, Output};

use tokio::task::spawn_blocking;

fn run(arguments: &[String]) -> Output {
    let output = Command::new("docker").args(arguments).output();
    output.expect("the command docker: see scripts/test-patroni")
}

/// What the command says; fails where it does.
pub(crate) async fn docker(arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let output = spawn_blocking(move || (run(&arguments), arguments)).await;
    let (output, arguments) = output.expect("no panic");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Containers and networks that go when this does.
#[derive(Debug)]
pub(crate) struct Belongings {
    pub(crate) prefix: String,
    pub(crate) containers: Vec<String>,
    pub(crate) networks: Vec<String>,
}

impl Drop for Belongings {
    fn drop(&mut self) {
        let arguments = |command: &[&str], names: &[String]| {
            let command = command.iter().map(ToString::to_string);
            command.chain(names.iter().cloned()).collect::<Vec<_>>()
        };
        run(&arguments(
            &["rm", "--force", "--volumes"],
            &self.containers,
        ));
        run(&arguments(&["network", "rm"], &self.networks));
    }
}

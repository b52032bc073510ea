//! The examples of the README are true.

use crate::server::{Server, each_server};
use std::process::Command;

/// The commands in `console` blocks, with the replies that are shown.
fn examples() -> Vec<(String, String)> {
    let readme = include_str!("../../README.md");
    let blocks = readme.split("```console\n").skip(1).map(|rest| rest.split("```").next());
    let mut examples: Vec<(String, String)> = Vec::new();
    for line in blocks.flat_map(|block| block.unwrap_or_default().lines()) {
        match (line.strip_prefix("> "), examples.last_mut()) {
            (Some(command), _) => examples.push((command.into(), String::new())),
            (None, Some((_, reply))) => *reply += &format!("{line}\n"),
            (None, None) => panic!("a reply without a command: {line}"),
        }
    }
    examples
}

#[test]
fn the_session_in_the_readme_is_true() {
    let examples = examples();
    assert!(examples.len() > 5);
    each_server(|kind| {
        let server = Server::start(kind);
        for (command, reply) in &examples {
            let mut cli = Command::new(kind.tool("cli").expect("it comes with the server"));
            cli.args(["-p", &server.port.to_string(), "--no-raw"]).args(command.split(' '));
            let output = cli.output().expect("redis-cli runs");
            assert_eq!(String::from_utf8_lossy(&output.stdout), *reply, "{kind:?}: {command}");
        }
    });
}

//! redis-py, if it is there: the commands that it has for these filters, and the recipe.

use crate::client::Client;
use crate::cluster::{Cluster, PRIMARIES};
use crate::server::{self, Server, each_server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Python with redis-py and the recipe, if it is there.
pub fn python() -> Option<Command> {
    let (import, install) = ("from redis.cluster import RedisCluster", "pip install redis");
    let mut command = Command::new(server::python(import, install, "KOEL_SERVERS_REQUIRED")?);
    command.env("PYTHONPATH", examples()).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// Runs one of the scripts beside these tests. Returns `false` if there is no Python for it.
fn run(script: &str, arguments: &[&str]) -> bool {
    let Some(mut python) = python() else { return false };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let output = python.arg(folder.join(script)).args(arguments).output();
    let Output { status, stdout, stderr } = output.expect("it runs");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{script}:\n{}{}", text(&stdout), text(&stderr));
    true
}

#[test]
fn its_commands_do_as_they_say() {
    each_server(|kind| {
        let server = Server::start(kind);
        for protocol in ["2", "3"] {
            run("commands.py", &[&server.port.to_string(), protocol]);
            server.client().ask("FLUSHALL").ok();
        }
    });
}

/// Rust has filled the set that Python goes on with.
#[test]
fn its_recipe_agrees_with_the_one_in_rust() {
    each_server(|kind| {
        let cluster = Cluster::start(kind);
        let items: Vec<_> = (0..5_000).map(|number| format!("item {number}")).collect();
        let new = crate::doubt::block_on(async {
            let mut seen =
                crate::doubt::open(&cluster.addresses(), Default::default()).await.unwrap();
            seen.insert_new(&items).await.unwrap()
        });
        assert_eq!(new, [true; 5_000]);
        let has_run = run("recipe.py", &[&cluster.addresses()]);
        // What it has added is where Rust looks for it.
        let of = |node: &Server| Client::connect(node.port).ask("DBSIZE").integer();
        assert_eq!(cluster.nodes[..PRIMARIES].iter().map(of).sum::<i64>(), 64 + i64::from(has_run));
    });
}

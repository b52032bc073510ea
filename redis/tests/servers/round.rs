//! One filter goes round all that read and write filters: the library, the module, the command, the wheel, and back.

use crate::dumps::dump;
use crate::server::{Server, each_server, python};
use koel::{ConcurrentCuckooFilter, StableHash};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ITEMS: usize = 30_000;

fn item(number: usize) -> String {
    format!("https://{number}.example/")
}

/// What a program printed, which has to succeed with this input.
fn run(command: &mut Command, input: &[u8]) -> String {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = command.spawn().expect("the program runs");
    program.stdin.take().expect("its input").write_all(input).expect("it reads its input");
    let Output { status, stdout, stderr } = program.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{command:?}: {}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// The command beside these tests. It is built if it is not there.
fn command() -> PathBuf {
    let tests = std::env::current_exe().expect("the path of the tests");
    let folder = tests.parent().and_then(Path::parent).expect("the folder of the build");
    let command = folder.join("koel");
    if !command.exists() {
        run(Command::new(env!("CARGO")).args(["build", "--locked", "-q", "-p", "koel-cli"]), b"");
    }
    command
}

/// Opens the state, checks these items, and adds one.
const IN_PYTHON: &str = "
import sys
from pykoel import Filter
path, added, *items = sys.argv[1:]
with Filter(path, create=False) as seen:
    assert all(seen.contains_many(items))
    assert seen.add(added)
";

#[test]
fn one_filter_goes_round_all_that_read_and_write_filters() {
    each_server(|kind| {
        let folder = tempfile::tempdir().expect("a folder");
        let (state, chunks) = (folder.path().join("seen.koel"), folder.path().join("chunks"));
        let builder = ConcurrentCuckooFilter::builder().capacity(100).false_positive_rate(1e-6);
        let filter = builder.hasher(StableHash::with_seed(7)).growing().build().expect("memory");
        (0..ITEMS).for_each(|number| filter.insert(&item(number)).expect("memory"));
        let mut items: Vec<String> = (0..ITEMS).step_by(97).map(item).collect();

        // From the library to the module, as a file that is cut anywhere, and out of it in chunks.
        let mut file = Vec::new();
        filter.write_to(&mut file).expect("memory");
        let server = Server::start(kind);
        let mut client = server.client();
        for part in file.chunks(300_001) {
            client.load_chunk("one", 1, part).ok();
        }
        items.push("by-the-module".into());
        assert_eq!(client.ask("CF.ADDNX one by-the-module").integer(), 1);
        let dumped: Vec<Vec<u8>> = dump(&mut client, "one").into_iter().map(|it| it.1).collect();
        std::fs::write(&chunks, dumped.concat()).expect("a file");

        // To the command.
        let koel = command();
        run(Command::new(&koel).args(["merge", "-q"]).args([&state, &chunks]), b"");
        let lines = [items.join("\n"), "by-the-command".into()].join("\n");
        let dedup = || {
            let mut dedup = Command::new(&koel);
            dedup.args(["dedup", "-q", "--state"]).arg(&state);
            dedup
        };
        assert_eq!(run(&mut dedup(), lines.as_bytes()), "by-the-command\n");
        items.push("by-the-command".into());

        // What is compared in another way has no place in the module.
        let other = folder.path().join("urls.koel");
        run(Command::new(&koel).args(["add", "-q", "--url"]).arg(&other), b"https://a.example/");
        let refused = client.load_chunk("urls", 1, &std::fs::read(other).expect("a state"));
        assert!(refused.error().contains("hashed in another way"), "{kind:?}: {refused:?}");

        // To Python.
        let install = "pip install ./python";
        if let Some(python) = python("import pykoel", install, "KOEL_WHEEL_REQUIRED") {
            let mut python = Command::new(python);
            python.args(["-c", IN_PYTHON]).arg(&state).arg("by-the-wheel").args(&items);
            run(&mut python, b"");
            items.push("by-the-wheel".into());
        }
        assert_eq!(run(&mut dedup(), items.join("\n").as_bytes()), "");

        // Back to the library, and in pieces to the module.
        let filter = ConcurrentCuckooFilter::<StableHash>::load(&state).expect("a state");
        assert!(filter.grows());
        assert!((0..ITEMS).all(|number| filter.contains(&item(number))));
        for piece in filter.pieces(200_000) {
            let piece = piece.expect("memory").as_bytes().to_vec();
            client.load_chunk("two", 1, &piece).ok();
        }
        let reply = client.ask(&format!("CF.MEXISTS two {}", items.join(" ")));
        assert!(reply.array().iter().all(|found| found.integer() == 1));
    });
}

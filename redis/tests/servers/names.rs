//! The commands have other names where another module, such as RedisBloom, has theirs.

use crate::client::items;
use crate::replicas::{check_equal, follow};
use crate::server::{Kind, Server, appending, each_server, module, rewrite_file};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module that has `CF.ADD`, and the category of the commands that RedisBloom has.
const OTHER: &str = r#"
int (*create)(void *, const char *, int (*)(void *, void **, int), const char *, int, int, int);
int (*category)(void *, const char *), (*reply)(void *, const char *);
void (*about)(void *, const char *, int, int);
static int add(void *context, void **arguments, int count) { return reply(context, "theirs"); }
int RedisModule_OnLoad(void *context, void **arguments, int count) {
    int (*get)(const char *, void *) = *(int (**)(const char *, void *))context;
    get("RedisModule_CreateCommand", &create), get("RedisModule_SetModuleAttribs", &about);
    get("RedisModule_ReplyWithSimpleString", &reply), get("RedisModule_AddACLCategory", &category);
    about(context, "other", 1, 1);
    return category && category(context, "cuckoo") ? 1 : create(context, "CF.ADD", add, "write", 1, 1, 1);
}
"#;

fn other_module(folder: &Path) -> PathBuf {
    let (source, module) = (folder.join("other.c"), folder.join("other.so"));
    std::fs::write(&source, OTHER).expect("a file");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).args([&module, &source]);
    assert!(compile.status().expect("a C compiler").success());
    module
}

/// Starts a server that cannot load a module, with the words of these settings, and returns its log.
fn start_in_vain(kind: Kind, settings: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(kind.tool("server").expect("a server"));
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(folder.path().join("socket"));
    let ended = command.args(settings).output().expect("it starts");
    let log = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(!ended.status.success(), "{kind:?}: {log}");
    log
}

#[test]
fn a_taken_name_is_told_and_another_prefix_loads_the_module_beside_it() {
    each_server(|kind| {
        let folder = tempfile::tempdir().expect("a folder");
        let (other, koel) = (other_module(folder.path()), module());
        let (other, koel) = (other.to_str().expect("a path"), koel.to_str().expect("a path"));
        let log = start_in_vain(kind, &["--loadmodule", other, "--loadmodule", koel]);
        assert!(log.contains("another module has the command CF.ADD"), "{kind:?}: {log}");
        assert!(log.contains("Add `prefix KOEL`"), "{kind:?}: {log}");

        let server = Server::with(kind, &["prefix", "KOEL", "--loadmodule", other]);
        let mut client = server.client();
        assert_eq!(client.ask("CF.ADD k a").text(), "theirs");
        assert_eq!(client.ask("KOEL.ADD k a").integer(), 1, "{kind:?}");
        assert_eq!(client.ask("KOEL.EXISTS k a").integer(), 1, "{kind:?}");
        if kind == Kind::Valkey {
            client.ask("ACL SETUSER koel on >secret ~* +@koel").ok();
            client.ask("AUTH koel secret").ok();
            assert_eq!(client.ask("KOEL.EXISTS k a").integer(), 1);
            assert!(client.ask("CF.ADD k a").error().starts_with("NOPERM"));
        }
    });
}

#[test]
fn a_prefix_is_the_one_of_all_that_is_replicated_logged_and_told() {
    each_server(|kind| {
        let settings = [&["prefix", "Seen"][..], &appending("no")].concat();
        let mut primary = Server::with(kind, &settings);
        let replica = Server::with(kind, &["prefix", "seen"]);
        follow(&replica, &primary);
        let mut client = primary.client();
        assert!(client.ask("CF.ADD k a").error().contains("unknown command"));
        client.ask("seen.RESERVE k 1000 FORGETAFTER 9999").ok();
        client.ask("SEEN.INSERT few ITEMS a b c");
        client.ask(&format!("SEEN.INSERT k ITEMS {}", items(0..5_000)));
        client.ask("CONFIG SET koel.max-bytes 300kb").ok();
        client.ask(&format!("SEEN.INSERT limited ITEMS {}", items(0..100_000)));
        client.ask("CONFIG SET koel.max-bytes 0").ok();
        (0..5).for_each(|item| drop(client.ask(&format!("SEEN.DEL limited {item}"))));
        client.ask("SEEN.COMPACT limited").ok();
        let state = std::fs::read(state_in(&primary)).expect("a file");
        client.call(&[&"SEEN.LOADCHUNK", &"loaded", &"1", &state]).ok();
        check_equal(&primary, &replica, "with a prefix");
        primary.kill_and_restart();
        check_equal(&primary, &replica, "after a restart");
        let mut client = primary.client();
        rewrite_file(&mut client);
        let before = client.digest("");
        primary.kill_and_restart();
        let mut client = primary.client();
        assert_eq!(client.digest(""), before, "{kind:?}");
        for key in ["k", "few", "limited", "loaded"] {
            assert_eq!(client.ask(&format!("EXISTS {key}")).integer(), 1, "{kind:?}: {key}");
        }

        let half = [&state[..100], b""].concat();
        client.call(&[&"SEEN.LOADCHUNK", &"half", &"1", &half]).ok();
        let error = client.ask("SEEN.ADD half a");
        assert!(error.error().contains("Seen.LOADCHUNK"), "{kind:?}: {error:?}");
        assert!(client.ask("SEEN.ADD k").error().contains("'seen.add'"));
        let docs = format!("{:?}", client.ask("COMMAND DOCS seen.loadchunk"));
        assert!(!docs.to_lowercase().contains("cf."), "{docs}");
    });
}

/// The file of a filter.
fn state_in(server: &Server) -> PathBuf {
    let path = server.path().join("state");
    let builder = koel::ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    let filter = builder.hasher(koel::StableHash::with_seed(7)).build().expect("a filter");
    filter.insert("an item").expect("memory");
    filter.save(&path).expect("a file");
    path
}

#[test]
fn what_is_no_prefix_is_refused() {
    each_server(|kind| {
        let koel = module();
        let koel = koel.to_str().expect("a path");
        let long = "x".repeat(33);
        for arguments in [&["prefix"][..], &["prefix", "a b"], &["prefix", &long], &["CF2"]] {
            let log = start_in_vain(kind, &[&["--loadmodule", koel], arguments].concat());
            assert!(log.contains("koel: ") && log.contains("prefix"), "{kind:?}: {log}");
        }
    });
}

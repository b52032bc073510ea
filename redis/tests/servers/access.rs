//! Who may do what, and what clients learn of a command: rules, keys, documentation.

use crate::client::Reply;
use crate::server::{Kind, Server, each_server};

const COMMANDS: [(&str, bool); 14] = [
    ("cf.reserve", true),
    ("cf.add", true),
    ("cf.addnx", true),
    ("cf.insert", true),
    ("cf.insertnx", true),
    ("cf.exists", false),
    ("cf.mexists", false),
    ("cf.count", false),
    ("cf.del", true),
    ("cf.info", false),
    ("cf.scandump", false),
    ("cf.loadchunk", true),
    ("cf.compact", true),
    ("cf.merge", true),
];

#[test]
fn a_user_who_may_only_read_keys_can_ask() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        client.ask("CF.ADD k a");
        client.ask("ACL SETUSER reader on nopass %R~k +@all").ok();
        client.ask("ACL SETUSER adder on nopass %W~k %R~k +cf.add +cf.exists").ok();
        let mut reader = server.client();
        reader.ask("AUTH reader x").ok();
        for line in
            ["CF.EXISTS k a", "CF.MEXISTS k a", "CF.COUNT k a", "CF.INFO k", "CF.SCANDUMP k 0"]
        {
            assert!(!matches!(reader.ask(line), Reply::Error(_)), "{kind:?}: {line}");
        }
        for line in [
            "CF.ADD k b",
            "CF.DEL k a",
            "CF.INSERT k ITEMS b",
            "CF.COMPACT k",
            "CF.MERGE k k",
            "CF.EXISTS other a",
        ] {
            assert!(reader.ask(line).error().starts_with("NOPERM"), "{kind:?}: {line}");
        }
        let mut adder = server.client();
        adder.ask("AUTH adder x").ok();
        assert_eq!(adder.ask("CF.ADD k b").integer(), 1);
        assert!(adder.ask("CF.DEL k b").error().starts_with("NOPERM"));
    });
}

#[test]
fn commands_tell_their_keys_flags_and_documentation() {
    each_server(|kind| {
        let server = Server::start(kind);
        let mut client = server.client();
        for (command, writes) in COMMANDS {
            let info = client.ask(&format!("COMMAND INFO {command}"));
            let info = info.array()[0].array();
            let flags: Vec<_> = info[2].array().iter().map(Reply::text).collect();
            let flag = if writes { "write" } else { "readonly" };
            assert!(flags.iter().any(|other| other == flag), "{command}: {flags:?}");
            assert_eq!(info[3].integer(), 1, "{command}: the first key");
            let docs = client.ask(&format!("COMMAND DOCS {command}"));
            let docs = docs.field(command);
            assert!(docs.field("summary").text().len() > 10);
            assert!(docs.field("arguments").array()[0].field("type").text() == "key");
        }
        let keys = client.ask("COMMAND GETKEYSANDFLAGS CF.EXISTS k a");
        assert_eq!(keys.array()[0].array()[0].text(), "k");
        assert_eq!(keys.array()[0].array()[1].array()[0].text(), "RO");
        let keys = client.ask("COMMAND GETKEYS CF.MERGE a b c");
        assert_eq!(keys.array().iter().map(Reply::text).collect::<Vec<_>>(), ["a", "b", "c"]);
        // Redis lets modules have categories of their own from 7.4 on.
        if kind == Kind::Valkey {
            for (command, _) in COMMANDS {
                let info = client.ask(&format!("COMMAND INFO {command}"));
                let categories = info.array()[0].array()[6].array();
                assert!(
                    categories.iter().any(|category| category.text() == "@cuckoo"),
                    "{command}"
                );
            }
        }
    });
}

#[test]
fn transactions_and_scripts_see_what_changed() {
    each_server(|kind| {
        let server = Server::start(kind);
        let (mut one, mut other) = (server.client(), server.client());
        one.ask("CF.ADD k a");
        // A question, or an item that is there, is no change.
        for (line, changes) in [
            ("CF.ADDNX k a", false),
            ("CF.EXISTS k a", false),
            ("CF.ADD k b", true),
            ("CF.DEL k zz", false),
            ("CF.DEL k b", true),
        ] {
            one.ask("WATCH k").ok();
            other.ask(line);
            one.ask("MULTI").ok();
            one.ask("CF.COUNT k a");
            let done = one.ask("EXEC");
            assert_eq!(done == Reply::Null, changes, "{kind:?}: {line}");
        }
        let script = "return redis.call('CF.ADD', KEYS[1], ARGV[1])";
        assert_eq!(one.call(&[&"EVAL", &script, &"1", &"k", &"c"]).integer(), 1);
        assert_eq!(one.ask("CF.EXISTS k c").integer(), 1);
    });
}

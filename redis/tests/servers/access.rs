//! Who may do what, and what clients learn of a command: rules, keys, documentation.

use crate::client::{Client, Reply};
use crate::interface::version;
use crate::server::{Server, each_client, each_server};

/// A command: its flags and categories, where the server has categories for it, and a call that does something; its
/// number of arguments, and what it does with its first key. The calls follow each other.
type Row = (&'static str, &'static str, &'static str, &'static str, i64, &'static str);

const COMMANDS: [Row; 15] = [
    ("cf.reserve", "write denyoom", "write slow", "CF.RESERVE k 100 SEED 7", -3, "RW insert"),
    ("cf.add", "write denyoom fast", "write fast", "CF.ADD k a", 3, "RW insert"),
    ("cf.addnx", "write denyoom fast", "write fast", "CF.ADDNX k b", 3, "RW insert"),
    ("cf.insert", "write denyoom", "write slow", "CF.INSERT k ITEMS c", -4, "RW insert"),
    ("cf.insertnx", "write denyoom", "write slow", "CF.INSERTNX k ITEMS d", -4, "RW insert"),
    ("cf.exists", "readonly fast", "read fast", "CF.EXISTS k a", 3, "RO access"),
    ("cf.mexists", "readonly", "read slow", "CF.MEXISTS k a b", -3, "RO access"),
    ("cf.count", "readonly fast", "read fast", "CF.COUNT k a", 3, "RO access"),
    ("cf.del", "write fast", "write fast", "CF.DEL k a", 3, "RW delete"),
    ("cf.info", "readonly", "read slow", "CF.INFO k", 2, "RO"),
    ("cf.scandump", "readonly", "read slow", "CF.SCANDUMP k 0", 3, "RO access"),
    ("cf.loadchunk", "write denyoom", "write slow", "CF.LOADCHUNK other 1 x", 4, "RW insert"),
    ("cf.compact", "write", "write slow", "CF.COMPACT k", -2, "RW update"),
    ("cf.merge", "write denyoom", "write slow", "CF.MERGE merged k", -3, "RW insert"),
    ("cf.tick", "write", "write slow", "CF.TICK k 1", 3, "RW update"),
];

fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<_> = text.split(' ').collect();
    words.sort_unstable();
    words
}

fn sorted(reply: &Reply) -> Vec<String> {
    let mut words: Vec<_> = reply.array().iter().map(Reply::text).collect();
    words.sort_unstable();
    words
}

/// Whether the server has categories for the commands of modules, and lets these add some.
fn has_categories(client: &mut Client) -> (bool, bool) {
    let is_valkey = client.ask("INFO server").text().contains("valkey_version:");
    let version = version(client);
    (version >= (7, 2), version >= (7, 4) || is_valkey)
}

/// The access rules in the README, by the names of their users.
fn rules_of_the_readme() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("../../README.md").lines();
    let rules = lines.filter_map(|line| line.strip_prefix("> ACL SETUSER "));
    rules.map(|rule| rule.split_once(" on >secret ").expect("a user and rules")).collect()
}

/// Calls each command as a user with these rules, for keys and for commands, and returns those that it may not call.
fn refused(server: &Server, rules: &str) -> Vec<&'static str> {
    let mut client = server.client();
    client.ask("DEL k other merged");
    client.ask(&format!("ACL SETUSER user reset on nopass {rules}")).ok();
    let mut user = server.client();
    user.ask("AUTH user x").ok();
    let mut may_not = |row: &Row| {
        let reply = user.ask(row.3);
        if !matches!(&reply, Reply::Error(text) if text.starts_with("NOPERM")) {
            return false;
        }
        // Those that follow find what it would have done.
        client.ask(row.3);
        true
    };
    COMMANDS.iter().filter(|row| may_not(row)).map(|row| row.0).collect()
}

fn commands_with(category: &str) -> Vec<&'static str> {
    let has = |row: &&Row| words(row.2).contains(&category);
    COMMANDS.iter().filter(has).map(|row| row.0).collect()
}

#[test]
fn a_user_who_may_all_but_write_cannot_write_and_one_who_may_read_and_write_can() {
    each_server(|kind| {
        let server = Server::start(kind);
        let all: Vec<_> = COMMANDS.iter().map(|row| row.0).collect();
        let (reads, writes) = (commands_with("read"), commands_with("write"));
        // In any server, by the rules that the README has.
        let rules = rules_of_the_readme();
        let names: Vec<_> = rules.iter().map(|rule| rule.0).collect();
        assert_eq!(names, ["reader", "app", "cautious"]);
        let (has_some, has_own) = has_categories(&mut server.client());
        // Nobody but a primary sends that.
        let tick = if has_some { Vec::new() } else { vec!["cf.tick"] };
        for ((_, rule), expected) in rules.into_iter().zip([&writes, &tick, &writes]) {
            assert_eq!(refused(&server, &format!("~* {rule}")), *expected, "{kind:?}: {rule}");
        }
        assert_eq!(refused(&server, "%R~* +@all"), writes, "{kind:?}: keys that it may only read");
        if has_some {
            assert_eq!(refused(&server, "~* +@all -@write"), writes, "{kind:?}");
            assert_eq!(refused(&server, "~* +@read +@write"), Vec::<&str>::new(), "{kind:?}");
            assert_eq!(refused(&server, "~* +@read"), writes, "{kind:?}");
            assert_eq!(refused(&server, "~* +@write"), reads, "{kind:?}");
            assert_eq!(refused(&server, "~* +@all -@fast"), commands_with("fast"), "{kind:?}");
            assert_eq!(refused(&server, "~* +@all -@slow"), commands_with("slow"), "{kind:?}");
        }
        if has_own {
            assert_eq!(refused(&server, "~* +@cuckoo"), Vec::<&str>::new(), "{kind:?}");
            assert_eq!(refused(&server, "~* +@all -@cuckoo"), all, "{kind:?}");
        }
    });
}

/// All words of a reply, one after the other.
fn flat(reply: &Reply) -> String {
    match reply {
        Reply::Array(parts) => parts.iter().map(flat).collect::<Vec<_>>().join(" "),
        Reply::Integer(number) => number.to_string(),
        other => other.text(),
    }
}

#[test]
fn commands_tell_their_keys_flags_categories_and_documentation() {
    each_client(|kind, client| {
        let (has_some, has_own) = has_categories(client);
        let keys = |flags: &str, first: usize, last: isize| {
            format!(
                "flags {flags} begin_search type index spec index {first} \
                 find_keys type range spec lastkey {last} keystep 1 limit 0"
            )
        };
        for (command, flags, categories, _, arity, does) in COMMANDS {
            let info = client.ask(&format!("COMMAND INFO {command}"));
            let info = info.array()[0].array();
            assert_eq!(sorted(&info[2]), words(&format!("{flags} module")), "{kind:?}: {command}");
            assert_eq!(info[1].integer(), arity, "{kind:?}: {command}");
            assert_eq!(info[3].integer(), 1, "{command}: the first key");
            let mut expected = vec![keys(does, 1, 0)];
            expected.extend((command == "cf.merge").then(|| keys("RO access", 2, -1)));
            assert_eq!(flat(&info[8]), expected.join(" "), "{kind:?}: {command}");
            let mut expected: Vec<_> =
                words(categories).iter().map(|category| format!("@{category}")).collect();
            expected.extend(has_own.then(|| "@cuckoo".to_owned()));
            expected.sort_unstable();
            let expected = if has_some { expected } else { Vec::new() };
            assert_eq!(sorted(&info[6]), expected, "{kind:?}: {command}");
            let docs = client.ask(&format!("COMMAND DOCS {command}"));
            let docs = docs.field(command);
            assert!(docs.field("summary").text().len() > 10);
            assert!(docs.field("complexity").text().starts_with("O("));
            assert_eq!(docs.field("since").text(), "0.1.0");
        }
        let listed = client.ask("COMMAND LIST FILTERBY MODULE koel");
        let mut all: Vec<_> = COMMANDS.iter().map(|row| row.0).collect();
        all.sort_unstable();
        assert_eq!(sorted(&listed), all, "{kind:?}");
        let keys = client.ask("COMMAND GETKEYSANDFLAGS CF.EXISTS k a");
        assert_eq!(keys.array()[0].array()[0].text(), "k");
        assert_eq!(keys.array()[0].array()[1].array()[0].text(), "RO");
        let keys = client.ask("COMMAND GETKEYS CF.MERGE a b c");
        assert_eq!(keys.array().iter().map(Reply::text).collect::<Vec<_>>(), ["a", "b", "c"]);
    });
}

//! Every command, argument and error is answered as RedisBloom answers it, in both versions of the protocol.

use crate::client::{Client, Reply};
use crate::server::{Server, each_client, each_server};

/// A reply as `replies.txt` writes it.
fn reply(text: &str, resp3: bool) -> Reply {
    if let Some(text) = text.strip_prefix("! ") {
        return Reply::Error(text.into());
    }
    if let Some(text) = text.strip_prefix('+') {
        return Reply::Simple(text.into());
    }
    if let Some(list) = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        return Reply::Array(list.split(' ').map(|text| reply(text, resp3)).collect());
    }
    match text {
        "T" | "F" if resp3 => Reply::Bool(text == "T"),
        "T" | "F" => Reply::Integer((text == "T").into()),
        "N" => reply(if resp3 { "F" } else { "-1" }, resp3),
        "nil" => Reply::Null,
        _ => text.parse().map_or_else(|_| text.trim_matches('"').into(), Reply::Integer),
    }
}

/// The reply to a call, or a field of it.
fn answer(client: &mut Client, call: &str) -> Reply {
    match call.split_once(" @") {
        Some((call, field)) => client.ask(call).field(field).clone(),
        None => client.ask(call),
    }
}

#[test]
fn every_argument_and_error_is_answered_as_told() {
    each_server(|kind| {
        let server = Server::start(kind);
        for resp3 in [false, true] {
            let mut client = server.client();
            client.ask("FLUSHALL").ok();
            if resp3 {
                client = client.with_resp3();
            }
            for line in include_str!("replies.txt").lines() {
                if line.starts_with('#') {
                    client.ask("FLUSHALL").ok();
                } else if let Some((call, expected)) = line.split_once(" => ") {
                    let before = client.digest("");
                    let (answer, what) =
                        (answer(&mut client, call), format!("{kind:?}, RESP3 {resp3}: {call}"));
                    if let Reply::Error(_) = answer {
                        assert_eq!(client.digest(""), before, "{what}: it has changed something");
                    }
                    match expected.strip_prefix("~ ") {
                        Some(part) => assert!(answer.error().contains(part), "{what}: {answer:?}"),
                        None => assert_eq!(answer, reply(expected, resp3), "{what}"),
                    }
                }
            }
        }
    });
}

#[test]
fn a_filter_of_fixed_size_takes_what_was_asked_for_and_not_much_more() {
    each_client(|kind, client| {
        // Item by item and in batches.
        for capacity in [32, 33, 1_000, 100_000] {
            client.ask(&format!("CF.RESERVE {capacity} {capacity} EXPANSION 0")).ok();
            let answers =
                client.many(&format!("CF.INSERTNX {capacity} ITEMS"), 0..2 * capacity + 100);
            let first = answers.iter().position(|answer| *answer == -1).expect("it is full");
            assert!(first >= capacity, "{kind:?}: {first} of {capacity}");
            let added = answers.into_iter().filter(|answer| *answer == 1).count();
            assert!(added <= capacity + capacity / 5 + 50, "{kind:?}: {added} in {capacity}");
            assert_eq!(client.len(&capacity.to_string()), added as i64, "{kind:?}");
        }
    });
}

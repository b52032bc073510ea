//! Records of JSON that are changed: `--annotate` and `--paragraphs`.

use crate::common::*;
use std::collections::HashSet;

#[test]
fn every_record_is_written_and_says_whether_it_is_repeated() {
    let place = Place::new();
    let input = b"{\"id\":1}\n { \"id\" : 1 , \"x\":[{\"dup\":1}] } \r\n{\"id\":2}\n{}\n{ }\n{\"dupe\":\"\\\"\"}";
    place.assert_outputs(&[
        (
            "dedup --json-field id --annotate dup",
            input,
            b"{\"id\":1,\"dup\":false}\n { \"id\" : 1 , \"x\":[{\"dup\":1}] ,\"dup\":true} \r\n\
              {\"id\":2,\"dup\":false}\n{\"dup\":false}\n{ \"dup\":false}\n{\"dupe\":\"\\\"\",\"dup\":false}\n",
        ),
        ("dedup --annotate a\"\\.b", b"{\"x\":1}\n{\"x\":1}\n", b"{\"x\":1,\"a\\\".b\":false}\n{\"x\":1,\"a\\\".b\":true}\n"),
        // As Python and some editors write.
        ("dedup --annotate d", b"\xEF\xBB\xBF{\"x\":NaN}\n", b"\xEF\xBB\xBF{\"x\":NaN,\"d\":false}\n"),
        ("dedup --zero --annotate d", b"{\"x\":\n1}\0", b"{\"x\":\n1,\"d\":false}\0"),
    ]);
    // With many chunks, in files.
    place.write(
        "f.jsonl",
        (0..100_000).map(|n| format!("{{\"n\":{}}}\n", n / 2)).collect::<String>(),
    );
    place.ok("dedup --annotate dup --output-dir out f.jsonl", "");
    let expected = (0..100_000).map(|n| format!("{{\"n\":{},\"dup\":{}}}\n", n / 2, n % 2 == 1));
    assert_same(&place.read("out/f.jsonl"), expected.collect::<String>().as_bytes(), "f.jsonl");
    place.assert_refused(&[
        ("dedup --annotate d {--state s,-d,-c,--limit 1,--lossless}", "cannot be used with"),
        ("dedup --annotate a.b", "is one name"),
    ]);
}

#[test]
fn what_cannot_be_annotated_ends_the_run() {
    let place = Place::new();
    let no_object = r#"|x|[1]|{"a":1|{"a":1}}|{"a":1} x|{"a" 1}|{,}|{"a":1,}|"{}""#.split('|');
    let has_it = ["{\"dup\":true}", "{\"a\":1,\"d\\u0075p\":null}"];
    let no_object = no_object.map(|line| (line, "is no JSON object"));
    for (line, said) in no_object.chain(has_it.map(|line| (line, "use another name"))) {
        place.write("f.jsonl", format!("{{\"a\":0}}\n{line}\n"));
        let ran = place.koel("dedup --annotate dup --output-dir out f.jsonl");
        assert_eq!(ran.code, Some(2), "{line}");
        ran.has(said);
        ran.has("f.jsonl: ");
        assert!(place.path("out").read_dir().unwrap().next().is_none(), "{line}");
    }
}

const WORDS: &str = "dedup --text text --paragraphs";

#[test]
fn paragraphs_that_were_seen_are_left_out_and_records_without_any_left() {
    let place = Place::new();
    for (before, after) in [
        ("Menu\\nOne\\n\\nEnd", "Menu\\nOne\\n\\nEnd"),
        ("Menu\\nTwo\\n\\nEnd\\n", "Two\\n\\n"),
        ("Menu\\n\\n \\nThree\\u000A\\n\\u0045nd", "Three\\u000A\\n"),
        ("\\n\\nMenu\\nFour\\r\\n\\nFive\\nFour\\n\\n", "\\n\\nFour\\r\\n\\nFive\\n"),
        ("Menu\\r\\nEnd", ""),
        ("\\\\nSix\\\\\\nMenu\\n \\u00e4\\ud83d", "\\\\nSix\\\\\\n \\u00e4\\ud83d"),
    ] {
        let record = |text| format!("{{\"id\":\"Menu\\n\",\"text\" : \"{text}\" ,\"x\":[1]}}\n");
        let expected = if after.is_empty() { String::new() } else { record(after) };
        let ran = place.ok(&format!("{WORDS} --state seen.koel"), record(before));
        assert_eq!(ran.text(), expected);
    }
    // What has no paragraph is compared as a whole.
    let whole = "{\"text\":\"\"}\n{\"text\":\" \\n\"}\n{\"text\":1}\n{\"x\":\"a\\nb\"}\nno record\n\n{\"text\":\"\\x\"}\n";
    let input = whole.repeat(2) + "{\"text\":\"a\\na\\nb\"}\n";
    let fields = json!({
        "lines": 17, "new": 9, "repeated": 8, "records": 15, "emptied": 7, "without_field": 14,
        "compared": "by paragraphs of text, byte by byte, ignoring a CR before the newline",
    });
    place.tells(WORDS, input, &format!("{whole}{{\"text\":\"a\\nb\"}}\n"), fields);
    place.assert_outputs(&[
        (
            "dedup --text a.b --paragraphs -i",
            b"{\"a\":{\"b\":\"X\\nx\"}}\n",
            b"{\"a\":{\"b\":\"X\\n\"}}\n",
        ),
        (
            "dedup --text a --paragraphs --keep-cr",
            b"{\"a\":\"x\\nx\\r\\n\"}",
            b"{\"a\":\"x\\nx\\r\\n\"}\n",
        ),
    ]);
    place.assert_refused(&[
        ("dedup {--text a,--paragraphs}", "required"),
        ("dedup --text a --paragraphs {-d,-c,--limit 1,--lossless,--annotate d,--field 1,--json-field a}", "cannot be used with"),
    ]);
}

/// Many chunks, on several threads, beside a parser.
#[test]
fn paragraphs_are_those_that_a_parser_finds() {
    let mut random = Random(1);
    let (mut input, mut expected, mut seen) = (String::new(), String::new(), HashSet::new());
    for id in 0..rounds(30_000, 300_000) {
        let number = 1 + random.below(8);
        // A newline is part of the paragraph before it.
        let paragraph = |at| {
            let end = if at + 1 < number { "\n" } else { "" };
            format!("paragraph \"{}\"{end}", random.below(40_000))
        };
        let paragraphs: Vec<String> = (0..number).map(paragraph).collect();
        input += &format!("{}\n", json!({ "id": id, "text": paragraphs.concat() }));
        let left: Vec<String> =
            paragraphs.into_iter().filter(|it| seen.insert(it.trim().to_owned())).collect();
        if !left.is_empty() {
            expected += &format!("{}\n", json!({ "id": id, "text": left.concat() }));
        }
    }
    let place = Place::new();
    place.write("f.jsonl", input);
    for options in ["--threads 1", "--threads 7"] {
        place.make_state("seen.koel");
        place.ok(&format!("{WORDS} {options} --state seen.koel --output-dir out f.jsonl"), "");
        assert_same(&place.read("out/f.jsonl"), expected.as_bytes(), options);
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
}

//! The options of `koel dedup`: outputs, summaries and limits.

use crate::common::*;
use std::fs;
use std::process::Stdio;

#[test]
fn an_output_is_replaced_and_one_with_a_state_is_added_to() {
    let place = Place::new();
    place.write("out", b"what was there, and longer than what comes\n");
    let ran = place.koel_on("dedup --output out", b"a\nb\na\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b""[..]));
    assert_eq!(place.read("out"), b"a\nb\n");
    place.koel_on("dedup --output out --state seen.koel", b"c\nd\n");
    assert_eq!(place.read("out"), b"a\nb\nc\nd\n");
    place.koel_on("dedup -o out -s seen.koel", b"c\ne\n");
    assert_eq!(place.read("out"), b"a\nb\nc\nd\ne\n");
    place.koel_on("dedup --count -o out", b"c\ne\n");
    assert_eq!(place.read("out"), b"2\n");
}

#[test]
fn a_line_that_an_output_breaks_off_in_does_not_swallow_the_next() {
    // As a kill or a power failure may leave it.
    let place = Place::new();
    place.write("out", b"a\nhttps://whole.exa");
    place.koel_on("dedup -o out -s seen.koel", b"https://whole.example/\n");
    assert_eq!(place.read("out"), b"a\nhttps://whole.exa\nhttps://whole.example/\n");
    place.write("zeros", b"a\0b");
    place.koel_on("dedup --zero -o zeros -s seen.koel", b"c\0");
    assert_eq!(place.read("zeros"), b"a\0b\0c\0");
}

#[test]
fn an_input_is_not_written_over() {
    let place = Place::new();
    place.write("lines", b"a\na\nb\n");
    fs::hard_link(place.path("lines"), place.path("link")).unwrap();
    for words in [
        "dedup --output lines lines",
        "dedup --output link lines",
        "dedup --output ./lines - lines",
        "dedup --lossless --output lines lines",
        "dedup --count --output lines lines",
        "dedup --state seen.koel --output lines lines",
    ] {
        let ran = place.koel(words);
        assert_eq!(ran.code, Some(2), "{words}");
        assert!(ran.stderr.contains("both input and output"), "{words}: {}", ran.stderr);
        assert_eq!(place.read("lines"), b"a\na\nb\n", "{words}");
    }
    let ran = place.koel("dedup lines -o lines");
    assert!(ran.stderr.contains("use: koel dedup --in-place lines\n"), "{}", ran.stderr);
    // As with a shell's >>.
    let mut command = place.command(&["dedup", "lines"]);
    let output = fs::OpenOptions::new().append(true).open(place.path("lines")).unwrap();
    let output = command.stdout(output).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(place.read("lines"), b"a\na\nb\n");
}

#[test]
fn the_state_is_not_written_over() {
    let place = Place::new();
    let ran = place.koel_on("dedup --state new.koel --output new.koel", b"a\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("new.koel: this is the state"), "{}", ran.stderr);

    place.koel_on("add seen.koel", b"a\nb\n");
    let before = place.read("seen.koel");
    fs::hard_link(place.path("seen.koel"), place.path("another")).unwrap();
    std::os::unix::fs::symlink("seen.koel", place.path("link")).unwrap();
    for name in ["seen.koel", "./seen.koel", "another", "link"] {
        for words in ["dedup -s seen.koel", "dedup -c -s seen.koel", "query seen.koel"] {
            place.assert_refused(&[(&format!("{words} -o {name}"), "this is the state")]);
            assert!(place.read("seen.koel") == before, "{words}: the state has changed");
        }
    }
    // As with a shell's >>.
    let mut command = place.command(&["dedup", "--state", "seen.koel"]);
    let output = fs::OpenOptions::new().append(true).open(place.path("seen.koel")).unwrap();
    let output = command.stdin(Stdio::null()).stdout(output).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(place.read("seen.koel") == before);
}

#[test]
fn quiet_says_nothing() {
    let place = Place::new();
    let ran = place.koel_on("dedup --quiet", b"a\na\n");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let ran = place.koel_on("dedup -q --state seen.koel", b"a\na\n");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    // Errors are printed.
    let ran = place.koel("dedup --quiet missing");
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, "koel: missing: No such file or directory\n");
}

#[test]
fn the_summary_describes_the_run() {
    let place = Place::new();
    let words = "dedup --state seen.koel";
    let Some(ran) = place.shown_on(words, b"a\nb\na\nc\n") else { return };
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    let summary = ran.stderr.strip_prefix("koel: 4 lines, 3 new, 1 repeated; ").expect(&ran.stderr);
    assert!(summary.contains("; seen.koel has 3 lines; "), "{summary}");
    let Some(ran) = place.shown_on(words, b"a\nd\n") else { return };
    assert!(ran.stderr.starts_with("koel: 2 lines, 1 new, 1 repeated; "), "{}", ran.stderr);
    assert!(ran.stderr.contains("; seen.koel has 4 lines; "), "{}", ran.stderr);
}

#[test]
fn where_nobody_looks_there_is_no_summary_but_errors_and_warnings() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\n");
    for words in [
        "dedup lines",
        "dedup -s seen.koel lines",
        "dedup -s seen.koel lines -o out",
        "query seen.koel lines",
        "add --seed 7 one.koel lines",
        "add --seed 7 two.koel lines",
        "merge all.koel one.koel two.koel",
        "compact all.koel",
        "forget one.koel lines",
    ] {
        let ran = place.koel(words);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{words}");
        if !words.contains("forget") {
            let Some(ran) = place.shown(words) else { return };
            assert!(ran.stderr.starts_with("koel: "), "{words}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{words}: {}", ran.stderr);
        }
    }
    let ran = place.koel("dedup lines missing");
    assert_eq!(ran.stderr, "koel: missing: No such file or directory\n");
    let ran = place.koel("dedup -s seen.koel --capacity 10 lines");
    assert!(ran.stderr.contains("--capacity is for new states"), "{}", ran.stderr);
    assert_eq!(place.koel("dedup --json lines").stderr.lines().count(), 1);
}

#[test]
fn json_has_every_field() {
    let place = Place::new();
    let ran = place.koel_on("dedup --json --state seen.koel - missing", b"a\nb\r\na\n");
    let json = json(&ran);
    let expected = "bytes compared end expected_drops known lines memory_bytes new not_urls rate \
        rate_exceeded recovered repeated saved seconds state unchanged unreadable \
        without_field";
    assert_eq!(fields(&json), expected);
    let number = |name: &str| json[name].as_f64().expect(name);
    for (name, is) in [("lines", 3.0), ("new", 2.0), ("repeated", 1.0), ("bytes", 7.0)] {
        assert_eq!(number(name), is, "{name}");
    }
    assert_eq!((number("unreadable"), number("known")), (1.0, 2.0));
    // A newline that the input does not have is no byte of it.
    for (options, bytes) in [("", 5), ("--limit 2", 4), ("--limit 3", 5)] {
        let ran = place.koel_on(&format!("dedup --json {options}"), b"a\nb\nc");
        assert_eq!(crate::common::json(&ran)["bytes"], bytes, "{options}");
    }
    assert!(json["recovered"].is_null() && json["not_urls"].is_null());
    assert!(json["without_field"].is_null());
    // Two lines in one shard.
    assert!(number("rate") > 0.0 && number("rate") < 1e-12, "{json}");
    assert!(number("expected_drops") > 0.0 && number("expected_drops") < 1e-11, "{json}");
    assert!((131_072.0..135_000.0).contains(&number("memory_bytes")), "{json}");
    assert!(number("seconds") >= 0.0 && number("seconds") < 60.0);
    assert_eq!((&json["state"], &json["end"]), (&"seen.koel".into(), &"complete".into()));

    let ran = place.koel_on("dedup --json", b"");
    let json = crate::common::json(&ran);
    assert_eq!(ran.stderr.lines().count(), 1);
    assert_eq!((json["lines"].as_u64(), json["expected_drops"].as_f64()), (Some(0), Some(0.0)));
    assert!(json["state"].is_null());
    // Quiet means nothing else.
    let ran = place.koel_on("dedup --json --quiet --state seen.koel --capacity 10", b"a\n");
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 1));
    assert!(ran.stderr.starts_with('{'), "{}", ran.stderr);
}

#[test]
fn drops_are_as_many_as_are_reported() {
    let place = Place::new();
    // The last run continues with the state of the one before.
    let runs = ["10000", "30000", "30000 --state seen.koel", "30000 --state seen.koel"];
    for (run, options) in (0..).zip(runs) {
        let lines = 100_000;
        let words = format!("dedup --json --rate 0.3 --capacity {options}");
        // Each line twice, because no more drops are reported than lines seem to be repeated.
        let new = numbered(run * lines..(run + 1) * lines);
        let ran = place.koel_on(&words, &[&new[..], &new].concat());
        let json = json(&ran);
        assert_eq!(json["new"].as_u64().unwrap() as usize, lines_of(&ran.stdout).len());
        let dropped = f64::from(lines) - json["new"].as_f64().unwrap();
        let reported = json["expected_drops"].as_f64().unwrap();
        assert!(dropped > 500.0, "{options}: {json}");
        // These limits are more than ten standard deviations wide.
        assert!((0.5..2.0).contains(&(reported / dropped)), "{options}: {dropped} dropped, {json}");
    }
    let lines = numbered(0..100_000);
    let Some(ran) = place.shown_on("dedup --rate 0.3 --capacity 10000", &lines) else { return };
    assert!(ran.stderr.contains(" dropped by mistake; "), "{}", ran.stderr);
}

#[test]
fn fewer_bits_are_kept_at_a_higher_rate() {
    let place = Place::new();
    let memory = |rate| {
        let words = format!("dedup --json --count --capacity 1_000_000 --rate {rate}");
        json(&place.koel_on(&words, b"a\n"))["memory_bytes"].as_u64().unwrap()
    };
    assert!(memory("0.01") < memory("1e-4") && memory("1e-4") < memory("1e-6"));
    for rate in ["0", "1", "2", "-0.1", "x", "1e-9", "NaN"] {
        assert_eq!(place.koel(&format!("dedup --rate={rate}")).code, Some(2), "{rate}");
    }
}

#[test]
fn a_capacity_is_room_that_is_there() {
    let place = Place::new();
    let memory = |capacity: &str, lines| {
        let words = format!("dedup --json --count --capacity {capacity}");
        let json = json(&place.koel_on(&words, &numbered(0..lines)));
        assert!(json["new"].as_u64().unwrap() >= u64::from(lines) - 1);
        json["memory_bytes"].as_u64().unwrap()
    };
    assert_eq!(memory("300_000", 1), memory("300000", 290_000));
    assert_eq!(memory("300K", 1), memory("300000", 1));
    // More lines are accepted.
    assert!(memory("1000", 100_000) > memory("1000", 1));
    assert_eq!(place.koel("dedup --capacity 99999999999999999").code, Some(2));
}

#[test]
fn a_rate_that_is_exceeded_is_reported() {
    let place = Place::new();
    let lines = numbered(0..400_000);
    let said = "higher than 1.0e-2: ";
    for words in ["dedup -c --capacity 10", "dedup -o out --state seen.koel --capacity 10"] {
        let ran = place.koel_on(&format!("{words} --rate 0.01"), &lines);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stderr.contains(said), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("use a larger --capacity"), "{words}: {}", ran.stderr);
        let ran = place.koel_on(&format!("{words} --rate 0.01 --json"), &lines);
        let json = json(&ran);
        assert!(json["rate_exceeded"] == true && json["rate"].as_f64().unwrap() > 0.01, "{json}");
    }
    // What was planned for has the rate that was asked for.
    for words in
        ["dedup -c --rate 0.01 --capacity 100_000", "dedup -c --rate 0.01", "dedup -c --capacity 1"]
    {
        let lines = if words.ends_with('1') { &b"a\nb\n"[..] } else { &lines };
        let json = json(&place.koel_on(&format!("{words} --json"), lines));
        assert!(json["rate_exceeded"] == false && json["rate"].as_f64().unwrap() < 0.01, "{json}");
    }
    let ran = place.koel_on("add --rate 0.01 --capacity 10 added.koel", &lines);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn what_memory_has_no_room_for_is_neither_written_nor_saved() {
    let place = Place::new();
    place.make_state("seen.koel");
    // The limit allows for more lines than eight threads have in hand (a chunk each), so some are written
    // in any case: no chunk is done before the first one is.
    let all = padded(0..400_000);
    place.write("lines", &all);
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        place.make_state("seen.koel");
        let words = format!("dedup --threads {threads} --state seen.koel lines");
        let ran = place.koel(&format!("{words} --max-memory 1500K"));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("out of memory for the lines seen"), "{}", ran.stderr);
        assert!(ran.stderr.contains("--max-memory"), "{}", ran.stderr);
        assert!(!ran.stdout.is_empty() && ran.stdout.len() < all.len());
        assert_same(&place.known("seen.koel", &all), &ran.stdout, "what is saved");
        let rest = place.koel(&words);
        assert_eq!(rest.code, Some(0));
        assert_same(&[ran.stdout, rest.stdout].concat(), &all, "both runs");
    }
    // A limit that was not given cannot be raised.
    let mut shell = std::process::Command::new("sh");
    let script = r#"ulimit -v "$1"; exec "$0" dedup -c --threads 1 --capacity 1 --sample 4000000"#;
    let most = rounds("24000", "30000");
    let ran = run(shell.args(["-c", script, env!("CARGO_BIN_EXE_koel"), most]), b"");
    assert_ne!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("--max-memory"), "{}", ran.stderr);
    // A capacity that it has no room for is refused before any line is read.
    let ran = place.koel("dedup --max-memory 1M --capacity 1M lines");
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(ran.stderr.contains("cannot allocate the filter"), "{}", ran.stderr);
}

#[test]
fn the_least_memory_is_enough_for_thousands_of_lines_at_any_rate() {
    let place = Place::new();
    let lines = numbered(0..10_000);
    for options in ["", "--rate 0.01", "--rate 3e-8", "--forget-after 30d", "--capacity 10"] {
        let ran = place.koel_on(&format!("dedup --max-memory 256K {options}"), &lines);
        assert_eq!(ran.code, Some(0), "{options}: {}", ran.stderr);
    }
}

#[test]
fn a_sample_is_what_the_command_sample_writes() {
    let place = Place::new();
    let sample = place.koel("sample 20_000").stdout;
    assert_eq!(lines_of(&sample).len(), 20_000);
    place.make_state("one.koel");
    place.make_state("two.koel");
    let one = place.koel("dedup --state one.koel --sample 20000").stdout;
    assert_same(&one, &place.koel_on("dedup --state two.koel", &sample).stdout, "the sample");
    assert_eq!(place.koel("dedup --sample 10 file").code, Some(2));
    assert_eq!(place.koel("sample 0").stdout, b"");
}

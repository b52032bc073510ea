//! The options of `koel dedup`: outputs, summaries and limits.

use crate::common::*;
use std::fs;

#[test]
fn an_output_is_replaced_and_one_with_a_state_is_added_to() {
    let place = Place::new();
    place.write("out", b"what was there, and longer than what comes\n");
    for (words, input, out) in [
        ("dedup --output out", "a\nb\na\n", "a\nb\n"),
        ("dedup --output out --state seen.koel", "c\nd\n", "a\nb\nc\nd\n"),
        ("dedup -o out -s seen.koel", "c\ne\n", "a\nb\nc\nd\ne\n"),
        // Where the state is only read, the output is replaced.
        ("dedup -o out -s seen.koel --repeated", "d\nx\nd\n", "d\nd\n"),
        ("dedup -o out -s seen.koel --count", "d\nx\nd\n", "1\n"),
        ("dedup -o out -s seen.koel -c -d", "d\nx\nd\n", "2\n"),
        ("dedup --count -o out", "c\ne\n", "2\n"),
    ] {
        place.row(words, input, 0, "", "");
        assert_same(&place.read("out"), out.as_bytes(), words);
    }
    // A line that an output breaks off in, as a power failure may leave it, does not swallow the next.
    for (zero, before, input, out) in [
        (
            "",
            "a\nhttps://whole.exa",
            "https://whole.example/\n",
            "a\nhttps://whole.exa\nhttps://whole.example/\n",
        ),
        ("--zero", "a\0b", "c\0", "a\0b\0c\0"),
    ] {
        place.write("broken", before);
        place.row(&format!("dedup {zero} -o broken -s other.koel"), input, 0, "", "");
        assert_same(&place.read("broken"), out.as_bytes(), zero);
    }
}

#[test]
fn neither_an_input_nor_the_state_is_written_over() {
    let place = Place::new();
    place.ok("add seen.koel", "a\nb\n");
    place.write("lines", b"a\na\nb\n");
    for (file, link) in [("lines", "link"), ("seen.koel", "another")] {
        fs::hard_link(place.path(file), place.path(link)).unwrap();
    }
    std::os::unix::fs::symlink("seen.koel", place.path("symlink")).unwrap();
    place.assert_refused(&[
        ("dedup --state seen.koel --output {lines,./lines,link} - lines", "both input and output"),
        ("dedup --state seen.koel lines -o lines", "use: -o lines\n"),
        (
            "{dedup -s,dedup -c -s,query} seen.koel -o {seen.koel,./seen.koel,another,symlink}",
            "this is the state",
        ),
    ]);
    let said = "new.koel: this is the state";
    place.row("dedup --state new.koel --output new.koel", "", 2, "", said);
    let before = place.all();
    for (script, said) in [
        (
            "koel dedup lines >> lines",
            "write to another file, or to replace this one, without a state, use: -o lines\n",
        ),
        (
            "koel dedup -s seen.koel -o lines < lines",
            "standard input is both input and output (as lines); write",
        ),
        ("koel dedup -s seen.koel -o lines < lines", "without a state, use: -o lines\n"),
        ("koel dedup < lines >> lines", "as standard output); write to another file\n"),
        ("koel dedup -s seen.koel >> seen.koel", "seen.koel: this is the state"),
    ] {
        let ran = shell(&place, script);
        assert_eq!(ran.code, Some(2), "{script}");
        ran.has(said);
        assert!(place.all() == before, "{script}");
    }
}

#[test]
fn where_nobody_looks_there_is_no_summary_but_errors_and_warnings() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\n");
    for (words, shown) in [
        ("dedup lines", "koel: 3 lines, 2 new, 1 repeated; "),
        ("dedup -s seen.koel lines", "koel: 3 lines, 0 new, 3 repeated; "),
        ("query seen.koel lines", "koel: 3 lines, 3 seen, 0 not seen; seen.koel has 2 lines; "),
        ("add --seed 7 one.koel lines", "koel: 3 lines, 0 added; one.koel still has 2 lines; "),
        ("add --seed 7 two.koel lines", "koel: 3 lines, "),
        ("merge all.koel one.koel two.koel", "koel: 2 states, 0 lines added; all.koel still has "),
        ("compact all.koel", "koel: all.koel still has 2 lines; "),
        ("forget one.koel lines", ""),
    ] {
        place.ok(words, "").has("");
        let Some(ran) = place.shown_on(words, b"") else { return };
        assert!(ran.stderr.starts_with(shown), "{words}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{words}: {}", ran.stderr);
    }
    place.ok("dedup -s seen.koel --capacity 10 lines", "").has(" are for new states");
    // Quiet says nothing but errors.
    place.row("dedup {-q,--quiet -s seen.koel --capacity 10} lines -o out", "", 0, "", "");
    for words in each("dedup {,--quiet }missing") {
        assert_eq!(place.koel(&words).stderr, "koel: missing: No such file or directory\n");
    }
    // JSON is one line, and with --quiet nothing else is said.
    for words in each("dedup --json lines{, --quiet -s seen.koel --capacity 10}") {
        let ran = place.ok(&words, "");
        assert!(ran.stderr.starts_with('{') && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}

#[test]
fn an_estimate_is_about_what_a_run_takes_and_needs_no_input() {
    let place = Place::new();
    for (lines, options) in [
        (20_000, "--rate 1e-4"),
        (300_000, "--capacity 1M --rate 0.01"),
        (300_000, "--forget-after 1h"),
        (rounds(300_000, 12_000_000), ""),
    ] {
        let words = format!("dedup --json --estimate {lines} {options}");
        let estimate: Value = serde_json::from_slice(&place.ok(&words, "").stdout).expect("JSON");
        place.ok(&format!("add {options} seen.koel"), numbered(0..lines));
        let is = place.info("seen.koel");
        for (field, within) in [
            ("memory_bytes", 0.05),
            ("file_bytes", 0.05),
            ("fingerprint_bits", 0.0),
            ("rate_expected", 0.0),
        ] {
            let [about, is] = [&estimate, &is].map(|of| of[field].as_f64().expect("a number"));
            assert!((about / is - 1.0).abs() <= within, "{words}: {field} is {is}, not {about}");
        }
        fs::remove_file(place.path("seen.koel")).unwrap();
    }
    // A filter that fits into no memory, and more lines than are planned for.
    for (words, said) in [
        ("1T --capacity 1T", "1,000,000,000,000 distinct lines\n  memory  "),
        ("1M --capacity 1M", "at most 7.2e-9, up to 4,000,000 lines\n"),
        (
            "1G --capacity 1M",
            " up to 4,000,000 lines, and higher beyond; --capacity plans for more\n",
        ),
    ] {
        let ran = place.ok(&format!("dedup --estimate {words}"), "");
        assert!(ran.text().contains(said), "{words}: {}", ran.text());
    }
    place.assert_refused(&[
        ("dedup --estimate {0,-1,x}", "'--estimate <LINES>'"),
        (
            "dedup --estimate 5 {file,--state s,--output o,--max-memory 1M,--count,--lossless}",
            "cannot be used",
        ),
    ]);
    assert!(place.names().is_empty());
}

#[test]
fn json_has_the_figures_of_the_run() {
    let place = Place::new();
    let json = place.json("dedup --state seen.koel - missing", "a\nb\r\na\n");
    has(&json, json!({ "lines": 3, "new": 2, "bytes": 7, "unreadable": 1, "known": 2 }));
    // Two lines in one shard.
    let range = 131_072.0..135_000.0;
    assert!(range.contains(&json["memory_bytes"].as_f64().expect("bytes")), "{json}");
    assert!(json["rate"].as_f64() > Some(0.0) && json["rate"].as_f64() < Some(1e-12), "{json}");
    // A newline that the input does not have is no byte of it.
    for (options, bytes) in [("", 5), ("--limit 2", 4), ("--limit 3", 5)] {
        has(&place.json(&format!("dedup {options}"), "a\nb\nc"), json!({ "bytes": bytes }));
    }
    has(&place.json("dedup", ""), json!({ "lines": 0, "expected_drops": 0.0, "state": null }));
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
        let ran = place.ok(&words, numbered(run * lines..(run + 1) * lines).repeat(2));
        let json = json(&ran);
        assert_eq!(json["new"], lines_of(&ran.stdout).len());
        let dropped = f64::from(lines) - json["new"].as_f64().unwrap();
        let reported = json["expected_drops"].as_f64().unwrap();
        assert!(dropped > 500.0, "{options}: {json}");
        // These limits are more than ten standard deviations wide.
        assert!((0.5..2.0).contains(&(reported / dropped)), "{options}: {dropped} dropped, {json}");
    }
    let lines = numbered(0..100_000);
    place.shows("dedup --rate 0.3 --capacity 10000", &lines, 0, " dropped by mistake; ");
}

#[test]
fn a_rate_that_is_exceeded_is_reported() {
    let place = Place::new();
    let lines = numbered(0..400_000);
    let said = "higher than 1.0e-2: ";
    for words in ["dedup -c --capacity 10", "dedup -o out --state seen.koel --capacity 10"] {
        place.ok(&format!("{words} --rate 0.01"), &lines).has("use a larger --capacity");
        let json = place.json(&format!("{words} --rate 0.01"), &lines);
        assert!(json["rate_exceeded"] == true && json["rate"].as_f64() > Some(0.01), "{json}");
    }
    place.ok("add --rate 0.01 --capacity 10 added.koel", &lines).has(said);
    // What was planned for has the rate that was asked for.
    for (words, lines) in [
        ("dedup -c --rate 0.01 --capacity 100_000", &lines[..]),
        ("dedup -c --rate 0.01", &lines),
        ("dedup -c --capacity 1", b"a\nb\n"),
    ] {
        let json = place.json(words, lines);
        assert!(json["rate_exceeded"] == false && json["rate"].as_f64() < Some(0.01), "{json}");
    }
}

#[test]
fn what_memory_has_no_room_for_is_neither_written_nor_saved() {
    let place = Place::new();
    // The limit allows for more lines than eight threads have in hand (a chunk each), so some are written
    // in any case: no chunk is done before the first one is.
    let all = padded(0..400_000);
    place.write("lines", &all);
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        place.make_state("seen.koel");
        let words = format!("dedup --threads {threads} --state seen.koel lines");
        let ran = place.koel(&format!("{words} --max-memory 1500K"));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        ran.has("out of memory for the lines seen");
        ran.has("--max-memory");
        assert!(!ran.stdout.is_empty() && ran.stdout.len() < all.len());
        assert_same(&place.known("seen.koel", &all), &ran.stdout, "what is saved");
        assert_same(&[ran.stdout, place.ok(&words, "").stdout].concat(), &all, "both runs");
    }
    // A limit that was not given cannot be raised.
    let most = rounds("24000", "30000");
    let script =
        format!("ulimit -v {most}; koel sample 4000000 | koel dedup -c --threads 1 --capacity 1");
    let ran = shell(&place, &script);
    assert_ne!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("--max-memory"), "{}", ran.stderr);
    place.assert_refused(&[
        // A capacity that it has no room for is refused before any line is read.
        ("dedup --max-memory 1M --capacity 1M lines", "--max-memory is too small"),
        ("dedup --forget-after 1h --rate 5e-8 lines", "--rate is too low: 1.2e-7 is"),
        ("{dedup --state,add} seen.koel --max-memory 64K", "--max-memory"),
    ]);
    // The summary of a run that failed says so, and the reason comes last.
    let words = "dedup --threads 1 --max-memory 256K --state new.koel -o out lines";
    let Some(ran) = place.shown_on(words, b"") else { return };
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let closing = ran.stderr.lines().next().unwrap();
    assert!(closing.ends_with("; failed") && !closing.contains("has"), "{}", ran.stderr);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("koel: out of memory for the lines seen"), "{}", ran.stderr);
}

#[test]
fn the_least_memory_is_enough_for_thousands_of_lines_at_any_rate() {
    let place = Place::new();
    let lines = numbered(0..10_000);
    let options = "{,--rate 0.01,--rate 3e-8,--forget-after 30d,--capacity 10}";
    for words in each(&format!("dedup --max-memory 256K {options}")) {
        place.ok(&words, &lines);
    }
}

//! When two lines are equal: `--url`, `--ignore-case`, `--field` and `--json-field`. A state remembers how its lines
//! are compared. A table of the README and of `koel dedup --help` says which URLs are equal by which rules.

use crate::common::*;

/// Pairs of lines that differ in case.
const LINES: &[u8] = "a line\nA Line\n\u{c4}pfel\n\u{e4}PFEL\n\u{416}\n\u{436}\n".as_bytes();
const FIRST: &[u8] = "a line\n\u{c4}pfel\n\u{416}\n".as_bytes();

#[test]
fn equal_lines_are_one_and_written_as_they_came() {
    let urls =
        b"HTTP://A.Example/x\nhttp://a.example:80/x\r\nhttp://a.example/X\nhttps://a.example/x\n\
        https://a.example:443/x\nhttps://a.example:444/x\n";
    let first =
        b"HTTP://A.Example/x\nhttp://a.example/X\nhttps://a.example/x\nhttps://a.example:444/x\n";
    let once = b"http://a.example/b/c%7E\nhttp://a.example/x/../b/c~\n\
        HTTP://A.EXAMPLE/./b/c~#part\nhttp://a.example:80/b/%63~\n";
    let tracked = b"http://a.example/?a=1&b=2\nhttp://a.example/?b=2&a=1&utm_source=mail\n\
        http://a.example/?gclid=7&a=1&b=2\n";
    let tabs = b"1\tb\tx\n2\ta\tx\n3\tb\ty\n4\tc\n4\tc\n";
    Place::new().assert_outputs(&[
        ("dedup --url", urls, first),
        ("dedup", urls, urls),
        ("dedup --url --count", once, b"1\n"),
        ("dedup --url --count --ignore-tracking", tracked, b"2\n"),
        ("dedup --url --count --ignore-tracking --sort-query", tracked, b"1\n"),
        ("dedup --ignore-case", LINES, FIRST),
        ("dedup -i --lossless --rate 0.3", LINES, FIRST),
        ("dedup", LINES, LINES),
        // Latin 1 is no UTF-8, and only letters of ASCII are folded.
        ("dedup --ignore-case", b"\xC4pfel\n\xE4pfel\n\xC4PFEL\n", b"\xC4pfel\n\xE4pfel\n"),
        ("dedup --field 2", tabs, b"1\tb\tx\n2\ta\tx\n4\tc\n"),
        ("dedup --field 2 --repeated", tabs, b"3\tb\ty\n4\tc\n"),
        ("dedup --field 1 --count", tabs, b"4\n"),
        ("dedup --field 2 --count --delimiter \\t", tabs, b"3\n"),
        ("dedup --field 2 --delimiter ,", b"a,b\r\nc,b\nd,b,\nb,d\n", b"a,b\r\nb,d\n"),
        ("dedup --field 2 --delimiter , --keep-cr", b"a,b\r\nc,b\nd,b,\n", b"a,b\r\nc,b\n"),
        ("dedup --field 2 --delimiter \\n --zero", b"a\nb\0c\nb\0d\ne\0", b"a\nb\0d\ne\0"),
    ]);
}

#[test]
fn what_is_no_url_or_has_no_field_is_compared_as_it_is_and_counted() {
    let place = Place::new();
    let urls = b"no URL\nNO URL\nno URL\n\nhttp://a.example\n";
    // Lines that repeat themselves are counted, too. A field may equal a whole line.
    let fields = b"a\na\nb\tc\na\nd\tc\n\n\nc\n";
    let rest = "no URL\nNO URL\n\nhttp://a.example\n";
    place.tells("dedup --url", urls, rest, json!({ "lines": 5, "not_urls": 4 }));
    let counted = json!({ "lines": 8, "without_field": 6 });
    place.tells("dedup --field 2 --threads {1,4}", fields, "a\nb\tc\n\n", counted);
    place.tells("dedup --field 1", fields, "a\nb\tc\nd\tc\n\nc\n", json!({ "without_field": 6 }));
    for (words, input, said) in [
        ("dedup --url", &urls[..], "; 4 are not URLs; "),
        ("dedup --field 2", fields, "; 6 do not have the field; "),
        ("dedup --field 2", b"a\n", "; 1 does not have the field; "),
    ] {
        place.shows(words, input, 0, said);
    }
    // Of a wrong delimiter, this may be all that a script is told.
    let said =
        "koel: no line has that --field, so whole lines were compared; --delimiter says what is";
    place.row("dedup --field {1,2} {,--delimiter ;}", "a,b\na,c\n", 0, "a,b\na,c\n", said);
    place.row("dedup --json-field a", "{}\n", 0, "{}\n", "koel: no line has that --json-field");
    place.row("dedup --field 1 --delimiter ,", "a,b\na\n", 0, "a,b\n", "");
    // The lines after a limit are not counted, and stay new.
    let lines = b"a\n1\tb\na\n2\tb\nc\n3\td\nc\ne\n";
    let counted = json!({ "lines": 5, "without_field": 3 });
    place.tells("dedup --field 2 --limit 3 --state seen.koel", lines, "a\n1\tb\nc\n", counted);
    place.row("dedup --field 2 --state seen.koel", lines, 0, "3\td\ne\n", "");
}

#[test]
fn a_state_remembers_how_its_lines_are_compared() {
    let place = Place::new();
    let (one, same) = (b"http://a.example/\n", b"HTTP://A.EXAMPLE:80/\nhttp://b.example/\n");
    place.assert_outputs(&[
        ("dedup --url --state urls.koel", one, one),
        // Without the option.
        ("query urls.koel", same, b"HTTP://A.EXAMPLE:80/\n"),
    ]);
    let of = |words: &str, input: &[u8], fields: Value| has(&place.json(words, input), fields);
    of("dedup --state urls.koel", same, json!({ "new": 1, "not_urls": 0 }));
    of("add urls.koel", b"HTTP://B.example:80/\nno URL\n", json!({ "added": 1, "not_urls": 1 }));
    of("forget urls.koel", b"http://B.EXAMPLE/\n", json!({ "forgotten": 1 }));
    place.assert_outputs(&[
        ("query -v urls.koel", same, b"http://b.example/\n"),
        // And with it, of course.
        ("dedup --url --state urls.koel", same, b"http://b.example/\n"),
        ("dedup -i --state seen.koel", LINES, FIRST),
        ("dedup --state seen.koel", b"A LINE\nb\nB\n", b"b\n"),
        ("query seen.koel", b"A line\nc\n", b"A line\n"),
        ("add -i seen.koel", b"C\nc\n", b""),
        ("forget seen.koel", b"A LINE\n", b""),
        ("dedup --state seen.koel", b"a line\nc\n", b"a line\n"),
    ]);
    for (state, compares) in
        [("urls.koel", "URLs (--url)"), ("seen.koel", "lines, in lower case (--ignore-case)")]
    {
        let info = place.ok(&format!("info {state}"), "");
        assert!(info.text().contains(&format!("compares   {compares}")), "{}", info.text());
    }
}

/// Records of a crawl.
const RECORDS: &str = r#"{"url":"http://a.example/","id":1,"meta":{"lang":"en"}}
{"id": 1, "url": "http:\/\/a.example\/", "meta": {"lang": "de"}}
{"id":"1","url":"HTTP://A.example/#top","meta":{"lang":"\u0065n"}}
{"id":1.0,"id":2,"\u0075rl":"\u0068ttp://a.example/"}
"#;

#[test]
fn records_are_compared_by_a_field_of_json() {
    let place = Place::new();
    for (words, numbers) in [
        ("url{, --threads 4, --lossless --rate 0.3}", &[0, 2][..]),
        ("url --repeated", &[1, 3]),
        ("url {--limit 1,--url}", &[0]),
        // A number is compared as it is written, and the first of two counts.
        ("id", &[0, 3]),
        // The last line has no such field.
        ("meta.lang", &[0, 1, 3]),
        // An object is compared as it is written.
        ("{meta,no-such-field --quiet}", &[0, 1, 2, 3]),
    ] {
        let lines = lines_of(RECORDS.as_bytes());
        let picked: Vec<_> = numbers.iter().flat_map(|number| lines[*number].to_vec()).collect();
        place.row(&format!("dedup --json-field {words}"), RECORDS, 0, picked, "");
    }
    // Null is what parsers answer if there is no field. What follows the field is not read, and its text may equal a
    // whole line.
    let input = "no JSON\n\n\n{\"a\":null}\n{\"a\":\"x\",no JSON\n{\"a\":\"\\u0078\"}\nx\n";
    let output = "no JSON\n\n{\"a\":null}\n{\"a\":\"x\",no JSON\n";
    place.tells(
        "dedup --json-field a",
        input,
        output,
        json!({ "without_field": 5, "not_urls": null }),
    );
    place.assert_outputs(&[
        ("dedup --json-field meta.lang -i -c", RECORDS.as_bytes(), b"3\n"),
        ("dedup -c --json-field a\\.b.c", b"{\"a.b\":{\"c\":1}}\n{\"a.b\":{\"c\": 1}}\r\n", b"1\n"),
        ("dedup --zero --json-field a", b"{\n\"a\":1}\0{\"a\":1\n}\0", b"{\n\"a\":1}\0"),
    ]);
}

#[test]
fn a_state_is_made_of_lines_and_used_with_a_field() {
    let place = Place::new();
    let log = b"1\tGET\tHTTP://A.example/#top\n2\tGET\thttp://c.example/\n3\tGET\n";
    place.assert_outputs(&[
        ("add --url log.koel", b"http://a.example/\nhttp://b.example/\n", b""),
        ("query --field 3 log.koel", log, b"1\tGET\tHTTP://A.example/#top\n"),
        ("forget --field 3 log.koel", &log[..30], b""),
        ("query -v -c --field 3 log.koel", log, b"3\n"),
        ("add --field 3 log.koel", log, b""),
        ("query -c log.koel", b"http://c.example\n", b"1\n"),
        ("dedup --field 2 --delimiter ; --state log.koel", b"x;http://c.example/\n", b""),
        // Records of JSON.
        ("add --url urls.koel", b"http://a.example/\nhttp://b.example/\n", b""),
        ("query -c --json-field url urls.koel", RECORDS.as_bytes(), b"4\n"),
        ("query -v -c --json-field url urls.koel", b"{\"url\":\"http://c.example\"}\n{}\n", b"2\n"),
        ("forget --json-field url urls.koel", RECORDS.as_bytes(), b""),
        ("query urls.koel", b"http://b.example\nhttp://c.example\n", b"http://b.example\n"),
        ("add --json-field a.url urls.koel", b"{\"a\":{\"url\":\"http://c.example\"}}\n", b""),
        ("query urls.koel", b"http://c.example/\n", b"http://c.example/\n"),
        ("dedup -s ids.koel --json-field id", b"{\"id\":7}\n{\"id\":\"7\"}\n", b"{\"id\":7}\n"),
        ("query ids.koel", b"7\n8\n", b"7\n"),
    ]);
    place.assert_refused(&[
        ("{dedup -s,add} ids.koel --json-field url {--url,-i}", "this state compares lines, byte"),
        ("{dedup -s,add} urls.koel --json-field url -i", "this state compares URLs"),
    ]);
}

#[test]
fn a_state_that_compares_otherwise_and_fields_that_are_none_are_refused() {
    let place = Place::new();
    place.assert_outputs(&[
        ("add bytes.koel", b"a\n", b""),
        ("add --ignore-case case.koel", b"a\n", b""),
        ("add --url urls.koel", b"http://a.example/\n", b""),
        ("add --url --sort-query sorted.koel", b"http://a.example/\n", b""),
    ]);
    for words in [
        "{dedup --state,add} bytes.koel {--url,--ignore-case}",
        "{dedup --state,add} case.koel --url",
        "{dedup --state,add} urls.koel {--url --sort-query,--url --ignore-tracking,--ignore-case}",
        "{dedup --state,add} sorted.koel {--url,--url --sort-query --ignore-tracking}",
    ] {
        place.assert_refused(&[
            (words, "this state compares "),
            (words, "omit them, or use another state"),
        ]);
    }
    place.assert_refused(&[
        ("dedup {--sort-query,--ignore-tracking}", "--url"),
        ("add --sort-query bytes.koel", "--url"),
        ("{dedup,add new.koel} --ignore-case --url", "cannot be used with"),
        ("dedup --field {0,x}", "a number from 1"),
        (
            "{dedup,query s,add s,forget s} --json-field {.,a.,.a,a..b}",
            "it must be a name, or names",
        ),
        ("dedup --json-field a\\b", "\\. is a dot in a name"),
        (
            "dedup --json-field a --{field 1,delimiter ;}",
            "'--json-field <NAME>' cannot be used with",
        ),
        ("dedup --field 1 --delimiter{ ab,=}", "one byte"),
        ("dedup --delimiter ;", "--field"),
        (
            "{dedup --delimiter \\n,add new.koel --delimiter \\n,dedup --zero --delimiter \\0} --field 1",
            "--delimiter is what ends the lines",
        ),
    ]);
}

#[test]
fn urls_are_equal_as_the_tables_of_the_help_and_of_the_readme_say() {
    let place = Place::new();
    let rows = |text: &str, start: &str| -> Vec<Vec<String>> {
        let rows = text.lines().filter(|line| line.trim_start().to_lowercase().starts_with(start));
        let words = |row: &str| row.replace(['|', '`'], " ").replace('≠', "-");
        rows.map(|row| words(row).split_whitespace().map(str::to_owned).collect()).collect()
    };
    let table = rows(include_str!("../../../README.md"), "| `http");
    for command in ["dedup", "add"] {
        let help = place.koel(&format!("{command} --help"));
        assert!(table.len() > 15 && rows(help.text(), "http") == table, "{command}");
    }
    for (number, row) in table.into_iter().enumerate() {
        let [one, other, marks @ ..] = &row[..] else { panic!("{row:?}") };
        let modes = ["--url", "--url --sort-query"].into_iter().zip(marks);
        // A short run compares each pair in one mode.
        for (mode, mark) in modes.skip(number % rounds(2, 1)).step_by(rounds(2, 1)) {
            let count = if mark == "=" { "1\n" } else { "2\n" };
            place.row(&format!("dedup -c {mode}"), format!("{one}\n{other}\n"), 0, count, "");
        }
    }
}

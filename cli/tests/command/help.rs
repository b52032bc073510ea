//! Help, manual pages, completions, and the refusal of unknown arguments.

use crate::common::*;
use std::collections::BTreeSet;

const COMMANDS: [&str; 9] =
    ["dedup", "query", "add", "merge", "forget", "compact", "info", "sample", "generate"];

fn said(place: &Place, words: &str) -> String {
    let ran = place.ok(words, "");
    ran.has("");
    ran.text().to_owned()
}

/// Returns the long options that a help text explains.
fn options(help: &str) -> BTreeSet<String> {
    let explained = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = explained.flat_map(|line| line.split([' ', ',', '=', '<', '[']));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

#[test]
fn help_lists_commands_examples_and_exit_codes_and_no_options_of_other_commands() {
    let place = Place::new();
    let help = said(&place, "--help");
    for part in ["\n  0 ", "\n  1 ", "\n  2 ", "\n  129 ", "\n  130 ", "\n  143 "] {
        assert!(help.contains(part), "{part}: {help}");
    }
    let (dedup, query) = ("koel dedup access.log", "koel query seen.koel");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        let help = said(&place, &format!("{command} --help"));
        assert!(help.contains(&format!("koel {command}")), "{help}");
        assert!(help.len() >= said(&place, &format!("{command} -h")).len());
        assert!(command != "dedup" || help.contains(dedup) && help.contains("--max-memory"));
        assert!(command != "query" || help.contains(query), "{help}");
        if ["query", "forget", "info", "compact", "sample"].contains(&command) {
            let words = help.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
            let named = words.filter(|word| word.starts_with("--") && word.len() > 2);
            let others: Vec<_> = named.filter(|word| !options(&help).contains(*word)).collect();
            assert!(others.is_empty(), "{command}: {others:?}");
        }
    }
    // A reader may go before the end.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = place.command("--help").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    assert_eq!(said(&place, "--version"), concat!("koel ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn what_is_not_known_is_refused_and_what_would_be_accepted_is_said() {
    let place = Place::new();
    place.assert_refused(&[
        // Without arguments, help is printed.
        ("{,generate}", "Usage: koel"),
        ("{no-such-command,query,add,forget,compact,info,sample,sample x}", "error: "),
        ("dedup {--no-such-option,--threads 0,--threads 257,--max-memory x}", "error: "),
        ("dedup {--checkpoint 5,--state s --checkpoint -1}", "error: "),
        ("generate completions no-such-shell", "error: "),
        ("generate man /dev/null", "/dev/null: it is not a folder"),
        ("dedpu", "a similar subcommand exists: 'dedup'"),
        ("dedup {--capacity,--limit} -1", "a whole number"),
        ("dedup --state s --wait {-1,1e300}", "a number of seconds, from 0 to 1e9"),
        (
            "dedup --rate={0,1,2,-0.1,x,1e-9,NaN}",
            "'--rate <P>': it must be more than 2e-8 and less than 1",
        ),
        ("dedup --capacity 99999999999999999", "cannot allocate the filter"),
        ("dedup --max-memory -5K", "a number of bytes"),
        ("{dedup --max-memory 0,merge --max-memory 255K out a}", "it must be at least 256K"),
        ("dedup --wait 5", "--state <FILE>"),
    ]);
    assert!(place.names().is_empty());
}

#[test]
fn manual_pages_and_completions_name_every_command_and_option() {
    let place = Place::new();
    said(&place, "generate man a/folder");
    let page = |name: &str| {
        let page = place.read(&format!("a/folder/{name}.1"));
        String::from_utf8(page).unwrap().replace("\\-", "-")
    };
    let scripts = ["bash", "elvish", "fish", "powershell", "zsh"]
        .map(|shell| said(&place, &format!("generate completions {shell}")));
    for command in COMMANDS {
        assert!(page("koel").contains(&format!("koel-{command}(1)")), "{command}");
        let (page, help) =
            (page(&format!("koel-{command}")), said(&place, &format!("{command} --help")));
        for option in options(&help) {
            assert!(page.contains(&option), "{command} {option}");
            // Some shells write the dashes elsewhere.
            let word = option.trim_start_matches('-');
            let lacks = |script: &&String| !script.contains(command) || !script.contains(word);
            assert!(!scripts.iter().any(|script| lacks(&script)), "{command} {option}");
        }
        // A table stays a table.
        let rows = help.lines().filter(|line| line.starts_with("  ") && line.contains("://"));
        for row in rows.map(str::trim).filter(|row| row.ends_with(['=', '-'])) {
            assert!(page.contains(&format!("\n  {row}\n")), "{row}: {page}");
        }
    }
    place.write("file", b"");
    place.row("generate man file", "", 2, "", "koel: file: ");
}

#[test]
fn help_fits_80_columns_and_narrower_terminals() {
    let place = Place::new();
    for option in ["-h", "--help"] {
        let ran = Going::start(place.command(option).env("COLUMNS", "80")).run(b"");
        let listed = ran.text().split_once("Commands:\n").expect("commands").1;
        // Each is on one line.
        let names = listed.lines().map_while(|line| line.split_whitespace().next());
        assert!(names.eq(COMMANDS.iter().copied().chain(["help"])), "{listed}");
    }
    for (columns, range) in [("no number", 51..=80), ("200", 51..=80), ("60", 41..=60)] {
        for command in &COMMANDS[..7] {
            let mut koel = place.command(&format!("{command} --help"));
            let ran = Going::start(koel.env("COLUMNS", columns)).run(b"");
            let widest = ran.text().lines().map(|line| line.chars().count()).max().unwrap();
            assert!(range.contains(&widest), "{command}, {columns}: {widest}");
        }
    }
}

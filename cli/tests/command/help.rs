//! Help, manual pages, completions, and the refusal of unknown arguments.

use crate::common::*;
use std::collections::BTreeSet;

const COMMANDS: [&str; 8] =
    ["dedup", "query", "add", "forget", "info", "bench", "sample", "generate"];

fn said(place: &Place, words: &str) -> String {
    let ran = place.koel(words);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{words}");
    String::from_utf8(ran.stdout).unwrap()
}

/// Returns the long options that a help text explains.
fn options(help: &str) -> BTreeSet<String> {
    let explained = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = explained.flat_map(|line| line.split([' ', ',', '=', '<', '[']));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

#[test]
fn help_lists_commands_options_and_exit_codes() {
    let place = Place::new();
    let help = said(&place, "--help");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        let of_command = said(&place, &format!("{command} --help"));
        assert!(of_command.contains(&format!("koel {command}")), "{of_command}");
        assert!(of_command.len() >= said(&place, &format!("{command} -h")).len());
    }
    for code in ["  0 ", "  1 ", "  2 ", "  129 ", "  130 ", "  143 "] {
        assert!(help.contains(&format!("\n{code}")), "{help}");
    }
    for (command, example) in
        [("dedup", "koel dedup access.log"), ("query", "koel query seen.koel")]
    {
        let help = said(&place, &format!("{command} --help"));
        assert!(help.contains("Examples:") && help.contains(example), "{help}");
    }
    assert!(options(&said(&place, "dedup --help")).contains("--max-memory"));
}

#[test]
fn the_examples_of_the_help_run() {
    let place = Place::new();
    place.write("access.log", b"a\nb\na\n");
    place.write("big.txt.zst", zstd::encode_all(&b"a\na\n"[..], 1).unwrap());
    place.write("candidates.txt", b"http://a.example/\nhttp://b.example/\n");
    assert_eq!(place.koel("dedup access.log").stdout, b"a\nb\n");
    let ran = place.koel_on("dedup --url --state seen.koel", b"http://A.example/\n");
    assert_eq!(ran.stdout, b"http://A.example/\n");
    assert_eq!(place.koel("dedup --lossless --output unique.txt big.txt.zst").code, Some(0));
    assert_eq!(place.read("unique.txt"), b"a\n");
    assert_eq!(place.koel("dedup --count access.log").stdout, b"2\n");
    let ran = place.koel("query seen.koel --invert candidates.txt");
    assert_eq!(ran.stdout, b"http://b.example/\n");
    assert_eq!(place.koel_on("query -q seen.koel", b"http://a.example/\n").code, Some(0));
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = concat!("koel ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(said(&Place::new(), "--version"), version);
}

#[test]
fn what_is_not_known_is_refused() {
    let place = Place::new();
    for words in [
        "dedup --no-such-option",
        "no-such-command",
        "query",
        "add",
        "forget",
        "info",
        "sample",
        "sample x",
        "dedup --threads 0",
        "dedup --threads 257",
        "dedup --max-line 2G",
        "dedup --max-line 0",
        "dedup --max-memory x",
        "dedup --capacity -1",
        "dedup --checkpoint 5",
        "dedup --state s --checkpoint -1",
        "generate",
        "generate completions no-such-shell",
        "no-such-command",
    ] {
        let ran = place.koel(words);
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        assert!(!ran.stderr.is_empty(), "{words}");
    }
    // Without arguments, help is printed.
    let ran = place.koel("");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("Usage: koel"), "{}", ran.stderr);
    assert!(place.names().is_empty());
}

#[test]
fn manual_pages_name_every_command_and_option() {
    let place = Place::new();
    said(&place, "generate man a/folder");
    let page = |name: &str| {
        let page = place.read(&format!("a/folder/{name}"));
        String::from_utf8(page).unwrap().replace("\\-", "-")
    };
    let own = page("koel.1");
    for command in COMMANDS {
        assert!(own.contains(&format!("koel-{command}(1)")), "{command}: {own}");
        let page = page(&format!("koel-{command}.1"));
        let mut options = options(&said(&place, &format!("{command} --help")));
        options.insert("--help".into());
        for option in options {
            assert!(page.contains(&option), "{command} {option}");
        }
    }
    place.write("file", b"");
    let ran = place.koel("generate man file");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("koel: file: "), "{}", ran.stderr);
}

#[test]
fn completions_name_every_command_and_option() {
    let place = Place::new();
    let mut all = BTreeSet::new();
    for command in COMMANDS {
        all.extend(options(&said(&place, &format!("{command} --help"))));
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&place, &format!("generate completions {shell}"));
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        for option in &all {
            // Some shells write the dashes elsewhere.
            assert!(script.contains(option.trim_start_matches('-')), "{shell}: {option}");
        }
    }
}

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
    let records = zstd::encode_all(&b"{\"url\":1}\n{\"url\": 1}\n"[..], 1).unwrap();
    place.write("crawl.jsonl.zst", records);
    place.write("candidates.txt", b"http://a.example/\nhttp://b.example/\n");
    place.assert_outputs(&[
        ("dedup access.log", b"", b"a\nb\n"),
        ("dedup --url --state seen.koel", b"http://A.example/\n", b"http://A.example/\n"),
        ("dedup --json-field url crawl.jsonl.zst", b"", b"{\"url\":1}\n"),
        ("dedup --lossless --output unique.txt big.txt.zst", b"", b""),
        ("dedup --count access.log", b"", b"2\n"),
        ("query seen.koel --invert candidates.txt", b"", b"http://b.example/\n"),
        ("query -q seen.koel", b"http://a.example/\n", b"http://a.example/\n"),
    ]);
    assert_eq!(place.read("unique.txt"), b"a\n");
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = concat!("koel ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(said(&Place::new(), "--version"), version);
}

#[test]
fn what_is_not_known_is_refused_and_what_would_be_accepted_is_said() {
    let place = Place::new();
    place.assert_refused(&[
        // Without arguments, help is printed.
        ("{,generate}", "Usage: koel"),
        ("{no-such-command,query,add,forget,compact,info,sample,sample x}", "error: "),
        (
            "dedup {--no-such-option,--threads 0,--threads 257,--max-memory x,--checkpoint 5}",
            "error: ",
        ),
        ("dedup --state s --checkpoint -1", "error: "),
        ("generate completions no-such-shell", "error: "),
        ("{help ,}dedpu", "a similar subcommand exists: 'dedup'"),
        ("dedup --rate {-1,0}", "'--rate <P>': it must be more than 2e-8 and less than 1"),
        ("dedup {--capacity,--limit} -1", "a whole number"),
        ("dedup --state s --wait {-1,1e300}", "a number of seconds, from 0 to 1e9"),
        ("dedup --max-memory 0", "a number of bytes, and more than 0"),
        ("dedup --max-memory -5K", "a number of bytes"),
        ("{dedup --max-memory 200,dedup --max-memory 100000}", "it must be at least 256K"),
        ("merge --max-memory 255K out a", "it must be at least 256K"),
        ("dedup --wait 5", "--state <FILE>"),
        ("dedup --zero --sample 10", "'--zero' cannot be used with '--sample <LINES>'"),
    ]);
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
        assert!(own.contains(&format!("\\fBkoel-{command}\\fR(1)")), "{command}: {own}");
        let page = page(&format!("koel-{command}.1"));
        let mut options = options(&said(&place, &format!("{command} --help")));
        options.insert("--help".into());
        for option in options {
            assert!(page.contains(&option), "{command} {option}");
        }
    }
    place.write("file", b"");
    place.row("generate man file", "", 2, "", "koel: file: ");
}

/// An option that a help text names, and that the command does not have, is no help.
#[test]
fn help_explains_no_options_that_a_command_does_not_have() {
    let place = Place::new();
    for command in ["query", "forget", "info", "compact", "sample"] {
        let help = said(&place, &format!("{command} --help"));
        let (own, mut named) = (options(&help), BTreeSet::new());
        for word in help.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-') {
            if word.starts_with("--") && word.len() > 2 {
                named.insert(word.to_owned());
            }
        }
        let others: Vec<_> = named.difference(&own).collect();
        assert!(others.is_empty(), "{command}: {others:?}");
    }
}

#[test]
fn manual_pages_have_the_sections_of_manual_pages() {
    let place = Place::new();
    said(&place, "generate man man");
    for (page, sections) in [
        (
            "koel",
            &["NAME", "SYNOPSIS", "EXIT STATUS", "INPUT", "FILES", "ENVIRONMENT", "SEE ALSO"][..],
        ),
        ("koel-dedup", &["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "JSON", "SEE ALSO"]),
        ("koel-query", &["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"]),
        ("koel-forget", &["DESCRIPTION", "EXIT STATUS"]),
        ("koel-generate-man", &["NAME", "SYNOPSIS"]),
    ] {
        let page = String::from_utf8(place.read(&format!("man/{page}.1"))).unwrap();
        for section in sections {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{section}: {page}");
        }
        assert!(!page.contains("EXTRA"), "{page}");
    }
}

/// Where there is a formatter of manual pages: what a reader sees at 80 columns.
#[test]
fn manual_pages_keep_tables_and_lists_at_80_columns() {
    let place = Place::new();
    said(&place, "generate man man");
    let render = |page: &str| {
        let mut man = std::process::Command::new("groff");
        man.args(["-man", "-Tutf8", "-Kutf8", "-P-c", "-rLL=78n", &format!("man/{page}.1")]);
        let output = man.current_dir(place.path("")).output().ok()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && stderr.is_empty(), "{page}: {stderr}");
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Bold letters are struck twice.
        while let Some(at) = text.find('\u{8}') {
            text.replace_range(at..at + 1, "");
            let before = text[..at].char_indices().next_back().unwrap().0;
            text.replace_range(before..at, "");
        }
        Some(text)
    };
    let Some(own) = render("koel") else {
        println!("SKIPPED: there is no groff, so NOTHING WAS TESTED here");
        return;
    };
    for code in ["0", "1", "2", "129", "130", "143"] {
        assert!(
            own.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))),
            "{own}"
        );
    }
    for command in COMMANDS {
        let page = render(&format!("koel-{command}")).unwrap();
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
    let dedup = render("koel-dedup").unwrap();
    let help = said(&place, "dedup --help");
    let is_row = |line: &&str| line.contains("://") && line.ends_with(['=', '-']);
    let [rows, of_help] = [&dedup, &help].map(|text| {
        text.lines().map(str::trim).filter(is_row).map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(rows.len() > 10 && rows == of_help, "{rows:?}");
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

#[test]
fn help_fits_the_terminal_and_80_columns_where_there_is_none() {
    let place = Place::new();
    let widest = |command: &mut std::process::Command| {
        let output = run(command.env("LC_ALL", "C.UTF-8"), b"");
        let help = String::from_utf8(output.stdout).unwrap();
        help.lines().map(|line| line.chars().count()).max().unwrap()
    };
    for command in COMMANDS {
        let words = [command, "--help"];
        assert!(widest(place.command(&words).env_remove("COLUMNS")) <= 80, "{command}");
        assert!(widest(place.command(&words).env("COLUMNS", "no number")) <= 80, "{command}");
    }
    let of_columns = |columns| widest(place.command(&["dedup", "--help"]).env("COLUMNS", columns));
    assert!((81..=100).contains(&of_columns("200")) && (41..=60).contains(&of_columns("60")));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    for words in ["help", "--help", "--version", "dedup -h", "help query"] {
        let words: Vec<&str> = words.split(' ').collect();
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = place.command(&words).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert_eq!(stderr, "koel: standard output: No space left on device\n", "{words:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = place.command(&["--help"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_manual_page_that_cannot_be_written_is_named_and_not_left_half_written() {
    let place = Place::new();
    std::fs::create_dir(place.path("man")).unwrap();
    std::os::unix::fs::symlink("/dev/full", place.path("man/koel-info.1")).unwrap();
    place.row("generate man man", "", 2, "", "koel: man/koel-info.1: No space left on device\n");
    let ran = shell(&place, "trap '' XFSZ; ulimit -f 1; koel generate man cut");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("koel: cut/koel"), "{}", ran.stderr);
    let page = ran.stderr.trim_start_matches("koel: ").split(':').next().unwrap().to_owned();
    assert!(page.ends_with(".1") && !is_there(&place.path(&page)), "{page}");
}

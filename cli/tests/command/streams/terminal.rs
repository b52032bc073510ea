//! Terminals: a progress bar during the run, and only the summary in the end.

use crate::common::*;
use crate::terminals::Terminal;
use std::process::{Command, Stdio};
use std::thread;

fn start(place: &Place, words: &str, set: impl Fn(&mut Command) -> &mut Command) -> Going {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut command = place.command(&words);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    set(&mut command);
    Going::start_as_it_is(&mut command)
}

#[test]
fn a_bar_shows_how_far_it_is_and_goes() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    let mut going = start(&place, "dedup", |command| command.stderr(terminal.end()));
    let lines = numbered(0..1_000);
    let twice = [&lines[..], &lines].concat();
    going.feed(&twice);
    assert_same(&going.next(lines.len()), &lines, "what is printed");
    let kib = format!("{:.2} KiB, ", twice.len() as f64 / 1_024.0);
    wait_until("the bar", || {
        let sent = terminal.sent();
        sent.contains("2,000 lines, 1,000 new") && sent.contains(&kib)
    });
    going.end();
    // However it is drawn, the number of lines is there.
    let sent = terminal.sent();
    assert!(!sent.replace(" \x1B[2K", "\x1B[2K").contains("/s, \x1B"), "{sent:?}");
    let drawn = sent.split(['\r', '\x1B']).filter(|drawn| drawn.contains("KiB"));
    drawn.for_each(|drawn| assert!(drawn.trim_end().ends_with(" new"), "{drawn:?}"));
    let shown = terminal.shows_at_last(" s");
    assert!(shown.starts_with("koel: 2,000 lines, 1,000 new, 1,000 repeated; "), "{shown:?}");
    assert_eq!(shown.trim_end().lines().count(), 1, "{shown:?}");
}

#[test]
fn a_bar_shows_how_much_there_is_of_files() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    place.write("lines", numbered(0..300_000));
    let mut going = start(&place, "dedup lines", |command| command.stderr(terminal.end()));
    // The output is not read, so the run is blocked.
    let total = format!("/{:.2} MiB, ", place.read("lines").len() as f64 / 1_048_576.0);
    wait_until("the bar", || {
        let sent = terminal.sent();
        sent.contains(&total) && sent.contains(" left")
    });
    let reader = collect(going.stdout.take().unwrap());
    assert_eq!(going.wait().0.code(), Some(0));
    reader.join().unwrap();
    assert_eq!(terminal.shows_at_last(" s").trim_end().lines().count(), 1);
}

#[test]
fn an_error_stays_above_the_bar() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    let mut going = start(&place, "dedup missing -", |command| command.stderr(terminal.end()));
    going.feed(b"a\n");
    wait_until("the bar", || terminal.sent().contains("1 lines, 1 new"));
    drop(going.stdin.take());
    assert_eq!(going.wait().0.code(), Some(2));
    let shown = terminal.shows_at_last(" s");
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    assert_eq!(lines.len(), 2, "{shown:?}");
    assert_eq!(lines[0], "koel: missing: No such file or directory");
    assert!(lines[1].starts_with("koel: 1 line, 1 new, 0 repeated; "), "{shown:?}");
}

#[test]
fn a_quiet_run_shows_nothing() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    let mut going = start(&place, "dedup --quiet", |command| command.stderr(terminal.end()));
    going.passes(b"a\n");
    thread::sleep(std::time::Duration::from_millis(300));
    going.end();
    // This is the first output.
    std::io::Write::write_all(&mut terminal.own(), b"END").unwrap();
    wait_until("the end", || !terminal.sent().is_empty());
    assert_eq!(terminal.sent(), "END");
}

#[test]
fn a_bar_does_not_get_between_lines_on_the_same_terminal() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    let mut going =
        start(&place, "dedup", |command| command.stdout(terminal.end()).stderr(terminal.end()));
    going.feed(b"first\n");
    wait_until("the line", || terminal.sent().contains("first"));
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(terminal.sent(), "first\r\n");
    going.end();
    assert!(terminal.shows_at_last(" s").starts_with("first\nkoel: 1 line, 1 new, 0 repeated; "));
    assert!(!terminal.sent().contains('\x1B'));
}

#[test]
fn a_number_does_not_get_in_the_way_of_a_bar() {
    let Some(terminal) = Terminal::new() else { return };
    let place = Place::new();
    let mut going = start(&place, "dedup --count", |command| {
        command.stdout(terminal.end()).stderr(terminal.end())
    });
    going.feed(b"a\nb\n");
    wait_until("the bar", || terminal.sent().contains("2 lines, 2 new"));
    going.end();
    assert!(terminal.shows_at_last(" s").starts_with("2\nkoel: 2 lines, 2 new, 0 repeated; "));
}

//! Terminals: a progress bar during the run, and only the summary in the end.

use crate::common::*;
use crate::terminals::Terminal;
use std::thread;
use std::time::Duration;

#[test]
fn a_bar_shows_how_far_it_is_and_goes() {
    let place = Place::new();
    let Some((terminal, mut going)) = place.start_shown("dedup", false) else { return };
    let lines = numbered(0..1_000);
    let twice = [&lines[..], &lines].concat();
    going.feed(&twice);
    assert_same(&going.next(lines.len()), &lines, "what is printed");
    let kib = format!("; {:.2} KiB, ", twice.len() as f64 / 1_024.0);
    wait_until("the bar", || {
        let sent = terminal.sent();
        sent.contains("2,000 lines, 1,000 new") && sent.contains(&kib)
    });
    going.end();
    // However it is drawn, the number of lines is there.
    let sent = terminal.sent();
    let drawn = sent.split(['\r', '\x1B']).filter(|drawn| drawn.contains("KiB"));
    drawn.for_each(|drawn| assert!(drawn.contains(" new; "), "{drawn:?}"));
    let shown = terminal.shows_at_last(" s");
    assert!(shown.starts_with("koel: 2,000 lines, 1,000 new, 1,000 repeated; "), "{shown:?}");
    assert_eq!(shown.trim_end().lines().count(), 1, "{shown:?}");
}

#[test]
fn a_bar_shows_how_much_there_is_of_files_and_errors_above_it() {
    let place = Place::new();
    place.write("lines", numbered(0..300_000));
    let Some((terminal, mut going)) = place.start_shown("dedup lines missing", false) else {
        return;
    };
    // The output is not read, so the run is blocked.
    wait_until("the bar", || terminal.sent().contains(" lines, "));
    let reader = collect(going.stdout.take().unwrap());
    assert_eq!(going.wait().0.code(), Some(2));
    reader.join().unwrap();
    let shown = terminal.shows_at_last(" s");
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    assert_eq!(lines.len(), 2, "{shown:?}");
    assert_eq!(lines[0], "koel: missing: No such file or directory");
    // One run in some 500 takes a new line for a repeated one.
    let mistaken = (1..4).map(|lines| format!("299,{} new, {lines} repeated; ", 1_000 - lines));
    let mut counted = mistaken.chain(["300,000 new, 0 repeated; ".into()]);
    let is_right = |counts: String| lines[1].starts_with(&format!("koel: 300,000 lines, {counts}"));
    assert!(counted.any(is_right), "{shown:?}");
    let Some((terminal, mut going)) = place.start_shown("dedup lines", false) else { return };
    let total = format!("/{:.2} MiB, ", place.read("lines").len() as f64 / 1_048_576.0);
    wait_until("the bar", || terminal.sent().contains(&total) && terminal.sent().contains(" left"));
    going.stop_reading();
    going.wait();
    // Where there is little room, it is that of the lines.
    let Some(terminal) = Terminal::of_columns(40) else { return };
    let mut going = place.start_shown_on(&terminal, "dedup lines", false);
    wait_until("the bar", || {
        terminal.sent().contains(" lines, ") && terminal.sent().contains(" new")
    });
    going.stop_reading();
    going.wait();
}

#[test]
fn a_bar_does_not_get_between_lines_and_a_quiet_run_has_none() {
    let place = Place::new();
    let last = "koel: 1 line, 1 new, 0 repeated; ";
    for (words, is_output, during, end) in [
        ("dedup", true, "first\r\n", format!("first\n{last}")),
        ("dedup --quiet", true, "first\r\n", "first\n".into()),
        ("dedup --quiet -o out", false, "", String::new()),
        ("dedup --count", true, "1 lines, 1 new", format!("1\n{last}")),
    ] {
        let Some((terminal, mut going)) = place.start_shown(words, is_output) else { return };
        going.feed(b"first\n");
        wait_until("the line", || terminal.sent().contains(during));
        thread::sleep(Duration::from_millis(300));
        let has_bar = words.ends_with("count");
        assert!(has_bar || terminal.sent() == during, "{words}: {:?}", terminal.sent());
        going.end();
        let shown = terminal.shows_in_the_end();
        assert!(shown.starts_with(&end), "{words}: {shown:?}");
        assert!(has_bar || !terminal.sent().contains('\x1B'), "{words}");
    }
}

//! Manual pages, generated from the arguments.
//!
//! The text after the options in `--help` becomes sections of the page. It consists of headings, such as `Examples:`,
//! each with paragraphs and items below it, indented by two spaces. An item is a term, two or more spaces and its
//! explanation, or a line that is followed by more deeply indented ones. In all other texts, lines that are indented by
//! two spaces, such as those of a table, stay as they are.

use clap::{Arg, Command};
use std::fmt::Write;

/// Returns the name of the file, and the page of a command in the manual of `koel`.
pub fn page(command: &Command) -> (String, String) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut page = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let title = name.to_uppercase();
    page += &format!(".TH {} 1 \"\" \"koel {version}\" \"User Commands\"\n", escaped(&title));
    // Words are not divided, so that they can be searched for, and right margins are left ragged.
    page += ".nh\n.ad l\n.SH NAME\n";
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    page += &format!("{} \\- {}\n", escaped(name), escaped(about.trim_end_matches('.')));
    page += ".SH SYNOPSIS\n";
    page += &synopsis(command);
    page += ".SH DESCRIPTION\n";
    let long = command.get_long_about().map(ToString::to_string);
    paragraphs(&mut page, &long.unwrap_or(about), ".PP\n");
    options(&mut page, command);
    commands(&mut page, command);
    if let Some(after) = command.get_after_long_help() {
        sections(&mut page, &after.to_string());
    }
    see_also(&mut page, command, name);
    (format!("{name}.1"), page)
}

/// Escapes text, so that none of it is taken for a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let is_request = text.starts_with(['.', '\'']);
    if is_request { format!("\\&{text}") } else { text }
}

fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut line = format!("\\fB{}\\fR", escaped(name));
    if command.has_subcommands() {
        line += " \\fICOMMAND\\fR";
    }
    line += " [\\fIOPTION\\fR]...";
    for arg in command.get_positionals() {
        let many = if takes_many(arg) { "..." } else { "" };
        match arg.is_required_set() {
            true => write!(line, " \\fI{}\\fR{many}", value(arg)),
            false => write!(line, " [\\fI{}\\fR]{many}", value(arg)),
        }
        .unwrap_or_default();
    }
    line + "\n"
}

fn takes_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().map(|names| names.join(" "));
    escaped(&names.unwrap_or_else(|| arg.get_id().as_str().to_uppercase()))
}

/// Appends paragraphs, with `between` before all but the first, and lines as they are where they are indented.
fn paragraphs(page: &mut String, text: &str, between: &str) {
    let mut is_first = true;
    for paragraph in text.split("\n\n").map(|paragraph| paragraph.trim_matches('\n')) {
        if !std::mem::take(&mut is_first) {
            page.push_str(between);
        }
        if paragraph.starts_with("  ") {
            page.push_str(".nf\n");
            for line in paragraph.lines() {
                *page += &format!("{}\n", escaped(line.strip_prefix("  ").unwrap_or(line)));
            }
            page.push_str(".fi\n");
        } else {
            let is_whole = paragraph.ends_with(['.', ':', ']']) || paragraph.ends_with(".)");
            let end = if is_whole || paragraph.is_empty() { "" } else { "." };
            *page += &format!("{}{end}\n", escaped(paragraph));
        }
    }
}

/// Appends the options by their headings, those without one first.
fn options(page: &mut String, command: &Command) {
    let mut args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    // As in the help, in the order of their declaration; the arguments without names come first.
    args.sort_by_key(|arg| (!arg.is_positional(), arg.get_display_order()));
    let mut headings: Vec<Option<&str>> = vec![None];
    for arg in &args {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    page.push_str(".SH OPTIONS\n");
    for heading in headings {
        if let Some(heading) = heading {
            *page += &format!(".SS {}\n", escaped(heading));
        }
        let of_heading = args.iter().filter(|arg| arg.get_help_heading() == heading);
        of_heading.for_each(|arg| option(page, arg));
    }
}

fn option(page: &mut String, arg: &Arg) {
    let takes_value = arg.get_num_args().is_some_and(|range| range.takes_values());
    let mut names = Vec::new();
    names.extend(arg.get_short().map(|short| format!("\\fB\\-{short}\\fR")));
    names.extend(arg.get_long().map(|long| format!("\\fB{}\\fR", escaped(&format!("--{long}")))));
    let mut tag = names.join(", ");
    if arg.is_positional() {
        tag = format!("\\fI{}\\fR", value(arg));
    } else if takes_value {
        let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
        tag += &match is_optional {
            true => format!("[=\\fI{}\\fR]", value(arg)),
            false => format!(" \\fI{}\\fR", value(arg)),
        };
    }
    *page += &format!(".TP\n{tag}\n");
    let help = arg.get_long_help().or_else(|| arg.get_help());
    paragraphs(page, &help.map(ToString::to_string).unwrap_or_default(), ".sp\n");
    let values = arg.get_possible_values();
    if takes_value && !values.is_empty() {
        page.push_str(".RS\n");
        for value in values {
            *page += &format!(".TP\n\\fB{}\\fR\n", escaped(value.get_name()));
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            *page += &format!("{}\n", escaped(&help));
        }
        page.push_str(".RE\n");
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.display()).collect();
    if takes_value && let [default] = &defaults[..] {
        *page += &format!(".sp\nThe default is {}.\n", escaped(&default.to_string()));
    }
}

fn commands(page: &mut String, command: &Command) {
    if !command.has_subcommands() {
        return;
    }
    page.push_str(".SH COMMANDS\n");
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        *page += &format!(".TP\n\\fB{}\\fR(1)\n{}.\n", escaped(name), escaped(&about));
    }
}

/// Appends the sections of a text below headings.
fn sections(page: &mut String, text: &str) {
    let mut lines = text.lines().peekable();
    let mut begins = false;
    while let Some(line) = lines.next() {
        let Some(body) = line.strip_prefix("  ") else {
            if let Some(heading) = line.strip_suffix(':') {
                *page += &format!(".SH {}\n", escaped(&heading.to_uppercase()));
                begins = true;
            }
            continue;
        };
        let is_more = |line: &&str| line.starts_with("     ");
        let mut more = Vec::new();
        while let Some(line) = lines.next_if(is_more) {
            more.push(line.trim());
        }
        match body.split_once("  ") {
            Some((tag, first)) => {
                more.insert(0, first.trim());
                *page += &format!(".TP\n\\fB{}\\fR\n", escaped(tag));
            }
            None if !more.is_empty() => {
                *page += &format!(".TP\n\\fB{}\\fR\n", escaped(body));
            }
            None => {
                more.push(body);
                while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                    more.push(line.trim());
                }
                page.push_str(if begins { "" } else { ".PP\n" });
            }
        }
        *page += &format!("{}\n", escaped(&more.join(" ")));
        begins = false;
    }
}

fn see_also(page: &mut String, command: &Command, name: &str) {
    let mut others: Vec<String> = Vec::new();
    if name != "koel" {
        others.push(String::from("koel"));
    }
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    others.extend(below.map(|command| format!("{name}-{}", command.get_name())));
    let others = others.iter().map(|other| format!("\\fB{}\\fR(1)", escaped(other)));
    *page += &format!(".SH SEE ALSO\n{}\n", others.collect::<Vec<_>>().join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_items_and_paragraphs() {
        let mut page = String::new();
        let text = "\
Exit status:
  0    success, and a text
       of two lines
  129  ended

  A paragraph
  of two lines.

Examples:
  koel -q .x
      Ask.
";
        sections(&mut page, text);
        assert_eq!(
            page,
            ".SH EXIT STATUS\n.TP\n\\fB0\\fR\nsuccess, and a text of two lines\n.TP\n\\fB129\\fR\nended\n.PP\nA \
             paragraph of two lines.\n.SH EXAMPLES\n.TP\n\\fBkoel \\-q .x\\fR\nAsk.\n"
        );
    }

    #[test]
    fn tables_stay_as_they_are() {
        let mut page = String::new();
        paragraphs(&mut page, "A table\n\n  a   b\n  .c  d\n", ".sp\n");
        assert_eq!(page, "A table.\n.sp\n.nf\na   b\n\\&.c  d\n.fi\n");
    }
}

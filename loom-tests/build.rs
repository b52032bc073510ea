//! Copies the sources of koel and puts the mutants into the copy, which the models then run.
//!
//! A list in `mutants/` has, for each mutant, a function, the text in it that is changed, and what stands there instead.
//! In the copy, both are there, and the process asks which of them it runs (`broken`). So one compilation has
//! all mutants, and the sources have none.
//!
//! ```text
//! the_lock_is_taken_relaxed
//!     in Lock::try_take
//!     - self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
//!     + self.held.compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
//! ```
//!
//! A mutant may change several places. The text has to be in its function exactly once; spaces and line ends
//! do not count. A mutant that only adds something repeats the text before or after that. What mutants and models call,
//! and the sources do not have, is in `additions/`: `shard.rs` there becomes the module `shard::additions` of the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The name of the edits that are made in every process, because loom cannot see what they take away.
const ALWAYS: &str = "always";

/// One place that a mutant changes.
struct Edit {
    mutant: String,
    function: String,
    text: String,
    replacement: String,
}

type Sources = BTreeMap<PathBuf, String>;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("koel");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=loom");
    let read = |folder: &str| {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Sources::new();
        read(&here.join(folder), Path::new(""), &mut files);
        files
    };
    let mut files = read("../src");
    for (name, text) in read("additions") {
        add_module(&name.with_extension(""), text, &mut files);
    }
    let mut errors = Vec::new();
    let lists = read("mutants");
    let edits = lists.iter().flat_map(|(name, list)| parse(name, list, &mut errors));
    let edits: Vec<Edit> = edits.collect();
    let names: BTreeSet<&str> = edits.iter().map(|edit| &*edit.mutant).collect();
    let names: Vec<String> =
        names.into_iter().filter(|it| *it != ALWAYS).map(String::from).collect();
    apply(edits, &mut files, &mut errors);
    assert!(errors.is_empty(), "\n\n{}\n\n", errors.join("\n\n"));

    // Of modules that were removed since, nothing may stay.
    let _ = fs::remove_dir_all(&out);
    for (name, text) in &files {
        let path = out.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder in OUT_DIR");
        fs::write(&path, text).expect("a file in OUT_DIR");
    }
    // What is included has no attributes of its own.
    let root = files[Path::new("lib.rs")].split_inclusive('\n');
    let included: String =
        root.filter(|line| !line.starts_with("//!") && !line.starts_with("#![")).collect();
    let included = format!(
        "{included}\n/// The names of all mutants.\npub const MUTANTS: &[&str] = &{names:?};\n"
    );
    fs::write(out.join("included.rs"), included).expect("a file in OUT_DIR");
}

/// Reads all files of a folder.
fn read(folder: &Path, name: &Path, files: &mut Sources) {
    for entry in fs::read_dir(folder).expect("a folder of this repository") {
        let path = entry.expect("an entry").path();
        let name = name.join(path.file_name().expect("a name"));
        if path.is_dir() {
            read(&path, &name, files);
        } else {
            files.insert(name, fs::read_to_string(&path).expect("text"));
        }
    }
}

/// Adds a module `additions` to this module.
fn add_module(module: &Path, text: String, files: &mut Sources) {
    let paths = [module.with_extension("rs"), module.join("mod.rs")];
    let parent = paths.iter().find(|it| files.contains_key(*it)).expect("a module of koel").clone();
    files.get_mut(&parent).expect("found above").push_str("\npub mod additions;\n");
    files.insert(module.join("additions.rs"), text);
}

fn parse(name: &Path, list: &str, errors: &mut Vec<String>) -> Vec<Edit> {
    let (mut edits, mut mutant, mut was_text) = (Vec::<Edit>::new(), String::new(), true);
    for (number, line) in list.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (kind, edits.last_mut()) {
            ("" | "#", _) => {}
            ("in", _) => {
                let [text, replacement] = [const { String::new() }; 2];
                edits.push(Edit {
                    mutant: mutant.clone(),
                    function: rest.to_string(),
                    text,
                    replacement,
                });
                was_text = true;
            }
            ("-", Some(edit)) => {
                if !was_text {
                    // Another place in the same function.
                    let (mutant, function) = (mutant.clone(), edit.function.clone());
                    edits.push(Edit {
                        mutant,
                        function,
                        text: String::new(),
                        replacement: String::new(),
                    });
                    was_text = true;
                }
                let edit = edits.last_mut().expect("one was there");
                edit.text.push_str(rest);
                edit.text.push('\n');
            }
            ("+", Some(edit)) => {
                was_text = false;
                edit.replacement.push_str(rest);
                edit.replacement.push('\n');
            }
            (_, _) if rest.is_empty() => mutant = line.to_string(),
            _ => errors.push(format!("{}:{number}: what is this?", name.display())),
        }
    }
    edits
}

/// A text without its spaces, and where each of its bytes is.
fn squeezed(text: &str) -> (Vec<u8>, Vec<usize>) {
    text.bytes()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_whitespace())
        .map(|(at, byte)| (byte, at))
        .unzip()
}

/// Where a text is, whatever the spaces.
fn find_all(text: &str, within: &str) -> Vec<Range<usize>> {
    let ((wanted, _), (bytes, places)) = (squeezed(text), squeezed(within));
    let found = bytes.windows(wanted.len().max(1)).enumerate().filter(|(_, it)| *it == wanted);
    found.map(|(at, _)| places[at]..places[at + wanted.len() - 1] + 1).collect()
}

/// The functions of that name, `name` or `Type::name`: each from its first line to its last one. rustfmt makes them easy to
/// find.
fn functions(name: &str, source: &str) -> Vec<Range<usize>> {
    let (owner, name) =
        name.split_once("::").map_or((None, name), |(owner, name)| (Some(owner), name));
    let (mut found, mut begun, mut block, mut at) = (Vec::new(), None::<(usize, String)>, "", 0);
    for line in source.split_inclusive('\n') {
        let indented = line.len() - line.trim_start().len();
        let head = format!("fn {name}");
        if ["impl", "unsafe impl", "trait", "pub trait"].iter().any(|it| line.starts_with(it)) {
            block = line;
        } else if line.starts_with('}') {
            block = "";
        }
        let is_here = line.find(&head).is_some_and(|at| {
            let next = line[at + head.len()..].chars().next();
            matches!(next, Some('(' | '<')) && !line.trim_start().starts_with("//")
        });
        if begun.is_none() && is_here && owner.is_none_or(|owner| is_of(block, owner)) {
            begun = Some((at, format!("{}}}\n", &line[..indented])));
        }
        at += line.len();
        if let Some((start, _)) = begun.take_if(|(_, end)| line == end) {
            found.push(start..at);
        }
    }
    found
}

/// Whether a block of implementations is of that type, or a trait of that name.
fn is_of(block: &str, owner: &str) -> bool {
    let subject = block.rsplit_once(" for ").map_or(block, |(_, subject)| subject);
    subject.split(|it: char| !it.is_alphanumeric() && it != '_').any(|word| word == owner)
}

/// Makes all edits: first those that are `always` made, in every process.
fn apply(edits: Vec<Edit>, files: &mut Sources, errors: &mut Vec<String>) {
    let (always, edits): (Vec<_>, Vec<_>) = edits.into_iter().partition(|it| it.mutant == ALWAYS);
    for (name, mut edits) in placed(always, files, errors) {
        edits.sort_by_key(|(range, _)| range.start);
        let source = files.get_mut(&name).expect("a file of the list");
        for (range, edit) in edits.into_iter().rev() {
            // A bracket at the start of a line would end the function.
            source.replace_range(range, &edit.replacement.replace('\n', " "));
        }
    }
    for (name, mut edits) in placed(edits, files, errors) {
        // Of those that begin at one place, the longest first, and then those that only add something.
        edits.sort_by_key(|(range, edit)| {
            let adds = added(&edit.text, edit.replacement.trim()).is_some();
            (range.start, usize::MAX - range.end, !adds)
        });
        let source = &files[&name];
        let mut edited = String::new();
        write_all(source, 0..source.len(), &edits, &mut edited, errors);
        files.insert(name, edited);
    }
}

/// Finds the places of all edits.
fn placed(
    edits: Vec<Edit>,
    files: &Sources,
    errors: &mut Vec<String>,
) -> BTreeMap<PathBuf, Vec<(Range<usize>, Edit)>> {
    let mut placed = BTreeMap::<_, Vec<_>>::new();
    for edit in edits {
        let named = files.iter().flat_map(|(name, source)| {
            functions(&edit.function, source).into_iter().map(move |function| (name, function))
        });
        let named: Vec<_> = named.collect();
        let found = named.iter().flat_map(|(name, function)| {
            let texts = find_all(&edit.text, &files[*name][function.clone()]);
            texts.into_iter().map(|it| (*name, function.start + it.start..function.start + it.end))
        });
        let found: Vec<_> = found.collect();
        if let [(name, range)] = &found[..] {
            placed.entry((*name).clone()).or_default().push((range.clone(), edit));
            continue;
        }
        let places = named.iter().map(|(name, function)| {
            let line = 1 + files[*name][..function.start].matches('\n').count();
            format!("src/{}:{line}", name.display())
        });
        let places = places.collect::<Vec<_>>().join(", ");
        let Edit { mutant, function, text, .. } = edit;
        let count = found.len();
        errors.push(format!(
            "{mutant}: {count} times in {function} ({places}), and not once:\n{text}"
        ));
    }
    placed
}

/// Writes this range of a source, with the edits that are in it. Returns how many there were.
fn write_all(
    source: &str,
    range: Range<usize>,
    edits: &[(Range<usize>, Edit)],
    out: &mut String,
    errors: &mut Vec<String>,
) -> usize {
    let (mut at, mut index) = (range.start, 0);
    while let Some((place, edit)) = edits.get(index).filter(|(place, _)| place.start < range.end) {
        if place.end > range.end {
            errors.push(format!("{}: it overlaps with another mutant: {}", edit.mutant, edit.text));
            return edits.len();
        }
        out.push_str(&source[at..place.start]);
        let mut inner = String::new();
        index += 1;
        index += write_all(source, place.clone(), &edits[index..], &mut inner, errors);
        out.push_str(&mutated(edit, &source[place.clone()], &inner));
        at = place.end;
    }
    out.push_str(&source[at..range.end]);
    index
}

/// A text with its mutant beside it, given the text as it is in the source, and with the mutants within it.
fn mutated(edit: &Edit, plain: &str, text: &str) -> String {
    let broken = format!("crate::broken({:?})", edit.mutant);
    let replacement = edit.replacement.trim();
    match added(plain, replacement) {
        Some(Added::Before(it)) => return format!("if {broken} {{ {it} }} {text}"),
        Some(Added::After(it)) => return format!("{text} if {broken} {{ {it} }}"),
        None => {}
    }
    let head = head(plain);
    if head > 0 && [text, replacement].iter().all(|it| it.starts_with(&plain[..head])) {
        let [value, instead] = [text, replacement].map(|it| it[head..].trim_end_matches(';'));
        let end = if text.ends_with(';') { ";" } else { "" };
        return format!("{} (if {broken} {{ {instead} }} else {{ {value} }}){end}", &text[..head]);
    }
    if plain.ends_with([';', '}']) {
        return format!("if {broken} {{ {replacement} }} else {{ {text} }}");
    }
    format!("(if {broken} {{ {replacement} }} else {{ {text} }})")
}

/// What a mutant adds to a text.
enum Added<'a> {
    Before(&'a str),
    After(&'a str),
}

fn added<'a>(plain: &str, replacement: &'a str) -> Option<Added<'a>> {
    let same = find_all(plain, replacement);
    let [Range { start, end }] = same[..] else { return None };
    let is_statement = |it: &str| it.trim_end().ends_with([';', '}']);
    let (before, after) = (&replacement[..start], &replacement[end..]);
    match (before, after) {
        (_, "") if is_statement(before) => Some(Added::Before(before)),
        ("", _) if is_statement(plain) && !after.is_empty() => Some(Added::After(after)),
        _ => None,
    }
}

/// How much of a text is not an expression: it binds a value, or asks for one and ends before the block.
fn head(text: &str) -> usize {
    let after = |text: &str, keyword: &str, end: &str| {
        let rest = text.strip_prefix(keyword)?;
        rest.find(end).map(|at| keyword.len() + at + end.len())
    };
    let bound = after(text, "let ", " = ").unwrap_or(0);
    let value = &text[bound..];
    if value.contains('{') {
        return bound;
    }
    let asked = after(value, "if let ", " = ").or_else(|| after(value, "for ", " in "));
    let asked =
        asked.or_else(|| ["if ", "while ", "match "].iter().find_map(|it| after(value, it, "")));
    bound + asked.unwrap_or(0)
}

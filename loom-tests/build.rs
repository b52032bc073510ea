//! Copies the sources of koel and puts the mutants into the copy, which the models then run.
//!
//! A list in `mutants/` has, for each mutant, the models that fail on it, with their messages, and each text in the
//! sources that it changes, with the function and the replacement. The copy has both, and the process asks which of
//! them it runs (`broken`). So one compilation has all mutants, and the sources have none.
//!
//! ```text
//! the_lock_is_taken_relaxed
//!     fails exclusion::two_inserts_into_one_bucket_both_stay
//!     with Causality violation
//!     in Lock::try_take
//!     - self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
//!     + self.held.compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
//! ```
//!
//! A text must be in its function exactly once; spaces and line ends do not count. A mutant that only adds something
//! repeats the text before or after it. Code that mutants and models need beside the sources is in `additions/`:
//! `shard.rs` there becomes the module `shard::additions` of the copy. For each line with `fails`, the models program
//! gets a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The name of edits that every process runs, because loom cannot see what they take away.
const ALWAYS: &str = "always";

/// One place that a mutant changes.
#[derive(Clone, Default)]
struct Edit {
    /// The line of the list.
    at: String,
    mutant: String,
    function: String,
    text: String,
    replacement: String,
}

/// A model that fails on a mutant.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kill {
    model: String,
    mutant: String,
    message: String,
}

/// What the lists say, and what is wrong with it.
#[derive(Default)]
struct Lists {
    edits: Vec<Edit>,
    kills: Vec<Kill>,
    errors: Vec<String>,
}

/// The texts of files by their names.
type Sources = BTreeMap<PathBuf, String>;

fn main() {
    let [here, out] = ["CARGO_MANIFEST_DIR", "OUT_DIR"]
        .map(|name| PathBuf::from(env::var_os(name).expect("cargo sets it")));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=loom");
    let read = |folder: &str| {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Sources::new();
        read(&here.join(folder), Path::new(""), &mut files);
        files
    };
    let mut files = read("../src");
    files.values_mut().for_each(open);
    for (name, text) in read("additions") {
        add_module(&name.with_extension(""), text, &mut files);
    }
    let mut lists = Lists::default();
    read("mutants").iter().for_each(|(name, list)| lists.parse(name, list));
    let Lists { edits, kills, mut errors } = lists;
    let named = |mutants: Vec<&String>| BTreeSet::from_iter(mutants.into_iter().cloned());
    let edited = named(edits.iter().map(|it| &it.mutant).filter(|it| *it != ALWAYS).collect());
    let killed = named(kills.iter().map(|it| &it.mutant).collect());
    errors.extend(edited.difference(&killed).map(|it| format!("{it}: no model fails on it")));
    errors.extend(killed.difference(&edited).map(|it| format!("{it}: it changes nothing")));
    let silent = kills.iter().filter(|it| it.message.is_empty());
    errors.extend(silent.map(|it| format!("{}: {} has no message (`with`)", it.mutant, it.model)));
    apply(edits, &mut files, &mut errors);
    if !errors.is_empty() {
        errors.iter().for_each(|error| println!("cargo::error={error}"));
        return;
    }
    let tests = tests(kills, edited.len());
    fs::write(out.join("tests.rs"), tests).expect("a file in OUT_DIR");

    let copy = out.join("koel");
    // A module that was removed from the sources must not stay in the copy.
    let _ = fs::remove_dir_all(&copy);
    for (name, text) in &files {
        let path = copy.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder in OUT_DIR");
        fs::write(&path, text).expect("a file in OUT_DIR");
    }
    // A file that is included must not have attributes of its own.
    let root = files[Path::new("lib.rs")].split_inclusive('\n');
    let root = root.filter(|line| !line.starts_with("//!") && !line.starts_with("#!["));
    fs::write(copy.join("included.rs"), root.collect::<String>()).expect("a file in OUT_DIR");
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

/// Makes what the crate has for itself public, so that models reach it.
fn open(text: &mut String) {
    *text = text.replace("pub(crate) ", "pub ").replace("\nmod ", "\npub mod ");
    // Macros stay in their crate.
    *text = text.replace("pub use on_", "pub(crate) use on_");
    *text = text.replace("#[cfg(test)]", "#[cfg(any())]");
}

/// Adds a module `additions` to a module of the sources.
fn add_module(module: &Path, text: String, files: &mut Sources) {
    let mut paths = [module.with_extension("rs"), module.join("mod.rs")].into_iter();
    let parent = paths.find(|it| files.contains_key(it)).expect("a module of the sources");
    *files.get_mut(&parent).expect("found above") += "\npub mod additions;\n";
    files.insert(module.join("additions.rs"), text);
}

impl Lists {
    /// Reads a list of mutants.
    fn parse(&mut self, name: &Path, list: &str) {
        let mut edit = Edit::default();
        for (index, line) in list.lines().chain([""]).map(str::trim).enumerate() {
            let at = format!("mutants/{}:{}", name.display(), index + 1);
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            if kind != "+" && !edit.replacement.is_empty() {
                self.edits.push(edit.clone());
                (edit.text, edit.replacement) = Default::default();
            }
            match kind {
                "" | "#" => {}
                "fails" => {
                    let [model, mutant] = [rest.to_string(), edit.mutant.clone()];
                    self.kills.push(Kill { model, mutant, message: String::new() });
                }
                "with" => {
                    self.kills.last_mut().expect("`fails` is above").message = rest.to_string()
                }
                "in" => edit.function = rest.to_string(),
                "-" => {
                    edit.at = at;
                    edit.text += rest;
                    edit.text.push('\n');
                }
                "+" if !edit.text.is_empty() => {
                    edit.replacement += rest;
                    edit.replacement.push('\n');
                }
                _ if rest.is_empty() && edit.text.is_empty() => {
                    edit = Edit { mutant: line.to_string(), ..Edit::default() };
                }
                _ => self.errors.push(format!("{at}: neither a mutant nor a part of one: {line}")),
            }
        }
    }
}

/// Returns the tests of the mutants, which `tests/models/mutants.rs` includes.
fn tests(mut kills: Vec<Kill>, mutants: usize) -> String {
    kills.sort();
    let mut tests = format!("/// The number of mutants.\nconst MUTANTS: usize = {mutants};\n");
    let mut models = Vec::new();
    for of_model in kills.chunk_by(|one, next| one.model == next.model) {
        models.push(&of_model[0].model);
        let _ = writeln!(tests, "mod {} {{", of_model[0].model.replace("::", "_"));
        for Kill { model, mutant, message } in of_model {
            let kill = format!("super::must_fail({model:?}, {mutant:?}, {message:?})");
            let _ = writeln!(tests, "#[test] fn {mutant}() {{ {kill} }}");
        }
        tests.push_str("}\n");
    }
    let _ = writeln!(tests, "/// The models that have mutants.");
    let _ = writeln!(tests, "const MODELS: &[&str] = &{models:?};");
    tests
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

/// The functions of that name, `name` or `Type::name`, each from its first line to its last one. (rustfmt indents these
/// two alike.)
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

/// Whether the block that begins with this line implements something for that type, or is a trait of that name.
fn is_of(block: &str, owner: &str) -> bool {
    let subject = block.rsplit_once(" for ").map_or(block, |(_, subject)| subject);
    subject.split(|it: char| !it.is_alphanumeric() && it != '_').any(|word| word == owner)
}

/// Makes all edits: those that every process runs first, so that mutants may change their text again.
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
        let Edit { at, mutant, function, text, .. } = edit;
        let text = text.lines().collect::<Vec<_>>().join(" ");
        let count = found.len();
        errors.push(if places.is_empty() {
            format!("{at}: {mutant}: the sources have no function {function}")
        } else {
            format!("{at}: {mutant}: {count} times in {function} ({places}), not once: {text}")
        });
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
            let Edit { at, mutant, .. } = edit;
            errors.push(format!("{at}: {mutant}: its text overlaps with that of another mutant"));
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

//! The sources are layered: each room (a folder of modules) imports only from rooms below it, and
//! there are no import cycles.
//!
//! The test reads the sources as text. A path like `crate::shard::kick::walk` is an import by the
//! file that names it, from the file of the longest prefix that is a module. Comments and
//! declarations like `mod kick;` do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of the library, from the top down. Files outside of any folder are below all rooms.
const LIBRARY: [&str; 6] = ["filter", "snapshot", "room", "shard", "table", "layout"];
/// The rooms of the command, from the top down.
const COMMAND: [&str; 6] = ["commands", "bench", "run", "lines", "state", "arguments"];

#[test]
fn rooms_of_the_library_import_downwards_only() {
    let sources = sources_below("src");
    assert!(sources.len() > 30, "only {} sources found", sources.len());
    assert_eq!(faults(&sources, &LIBRARY), [""; 0]);
}

#[test]
fn rooms_of_the_command_import_downwards_only() {
    if below("Cargo.toml.orig").exists() {
        return; // a published package, where there is no command
    }
    let sources = sources_below("cli/src");
    assert!(sources.len() > 30, "only {} sources found", sources.len());
    assert_eq!(faults(&sources, &COMMAND), [""; 0]);
}

/// The text of each module, by its path from the crate's root.
type Sources = BTreeMap<Vec<String>, String>;

fn sources_below(folder: &str) -> Sources {
    let mut sources = Sources::new();
    collect(&below(folder), &[], &mut sources);
    sources
}

fn below(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn collect(folder: &Path, module: &[String], sources: &mut Sources) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_string();
        let mut child = module.to_vec();
        if path.is_dir() {
            child.push(name);
            collect(&path, &child, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            if !["lib", "main", "mod"].contains(&&*name) {
                child.push(name);
            }
            sources.insert(child, fs::read_to_string(&path).expect("text"));
        }
    }
}

/// Returns the faults in the imports of these sources: imports from above, and cycles.
fn faults(sources: &Sources, rooms: &[&str]) -> Vec<String> {
    let imports_of: BTreeMap<_, _> =
        sources.iter().map(|(module, text)| (module, imports(module, text, sources))).collect();
    let height = |module: &[String]| match module.first() {
        None => rooms.len() + 1,
        Some(first) => {
            rooms.iter().position(|room| room == first).map_or(0, |from_top| rooms.len() - from_top)
        }
    };
    let mut faults = Vec::new();
    for (from, targets) in &imports_of {
        for to in targets {
            let in_one_room = !from.is_empty() && !to.is_empty() && from[0] == to[0];
            if !in_one_room && height(to) >= height(from).max(1) {
                faults.push(format!("{} imports {}", name(from), name(to)));
            }
        }
    }
    // Drop files that import only from dropped files, until there are no more of them. The files on
    // a cycle are left, and those that import from them.
    let mut left: BTreeSet<&Vec<String>> = imports_of.keys().copied().collect();
    loop {
        let before = left.len();
        let stays = |module: &&Vec<String>| imports_of[*module].iter().any(|to| left.contains(to));
        left = left.iter().copied().filter(stays).collect();
        if left.len() == before {
            break;
        }
    }
    let used_by_others =
        |module: &&&Vec<String>| left.iter().any(|from| imports_of[*from].contains(**module));
    let cycle: Vec<String> = left.iter().filter(used_by_others).map(|it| name(it)).collect();
    if !cycle.is_empty() {
        faults.push(format!("a cycle goes through some of: {}", cycle.join(", ")));
    }
    faults
}

fn name(module: &[String]) -> String {
    if module.is_empty() { "the root".into() } else { module.join("/") }
}

/// Returns the files that this one imports from.
fn imports(module: &[String], text: &str, sources: &Sources) -> BTreeSet<Vec<String>> {
    let tokens = tokens(text);
    let mut found = BTreeSet::new();
    // The open inline modules, each with the depth of its brace.
    let (mut inline, mut depth) = (Vec::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        match &**token {
            "{" => {
                depth += 1;
                if at > 1 && tokens[at - 2] == "mod" {
                    inline.push((tokens[at - 1].clone(), depth));
                }
            }
            "}" => {
                inline.pop_if(|(_, opened)| *opened == depth);
                depth -= 1;
            }
            _ => {}
        }
        let here = || module.iter().chain(inline.iter().map(|(name, _)| name)).cloned();
        let starts_a_use = at > 0 && tokens[at - 1] == "use";
        let base = match &**token {
            _ if at > 0 && tokens[at - 1] == "::" => continue,
            // No path follows, as in `pub(crate)` and `&self`.
            _ if tokens.get(at + 1).is_none_or(|next| next != "::") => continue,
            "crate" => Vec::new(),
            "self" => here().collect(),
            "super" => here().chain([token.clone()]).collect(),
            child if starts_a_use => here().chain([child.to_string()]).collect(),
            _ => continue,
        };
        if starts_a_use && !["crate", "self", "super"].contains(&&**token) {
            // The path names another crate unless it is a module of this one.
            if !sources.contains_key(&base) {
                continue;
            }
        }
        let mut paths = Vec::new();
        expand(&tokens, at + 1, base, &mut paths);
        for path in paths {
            let path = without_supers(&path);
            let is_module = |length: &usize| sources.contains_key(&path[..*length]);
            let longest = (0..=path.len()).rev().find(is_module).expect("the root is a module");
            if path[..longest] != *module {
                found.insert(path[..longest].to_vec());
            }
        }
    }
    found
}

fn without_supers(path: &[String]) -> Vec<String> {
    path.iter().fold(Vec::new(), |mut path, part| {
        match &**part {
            "super" => drop(path.pop()),
            "self" => {}
            _ => path.push(part.clone()),
        }
        path
    })
}

/// Collects all paths that begin with `base` and continue with the tokens from `at`, also through
/// braces. Returns the index after the last token of the paths.
fn expand(tokens: &[String], at: usize, base: Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    if tokens.get(at).is_none_or(|token| token != "::") {
        paths.push(base);
        return at;
    }
    let mut at = at + 1;
    if tokens.get(at).is_some_and(|token| token == "{") {
        while tokens.get(at).is_some_and(|token| token != "}") {
            at += 1;
            if let Some(token) = tokens.get(at).filter(|token| *token != "}" && *token != ",") {
                let mut path = base.clone();
                path.push(token.clone());
                at = expand(tokens, at + 1, path, paths);
            }
        }
        return at + 1;
    }
    let mut path = base;
    path.extend(tokens.get(at).cloned());
    expand(tokens, at + 1, path, paths)
}

/// Splits the text into words, `::` and other characters, without comments and string literals.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        for (number, part) in code.split('"').enumerate() {
            if number % 2 == 1 {
                continue;
            }
            let mut rest = part.trim_start();
            while let Some(first) = rest.chars().next() {
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let length = match first {
                    _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                    ':' if rest.starts_with("::") => 2,
                    _ => first.len_utf8(),
                };
                tokens.push(rest[..length].to_string());
                rest = rest[length..].trim_start();
            }
        }
    }
    tokens
}

/// Tests of the test: it finds faults in small made-up sources.
mod twins {
    use super::*;

    fn sources_of(files: &[(&str, &str)]) -> Sources {
        let module = |path: &str| {
            path.split('/').filter(|part| !part.is_empty()).map(String::from).collect()
        };
        files.iter().map(|(path, text)| (module(path), (*text).to_string())).collect()
    }

    fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
        faults(&sources_of(files), &["top", "low"])
    }

    #[test]
    fn layered_sources_have_no_faults() {
        let files = [
            ("", "mod top; mod low; mod ground; pub use top::Top;"),
            ("top", "pub mod face;\nuse crate::{ground, low::{self, cellar::{Wine, Beer}}};"),
            ("top/face", "use crate::top::Top; // use crate::nothing::Here"),
            ("low", "pub mod cellar; fn f() -> &str { \"crate::top\" }"),
            ("low/cellar", "use super::Low; mod tests { use super::{Low, super::Low}; }"),
            ("ground", "use std::fmt;"),
        ];
        assert_eq!(faults_of(&files), [""; 0]);
    }

    #[test]
    fn an_import_from_above_is_found() {
        for (text, fault) in [
            ("use crate::top::face::Face;", "low/cellar imports top/face"),
            ("fn f() { crate::top::face::f() }", "low/cellar imports top/face"),
            ("use crate::{low, top};", "low/cellar imports top"),
            ("use super::super::Top;", "low/cellar imports the root"),
            ("use crate::Top;", "low/cellar imports the root"),
        ] {
            let files =
                [("", ""), ("top", ""), ("top/face", ""), ("low", ""), ("low/cellar", text)];
            assert_eq!(faults_of(&files), [fault], "{text}");
        }
        let ground = [("", ""), ("low", ""), ("low/cellar", ""), ("ground", "use crate::low::f;")];
        assert_eq!(faults_of(&ground), ["ground imports low"]);
    }

    #[test]
    fn a_cycle_is_found() {
        let files = [
            ("", "pub use low::cellar::Wine;"),
            ("low", "pub use cellar::Wine;"),
            ("low/cellar", "use crate::low::stairs::Down;"),
            ("low/stairs", "use crate::low::Wine;"),
        ];
        let cycle = "a cycle goes through some of: low, low/cellar, low/stairs";
        assert_eq!(faults_of(&files), [cycle]);
    }
}

//! The house: each room imports only from rooms below it, and no two files import each other.
//!
//! Reads the sources as text. A path like `crate::shard::kick::walk` is an arrow from the file that
//! names it to the file of the longest prefix that is a module. Comments do not count, and neither
//! does `mod kick;`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// From the top down. What is not in a folder is on the ground, beneath all of them.
const LIBRARY: [&str; 6] = ["filter", "snapshot", "room", "shard", "table", "layout"];
const COMMAND: [&str; 6] = ["commands", "bench", "run", "lines", "state", "arguments"];

#[test]
fn rooms_of_the_library_import_downwards_only() {
    let sources = sources_below("src");
    assert!(sources.len() > 30, "only {} sources found", sources.len());
    assert_eq!(faults(&sources, &LIBRARY), [""; 0]);
}

#[test]
fn rooms_of_the_command_import_downwards_only() {
    let sources = sources_below("cli/src");
    assert!(sources.len() > 30, "only {} sources found", sources.len());
    assert_eq!(faults(&sources, &COMMAND), [""; 0]);
}

/// Modules, by their paths from the crate's root, and their text.
type Sources = BTreeMap<Vec<String>, String>;

fn sources_below(folder: &str) -> Sources {
    let mut sources = Sources::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &[], &mut sources);
    sources
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

/// What is wrong with the arrows of these sources: ones that run up, and circles.
fn faults(sources: &Sources, rooms: &[&str]) -> Vec<String> {
    let arrows: BTreeMap<_, _> =
        sources.iter().map(|(module, text)| (module, imports(module, text, sources))).collect();
    let height = |module: &[String]| match module.first() {
        None => rooms.len() + 1,
        Some(first) => {
            rooms.iter().position(|room| room == first).map_or(0, |from_top| rooms.len() - from_top)
        }
    };
    let mut faults = Vec::new();
    for (from, targets) in &arrows {
        for to in targets {
            let in_one_room = !from.is_empty() && !to.is_empty() && from[0] == to[0];
            if !in_one_room && height(to) >= height(from) {
                faults.push(format!("{} imports {}", name(from), name(to)));
            }
        }
    }
    // Files that import nothing but what is left out already are left out, until none is left.
    let mut left: BTreeSet<&Vec<String>> = arrows.keys().copied().collect();
    loop {
        let before = left.len();
        let stays = |module: &&Vec<String>| arrows[*module].iter().any(|to| left.contains(to));
        left = left.iter().copied().filter(stays).collect();
        if left.len() == before {
            break;
        }
    }
    let used_by_others =
        |module: &&&Vec<String>| left.iter().any(|from| arrows[*from].contains(**module));
    let circle: Vec<String> = left.iter().filter(used_by_others).map(|it| name(it)).collect();
    if !circle.is_empty() {
        faults.push(format!("a circle goes through some of: {}", circle.join(", ")));
    }
    faults
}

fn name(module: &[String]) -> String {
    if module.is_empty() { "the root".into() } else { module.join("/") }
}

/// The files that this one imports from.
fn imports(module: &[String], text: &str, sources: &Sources) -> BTreeSet<Vec<String>> {
    let tokens = tokens(text);
    let mut found = BTreeSet::new();
    // Where we are: `module`, and the inline modules that are open, each with its depth in braces.
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
            // As in `pub(crate)` and `&self`.
            _ if tokens.get(at + 1).is_none_or(|next| next != "::") => continue,
            "crate" => Vec::new(),
            "self" => here().collect(),
            "super" => here().chain([token.clone()]).collect(),
            child if starts_a_use => here().chain([child.to_string()]).collect(),
            _ => continue,
        };
        if starts_a_use && !["crate", "self", "super"].contains(&&**token) {
            // Another crate, unless it is a module of ours.
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

/// All paths that begin at `base` and go on with the tokens from `at`, through braces; returns where
/// they end.
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

/// Words and `::` and other signs, without comments and what is in quotes.
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

/// The test itself is tested.
mod twins {
    use super::*;

    fn house(files: &[(&str, &str)]) -> Sources {
        let module = |path: &str| {
            path.split('/').filter(|part| !part.is_empty()).map(String::from).collect()
        };
        files.iter().map(|(path, text)| (module(path), (*text).to_string())).collect()
    }

    fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
        faults(&house(files), &["top", "low"])
    }

    #[test]
    fn a_sound_house_has_no_faults() {
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
    fn an_arrow_that_runs_up_is_found() {
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
    fn a_circle_is_found() {
        let files = [
            ("", "pub use low::cellar::Wine;"),
            ("low", "pub use cellar::Wine;"),
            ("low/cellar", "use crate::low::stairs::Down;"),
            ("low/stairs", "use crate::low::Wine;"),
        ];
        let circle = "a circle goes through some of: low, low/cellar, low/stairs";
        assert_eq!(faults_of(&files), [circle]);
    }
}

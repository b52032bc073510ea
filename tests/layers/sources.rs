//! The sources of a package: its crates, each with its modules, as the compiler would find them.

use crate::tokens::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The text of each module of a crate, by its path from the root. (A module that is written inside of another one's
/// file is a part of that.)
pub type Sources = BTreeMap<Vec<String>, Vec<Token>>;

/// Returns all folders with a package in them, from this one on. They are named from there.
pub fn packages(top: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![top.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // What cargo builds has copies of packages.
        if folder.join("CACHEDIR.TAG").exists() {
            continue;
        }
        if folder.join("Cargo.toml").exists() {
            found.insert(name_below(top, &folder));
        }
        folders.extend(entries(&folder).into_iter().filter(|path| is_folder(path)));
    }
    found
}

/// Returns the crates of the package in a folder, by their files. A file that no other one declares is a crate.
pub fn crates(package: &Path) -> BTreeMap<String, Sources> {
    let mut files = Vec::new();
    let mut folders = vec![package.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if is_folder(&path) && !path.join("Cargo.toml").exists() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    // The files that cargo takes for crates come before those that they may declare.
    files.sort_by_cached_key(|path| {
        let place = ["lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
        (!place, path.ends_with("mod.rs"), path.components().count(), path.clone())
    });
    let (mut crates, mut declared) = (BTreeMap::new(), BTreeSet::new());
    for file in files {
        if !declared.contains(&file) {
            let mut sources = Sources::new();
            let folder = file.parent().expect("a folder").to_path_buf();
            read(&file, &[], &folder, &mut sources, &mut declared);
            crates.insert(name_below(package, &file), sources);
        }
    }
    crates
}

/// Reads a module, whose children are in this folder, and then these.
fn read(
    file: &Path,
    module: &[String],
    folder: &Path,
    sources: &mut Sources,
    declared: &mut BTreeSet<PathBuf>,
) {
    let tokens = tokens(&fs::read_to_string(file).expect("text"));
    for child in children(&tokens) {
        let (name, outer) = child.place.split_last().expect("a name");
        let folder = outer.iter().fold(folder.to_path_buf(), |folder, name| folder.join(name));
        let module: Vec<_> = module.iter().chain(&child.place).cloned().collect();
        let (files, folder) = match child.path {
            Some(path) => {
                let file = normal(&file.parent().expect("a folder").join(path));
                let folder = file.parent().expect("a folder").to_path_buf();
                (vec![file], folder)
            }
            None => {
                let inside = folder.join(name);
                (vec![folder.join(format!("{name}.rs")), inside.join("mod.rs")], inside)
            }
        };
        // A module for the checkers alone is not there in a published package.
        if let Some(file) = files.iter().find(|file| file.exists()) {
            declared.insert(file.clone());
            read(file, &module, &folder, sources, declared);
        }
    }
    sources.insert(module.to_vec(), tokens);
}

/// A module that has a file of its own.
struct Child {
    /// The inline modules around it, and its name.
    place: Vec<String>,
    /// Where its file is, if the source says so.
    path: Option<String>,
}

/// Returns the modules that a text declares, like `mod kick;`.
fn children(tokens: &[Token]) -> Vec<Child> {
    let mut children = Vec::new();
    let mut inline = Inline::default();
    for (at, token) in tokens.iter().enumerate() {
        inline.pass(tokens, at);
        if token == "mod" && tokens.get(at + 2).is_some_and(|end| end == ";") {
            let ends = |token: &Token| [";", "{", "}"].contains(&&**token);
            let begin = tokens[..at].iter().rposition(ends).map_or(0, |end| end + 1);
            let attributes = tokens[begin..at].windows(3);
            let path = attributes.rev().find(|three| three[0] == "path" && three[1] == "=");
            let place = inline.names().chain([&tokens[at + 1]]).cloned().collect();
            let path = path.map(|three| three[2].trim_matches('"').to_string());
            children.push(Child { place, path });
        }
    }
    children
}

/// The inline modules that are open at a place of a text.
#[derive(Default)]
pub struct Inline {
    /// Each with the depth of its brace.
    open: Vec<(String, usize)>,
    depth: usize,
}

impl Inline {
    /// Goes on by a token.
    pub fn pass(&mut self, tokens: &[Token], at: usize) {
        match &*tokens[at] {
            "{" => {
                self.depth += 1;
                if at > 1 && tokens[at - 2] == "mod" {
                    self.open.push((tokens[at - 1].clone(), self.depth));
                }
            }
            "}" => {
                self.open.pop_if(|(_, opened)| *opened == self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.open.iter().map(|(name, _)| name)
    }
}

/// Returns what is in a folder, without what has a name that programs do not show.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let shown = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    shown.map(|entry| entry.path()).collect()
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() && !path.is_symlink() && !path.ends_with("target")
}

/// Returns a path without the steps up to the folder above.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part.as_os_str() == ".." {
            true => drop(path.pop()),
            false => path.push(part),
        }
        path
    })
}

fn name_below(top: &Path, path: &Path) -> String {
    let name = path.strip_prefix(top).expect("a path below");
    name.to_str().expect("a name").replace('\\', "/")
}

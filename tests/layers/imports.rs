//! Who imports from whom.
//!
//! A path like `crate::shard::kick::execute` is an import by the file that names it, from the file of the longest
//! prefix that is a module; and so is a path that begins with a child of the module. Declarations like `mod kick;` do
//! not count.

use crate::sources::{Inline, Sources};
use crate::tokens::Token;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the faults in the imports of a crate: imports from above, and circles. The layers are its first modules,
/// from the top down. The others are below all layers, and may import each other; the root is above all.
pub fn faults(sources: &Sources, layers: &[&str]) -> Vec<String> {
    let imports_of: BTreeMap<_, _> =
        sources.iter().map(|(module, tokens)| (module, imports(module, tokens, sources))).collect();
    let height = |module: &[String]| match module.first() {
        None => layers.len() + 1,
        Some(first) => layers
            .iter()
            .position(|layer| layer == first)
            .map_or(0, |from_top| layers.len() - from_top),
    };
    let is_there = |layer: &&&str| sources.contains_key(&[layer.to_string()][..]);
    let missing = layers.iter().filter(|layer| !is_there(layer));
    let mut faults: Vec<String> =
        missing.map(|layer| format!("there is no layer {layer}")).collect();
    for (from, targets) in imports_of.iter().filter(|_| !layers.is_empty()) {
        for to in targets {
            let in_one_layer = !from.is_empty() && !to.is_empty() && from[0] == to[0];
            if !in_one_layer && height(to) >= height(from).max(1) {
                faults.push(format!("{} imports {}", name(from), name(to)));
            }
        }
    }
    // Drop files that import only from dropped files, or that only dropped files import from, until there are no more
    // of them. The files on a circle are left, and those between two circles.
    let mut left: BTreeSet<&Vec<String>> = imports_of.keys().copied().collect();
    loop {
        let imports_some =
            |module: &Vec<String>| imports_of[module].iter().any(|to| left.contains(to));
        let is_imported =
            |module: &Vec<String>| left.iter().any(|from| imports_of[*from].contains(module));
        let still = left.iter().copied().filter(|it| imports_some(it) && is_imported(it)).collect();
        if left == still {
            break;
        }
        left = still;
    }
    let circle: Vec<String> = left.iter().map(|module| name(module)).collect();
    if !circle.is_empty() {
        faults.push(format!("a circle goes through some of: {}", circle.join(", ")));
    }
    faults
}

fn name(module: &[String]) -> String {
    if module.is_empty() { "the root".into() } else { module.join("/") }
}

/// Returns the files that this one imports from.
fn imports(module: &[String], tokens: &[Token], sources: &Sources) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut inline = Inline::default();
    for (at, token) in tokens.iter().enumerate() {
        inline.pass(tokens, at);
        let here = || module.iter().chain(inline.names()).cloned();
        let base = match &**token {
            _ if at > 0 && tokens[at - 1] == "::" => continue,
            // No path follows, as in `pub(crate)` and `&self`.
            _ if tokens.get(at + 1).is_none_or(|next| next != "::") => continue,
            "crate" => Vec::new(),
            "self" => here().collect(),
            "super" => here().chain([token.clone()]).collect(),
            // Another crate or a name of this file, unless it is a child.
            child => here().chain([child.to_string()]).collect(),
        };
        if !["crate", "self", "super"].contains(&&**token) && !sources.contains_key(&base) {
            continue;
        }
        let mut paths = Vec::new();
        expand(tokens, at + 1, base, &mut paths);
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
fn expand(tokens: &[Token], at: usize, base: Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
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

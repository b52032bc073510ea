//! The sources of all packages are layered: each layer (a folder of modules, or a file) imports only from layers below
//! it. And no files import each other in a circle.
//!
//! The test reads the sources as text.

mod imports;
mod sources;
mod tokens;
mod twins;

use imports::faults;
use std::path::Path;

/// A package: its folder, and the layers of its crates, from the top down, by the file of the crate. The other crates
/// of the package have no layers: there, and inside of a layer, it is enough that there are no circles.
type Package = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const PACKAGES: [Package; 9] = [
    (
        "",
        &[(
            "src/lib.rs",
            &["durable", "filter", "snapshot", "backend", "shard", "journal", "table", "layout"],
        )],
    ),
    (
        "benches",
        &[(
            "src/main.rs",
            &[
                "waits",
                "durable",
                "growth",
                "windows",
                "loads",
                "peers",
                "many",
                "snapshots",
                "kit",
            ],
        )],
    ),
    ("benches/operations", &[]),
    ("cli", &[("src/main.rs", &["commands", "run", "unsaved", "lines", "state", "arguments"])]),
    ("fuzz", &[("fuzz_targets/snapshot.rs", &["pieces", "filters", "repair"])]),
    ("loom-tests", &[]),
    (
        "python",
        &[(
            "src/lib.rs",
            &[
                "filter", "bulk", "open", "hooks", "place", "fork", "items", "kept", "errors",
                "plan",
            ],
        )],
    ),
    ("redis", &[("src/lib.rs", &["commands", "request", "server", "set"])]),
    ("tests/random", &[]),
];

/// The packages that are here: all of them, or only the library, if it is a published one.
fn packages() -> impl Iterator<Item = &'static Package> {
    let is_published = top().join("Cargo.toml.orig").exists();
    PACKAGES.iter().filter(move |(folder, _)| folder.is_empty() || !is_published)
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_package_is_listed() {
    let listed = packages().map(|(folder, _)| (*folder).to_string()).collect();
    assert_eq!(sources::packages(top()), listed, "the folders of packages, and PACKAGES");
}

#[test]
fn layers_import_downwards_only_and_nothing_goes_in_circles() {
    let mut found = Vec::new();
    for (folder, with_layers) in packages() {
        let mut crates = sources::crates(&top().join(folder));
        assert!(!crates.is_empty(), "no sources in {folder}");
        for (file, layers) in *with_layers {
            let sources = crates.remove(*file).unwrap_or_else(|| panic!("no {file} in {folder}"));
            found
                .extend(faults(&sources, layers).iter().map(|it| format!("{folder}/{file}: {it}")));
        }
        for (file, sources) in crates {
            found.extend(faults(&sources, &[]).iter().map(|it| format!("{folder}/{file}: {it}")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What `CONTRIBUTING.md` calls by its place is there.
#[test]
fn the_map_names_files_that_are_there() {
    let Ok(text) = std::fs::read_to_string(top().join("CONTRIBUTING.md")) else {
        return assert!(top().join("Cargo.toml.orig").exists(), "no page, and not a published one");
    };
    let named = text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs"));
    let mut count = 0;
    for name in named.filter(|name| !name.contains(' ')) {
        let is_there = |folder: &str| top().join(folder).join(name).is_file();
        assert!(is_there("") || is_there("src"), "{name}");
        count += 1;
    }
    assert!(count > 30, "only {count} files are named");
}

//! Tests of the test: it finds faults in small made-up sources.

use crate::imports::faults;
use crate::sources::{self, Sources};
use crate::tokens::tokens;
use std::fs;
use std::path::Path;

fn sources_of(files: &[(&str, &str)]) -> Sources {
    let module =
        |path: &str| path.split('/').filter(|part| !part.is_empty()).map(String::from).collect();
    files.iter().map(|(path, text)| (module(path), tokens(text))).collect()
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
        ("low", "pub mod cellar; fn f() -> &str { \"crate::top\" } const C: char = '\"';"),
        ("low/cellar", "use super::Low; mod tests { use super::{Low, super::Low}; }"),
        ("ground", "use std::fmt; const TEXT: &str = r#\"\"crate::top\"\"#; /* crate::top */"),
    ];
    assert_eq!(faults_of(&files), [""; 0]);
}

#[test]
fn an_import_from_above_is_found() {
    for (text, fault) in [
        ("use crate::top::face::Face;", "low/cellar imports top/face"),
        ("fn f() { crate::top::face::f() }", "low/cellar imports top/face"),
        ("const C: [char; 2] = ['\"', '\\''];use crate::top;", "low/cellar imports top"),
        ("use crate::{low, top};", "low/cellar imports top"),
        ("use super::super::Top;", "low/cellar imports the root"),
        ("use crate::Top;", "low/cellar imports the root"),
    ] {
        let files = [("", ""), ("top", ""), ("top/face", ""), ("low", ""), ("low/cellar", text)];
        assert_eq!(faults_of(&files), [fault], "{text}");
    }
    let ground = [("", ""), ("top", ""), ("low", ""), ("ground", "use crate::low::f;")];
    assert_eq!(faults_of(&ground), ["ground imports low"]);
    assert_eq!(faults_of(&[("", ""), ("low", "")]), ["there is no layer top"]);
}

#[test]
fn a_circle_is_found() {
    for root in ["pub use low::cellar::Wine;", "fn f() { low::cellar::f() }"] {
        let files = [
            ("", root),
            ("top", ""),
            ("low", "fn f() { cellar::f() }"),
            ("low/cellar", "use crate::low::stairs::Down;"),
            ("low/stairs", "use crate::low::Wine;"),
        ];
        let circle = "a circle goes through some of: low, low/cellar, low/stairs";
        assert_eq!(faults_of(&files), [circle]);
    }
    let flat = sources_of(&[("", "fn f() { file::f() }"), ("file", "use crate::Name;")]);
    assert_eq!(faults(&flat, &[]), ["a circle goes through some of: the root, file"]);
}

#[test]
fn crates_and_packages_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in [
        ("Cargo.toml", ""),
        (
            "src/lib.rs",
            "#[cfg(test)]\n#[path = \"../shared/one.rs\"]\npub(crate) mod uno; mod two;",
        ),
        ("src/two.rs", "mod open { mod three; } mod not_here;"),
        ("src/two/open/three.rs", ""),
        ("shared/one.rs", "mod four; const TEXT: &str = \"mod five;\";"),
        ("shared/four/mod.rs", ""),
        ("shared/five.rs", ""),
        ("tests/flat.rs", ""),
        ("other/Cargo.toml", ""),
        ("other/src/main.rs", ""),
        ("built/Cargo.toml", ""),
        ("built/CACHEDIR.TAG", ""),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    assert_eq!(sources::packages(folder.path()), ["", "other"].map(String::from).into());
    let names = |package: &Path| -> Vec<String> {
        let modules = |of: Sources| of.into_keys().map(|it| it.join("/")).collect::<Vec<_>>();
        let crates = sources::crates(package).into_iter();
        crates.map(|(file, of)| format!("{file}: {}", modules(of).join(" "))).collect()
    };
    let crates =
        ["shared/five.rs: ", "src/lib.rs:  two two/open/three uno uno/four", "tests/flat.rs: "];
    assert_eq!(names(folder.path()), crates);
    assert_eq!(names(&folder.path().join("other")), ["src/main.rs: "]);
}

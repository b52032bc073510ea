//! Mutation tests of the models: each model fails on the mutants of koel that it is there for.
//!
//! A passing model proves something only if it can fail, and loom passes some models after it has explored next to
//! nothing. So the lists in `loom-tests/mutants` have a plausible mistake for each rule of the concurrent code, and
//! name the models that have to notice it, with the message that each gives. For each of them, `build.rs` writes a
//! test, which runs the mutant through the model in a process of its own.

use koel_under_loom::MUTANT;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

include!(concat!(env!("OUT_DIR"), "/tests.rs"));

/// Runs a mutant through a model, which has to fail with this message.
fn must_fail(model: &str, mutant: &str, message: &str) {
    let (succeeded, output) = run(model, &[(MUTANT, mutant), ("KOEL_LONG_TESTS", "1")]);
    assert!(!succeeded, "{model} does not notice that {mutant}:\n{output}");
    assert!(output.contains(message), "{mutant}: not for its own reason:\n{output}");
    println!("checked: 1 failures of models on a mutant");
}

/// Runs a model in a process of its own, if it is large. Each execution takes new memory from the system for
/// the stacks of its threads, and two models of one process wait for each other for that, three times as long as they
/// work.
pub fn alone(module: &str, test: &str, model: impl FnOnce()) {
    const ALONE: &str = "KOEL_MODEL_IS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return model();
    }
    let (_, module) = module.split_once("::").expect("the crate, and a module in it");
    let (succeeded, output) = run(&format!("{module}::{test}"), &[(ALONE, "1")]);
    assert!(succeeded, "{output}");
    output.lines().filter(|line| line.starts_with("checked: ")).for_each(|line| println!("{line}"));
}

/// Runs a model in a process of its own. Returns whether it passed, and what it said.
fn run(model: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let mut run = this_program();
    run.args(["--exact", model]).envs(variables.iter().copied()).env("RUST_BACKTRACE", "0");
    let Output { status, stdout, stderr } = run.output().expect("a process");
    let output = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let output = output.concat();
    assert!(output.contains("running 1 test"), "there is no model {model}:\n{output}");
    (status.success(), output)
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("the path of this program"))
}

/// The names of all tests.
fn tests() -> BTreeSet<String> {
    let list = this_program().args(["--list", "--format", "terse"]).output().expect("a process");
    let list = String::from_utf8(list.stdout).expect("text");
    list.lines().filter_map(|it| it.strip_suffix(": test")).map(String::from).collect()
}

#[test]
fn every_model_has_a_mutant() {
    let tests = tests();
    let models = tests.iter().map(|it| &**it).filter(|it| !it.starts_with("mutants::"));
    let without: Vec<_> = models.filter(|it| !MODELS.contains(it)).collect();
    assert_eq!(without, [""; 0], "these models fail on no mutant, so they may check nothing");
}

#[test]
fn the_readme_knows_the_number_of_mutants() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let page = fs::read_to_string(page).expect("the README");
    let told = format!("{MUTANTS} mutants");
    assert!(page.contains(&told), "the README does not tell of {told}");
}

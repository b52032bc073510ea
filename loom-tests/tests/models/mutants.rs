//! Mutation tests of the models: each mutant of koel has a model that fails on it.
//!
//! A passing model proves something only if it can fail, and loom passes some models after it has explored next to
//! nothing. So the lists in `loom-tests/mutants` have a plausible mistake for each rule of the concurrent code, and
//! `mutants!` after a model names those that this model has to notice, with the message that belongs to each. For each of
//! them, a process of its own runs the mutant through the model.

use koel_under_loom::{MUTANT, MUTANTS};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// `mutants! { model: "message" => [mutant, ...], ... }` makes a test of each mutant: the model fails on it with the
/// message.
macro_rules! mutants {
    ($model:ident: $($message:literal => [$($mutant:ident),+ $(,)?]),+ $(,)?) => {
        mod $model {
            $($(
                #[test]
                fn $mutant() {
                    crate::mutants::must_fail(module_path!(), stringify!($mutant), $message);
                }
            )+)+
        }
    };
}

/// Runs a mutant through the model that this module is named after.
pub fn must_fail(module: &str, mutant: &str, message: &str) {
    let (_, model) = module.split_once("::").expect("the crate, and a model in it");
    let (succeeded, output) = run(model, &[(MUTANT, mutant), ("KOEL_LONG_TESTS", "1")]);
    assert!(!succeeded, "{model} does not notice that {mutant}:\n{output}");
    assert!(output.contains(message), "{mutant}: not for its own reason:\n{output}");
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
fn every_mutant_has_a_model() {
    let tests = tests();
    // The test of a mutant is in a module that is named like its model.
    let parts = tests.iter().filter_map(|test| test.rsplit_once("::"));
    let killed: BTreeSet<_> = parts.filter(|(model, _)| tests.contains(*model)).collect();
    let names: BTreeSet<&str> = killed.iter().map(|(_, mutant)| *mutant).collect();
    let listed = BTreeSet::from_iter(MUTANTS.iter().copied());
    let missing: Vec<_> = names.symmetric_difference(&listed).collect();
    assert_eq!(
        missing, [&""; 0],
        "a mutant has no model, or a model names a mutant that no list has"
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let page = fs::read_to_string(page).expect("the README");
    let told = format!("{} mutants", listed.len());
    assert!(page.contains(&told), "the README does not tell of {told}");
}

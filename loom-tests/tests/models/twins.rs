//! Mutation tests of the models: for every rule, a twin of the crate breaks it, and the rule's model
//! has to fail on the twin.
//!
//! A passing model proves something only if it can fail, and loom passes some models after it has
//! explored next to nothing. So `rule!` in the sources has a plausible mistake beside each rule, and
//! `twins!` after a model lists the mistakes that this model has to notice, with the message that belongs
//! to each. Every twin is a process of its own, in which that one rule is broken and that one model runs.

use koel_under_loom::internals::BROKEN;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `twins! { model: "message" => [rule, ...], ... }` makes a test of each rule: broken, it lets the model
/// fail with the message.
macro_rules! twins {
    ($model:ident: $($message:literal => [$($rule:ident),+ $(,)?]),+ $(,)?) => {
        mod $model {
            $($(
                #[test]
                fn $rule() {
                    crate::twins::must_fail(module_path!(), stringify!($rule), $message);
                }
            )+)+
        }
    };
}

/// Runs the model that this module is named after, with this rule broken.
pub fn must_fail(module: &str, rule: &str, message: &str) {
    let (_, model) = module.split_once("::").expect("the crate, and a model in it");
    let (succeeded, output) = run(model, &[(BROKEN, rule), ("KOEL_LONG_TESTS", "1")]);
    assert!(!succeeded, "{model} does not notice that {rule}:\n{output}");
    assert!(output.contains(message), "{rule}: not for its own reason:\n{output}");
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

/// The rules that have a twin. A twin is a test within a module that is named like a model.
fn rules_of_twins() -> BTreeSet<String> {
    let list = this_program().args(["--list", "--format", "terse"]).output().expect("a process");
    let list = String::from_utf8(list.stdout).expect("text");
    let tests: BTreeSet<&str> = list.lines().filter_map(|it| it.strip_suffix(": test")).collect();
    let twins = tests.iter().filter_map(|test| test.rsplit_once("::"));
    twins.filter(|(model, _)| tests.contains(model)).map(|(_, rule)| rule.to_string()).collect()
}

/// A rule in the sources: what it is, and what it is where it is broken, without spaces.
struct Rule {
    name: String,
    file: PathBuf,
    right: String,
    mistake: String,
}

/// The source files, by their paths.
fn sources() -> BTreeMap<PathBuf, String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")];
    let mut sources = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources.insert(path.clone(), fs::read_to_string(path).expect("text"));
            }
        }
    }
    sources
}

/// All rules. One that is broken in several places comes as often.
fn rules(sources: &BTreeMap<PathBuf, String>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (file, text) in sources {
        let code: String = text.lines().filter(|it| !it.trim_start().starts_with("//")).collect();
        for (at, begin) in code.match_indices("rule!(") {
            let arguments = arguments(&code[at + begin.len()..]);
            let [name, right, mistake] = &arguments[..] else { panic!("{arguments:?} of a rule") };
            let name = name.trim_matches('"').to_string();
            let (right, mistake) = (right.clone(), mistake.clone());
            rules.push(Rule { name, file: file.clone(), right, mistake });
        }
    }
    rules
}

/// The arguments of a call, without spaces, given the text after its opening parenthesis.
fn arguments(text: &str) -> Vec<String> {
    let (mut arguments, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        match letter {
            ')' if depth == 0 => break,
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        arguments.last_mut().expect("one").extend(Some(letter).filter(|it| !it.is_whitespace()));
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

#[test]
fn every_rule_has_a_twin_and_every_twin_a_rule() {
    let twins = rules_of_twins();
    assert!(twins.len() > 100, "only {} twins found", twins.len());
    let rules: BTreeSet<String> = rules(&sources()).into_iter().map(|rule| rule.name).collect();
    let missing: Vec<_> = rules.symmetric_difference(&twins).collect();
    assert_eq!(missing, [""; 0], "these are a rule without a twin, or a twin without a rule");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let page = fs::read_to_string(page).expect("the README");
    let told = format!("breaks {} rules on purpose", rules.len());
    assert!(page.contains(&told), "the README does not say that it {told}");
}

/// At the head of a file, a table may list the orderings of its atomics, and which twin shows that one is needed.
#[test]
fn tables_of_orderings_tell_what_the_rules_say() {
    let sources = sources();
    let rules = rules(&sources);
    let mut listed = BTreeSet::new();
    let mut rows = 0;
    for (file, text) in &sources {
        for row in text.lines().filter_map(|line| line.strip_prefix("//! | ")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let Some((_, twins)) = row.split_once("Twin") else { continue };
            let [_, ordering, ..] = &cells[..] else { panic!("{}: {row}", file.display()) };
            for name in twins.split('`').skip(1).step_by(2).filter(|it| it.contains('_')) {
                let found: Vec<&Rule> = rules.iter().filter(|rule| rule.name == name).collect();
                assert!(!found.is_empty(), "{}: there is no rule {name}", file.display());
                let orderings: Vec<_> =
                    found.iter().filter_map(|rule| rule.right.strip_prefix("Ordering::")).collect();
                let told = orderings.iter().all(|right| ordering.contains(&format!("`{right}`")));
                assert!(told, "{}: {orderings:?} by the rule {name}, in {row}", file.display());
                listed.insert(name);
                rows += 1;
            }
        }
    }
    assert!(rows > 10, "only {rows} rows with twins found");
    for rule in rules.iter().filter(|rule| rule.right.starts_with("Ordering::")) {
        let Rule { name, file, mistake, .. } = rule;
        assert!(mistake.starts_with("Ordering::"), "{}: {name}", file.display());
        assert!(listed.contains(&**name), "{}: no table has {name}", file.display());
    }
}

/// Comments may name rules and functions. They name those that there are.
#[test]
fn comments_name_rules_that_there_are() {
    let sources = sources();
    let names: BTreeSet<String> = rules(&sources).into_iter().map(|rule| rule.name).collect();
    let all: String = sources.values().map(String::as_str).collect();
    for (file, text) in sources.iter().filter(|(file, _)| file.extension() == Some("rs".as_ref())) {
        let comments: Vec<&str> = text.lines().filter(|it| it.contains("//")).collect();
        for name in comments.join("\n").split('`').skip(1).step_by(2) {
            let is_name = |it: char| it.is_ascii_lowercase() || it == '_';
            if name.matches('_').count() > 3 && name.chars().all(is_name) {
                let is_known = names.contains(name) || all.contains(&format!("fn {name}"));
                assert!(is_known, "{}: what is {name}?", file.display());
            }
        }
    }
}

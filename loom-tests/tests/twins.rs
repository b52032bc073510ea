//! Every rule has a twin that breaks it, and the model of the rule fails on the twin.
//!
//! A model that passes shows something only if it can fail, and loom passes some models after
//! having looked at next to nothing. So each twin here copies the crate's sources, replaces a few
//! lines of the copy by what someone might have written instead, and runs one model on it, in a
//! process of its own. The model has to fail, and with the message that belongs to the rule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Twin {
    name: &'static str,
    /// A file in `src`, lines that are there exactly once, and what they become.
    edits: &'static [(&'static str, &'static str, &'static str)],
    model: &'static str,
    message: &'static str,
}

const MISSED: &str = "a lookup missed an item that was moving";
const STORE: &str = "self.words[bucket.0 as usize].store(word, Ordering::Release)";
const TWO_STRIPES: &str = "lookups::an_item_that_moves_to_another_stripe_is_found";

macro_rules! twins {
    ($($name:ident { edits: $edits:expr, model: $model:expr, message: $message:expr $(,)? })*) => {
        $(#[test]
        fn $name() {
            fails_as_it_should(&Twin {
                name: stringify!($name),
                edits: &$edits,
                model: $model,
                message: $message,
            });
        })*
    };
}

twins! {
    // Nothing is changed, and the model passes: what fails below fails because of its edit.
    the_original_passes {
        edits: [],
        model: TWO_STRIPES,
        message: "test result: ok. 1 passed",
    }

    // Readers.
    a_miss_is_not_validated {
        edits: [("shard.rs", "stamps.still_hold().then_some(false)", "let _ = stamps; Some(false)")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    each_bucket_is_validated_by_itself {
        edits: [(
            "shard.rs",
            "        let stamps = Stamps::take(self.stripe(place.first), self.stripe(place.second));
        let (first, second) = (self.read(place.first), self.read(place.second));
        if self.holds(first, second, place.fp) {
            return Some(true);
        }
        stamps.still_hold().then_some(false)",
            "        let alone = |bucket| {
            let stamps = Stamps::take(self.stripe(bucket), self.stripe(bucket));
            if !self.geometry.lanes().holding(self.read(bucket), place.fp).is_empty() {
                return Some(true);
            }
            stamps.still_hold().then_some(false)
        };
        Some(alone(place.first)? || alone(place.second)?)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    an_odd_version_is_not_noticed {
        edits: [("stripe.rs", "changed | moving == 0", "let _ = moving; changed == 0")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    words_are_loaded_relaxed {
        edits: [(
            "shard.rs",
            "self.words[bucket.0 as usize].load(Ordering::Acquire)",
            "self.words[bucket.0 as usize].load(Ordering::Relaxed)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    the_first_version_is_read_relaxed {
        edits: [
            ("stripe.rs", "first.version.load(Ordering::Acquire)", "first.version.load(Ordering::Relaxed)"),
            ("stripe.rs", "second.version.load(Ordering::Acquire)", "second.version.load(Ordering::Relaxed)"),
        ],
        model: TWO_STRIPES,
        message: MISSED,
    }
    a_lookup_that_gives_up_says_no {
        edits: [(
            "shard.rs",
            "self.contains_locked(&self.lock(place), place)",
            "false",
        )],
        model: "lookups::a_lookup_that_gives_up_looking_is_right_under_the_locks",
        message: MISSED,
    }
    copies_are_counted_without_the_locks {
        edits: [(
            "shard.rs",
            "        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        lanes.holding(first, place.fp).len()",
            "        let (first, second) = (self.read(place.first), self.read(place.second));
        lanes.holding(first, place.fp).len()",
        )],
        model: "lookups::an_item_that_moves_is_counted_once",
        message: "a moving item was not counted once",
    }

    // Movers.
    words_are_stored_relaxed {
        edits: [("shard.rs", STORE, "self.words[bucket.0 as usize].store(word, Ordering::Relaxed)")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    only_the_mover_orders_its_stores {
        edits: [
            ("shard.rs", STORE, "self.words[bucket.0 as usize].store(word, Ordering::Relaxed)"),
            (
                "stripe.rs",
                "        Moving { locks: self }",
                "        loom::sync::atomic::fence(Ordering::Release);
        Moving { locks: self }",
            ),
        ],
        model: "lookups::an_item_is_found_whoever_wrote_last_where_it_was",
        message: MISSED,
    }
    a_version_is_outdated_relaxed {
        edits: [(
            "stripe.rs",
            "stripe.version.store(even + 2, Ordering::Release)",
            "stripe.version.store(even + 2, Ordering::Relaxed)",
        )],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }
    a_clear_outdates_no_reader {
        edits: [(
            "shard.rs",
            "        locked.outdate();
        for index",
            "        for index",
        )],
        model: "lookups::a_clear_takes_an_item_away_at_one_moment",
        message: "a cleared item came back",
    }
    the_version_ends_relaxed {
        edits: [(
            "stripe.rs",
            "stripe.version.store(odd + 1, Ordering::Release)",
            "stripe.version.store(odd + 1, Ordering::Relaxed)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    versions_stay_as_they_are {
        edits: [("kick.rs", "(words.len() > 1)", "(words.len() > 9)")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    the_version_changes_only_after_the_move {
        edits: [
            ("kick.rs", "    let _moving = (words.len() > 1).then(|| locked.moving());\n", ""),
            (
                "kick.rs",
                "    shard.stripe(path.end).add_items(&locked, 1);",
                "    drop(locked.moving());\n    shard.stripe(path.end).add_items(&locked, 1);",
            ),
        ],
        model: TWO_STRIPES,
        message: MISSED,
    }
    a_path_is_walked_hand_over_hand {
        edits: [(
            "kick.rs",
            "    let _moving = (words.len() > 1).then(|| locked.moving());
    for (bucket, word) in words.into_iter().rev() {
        shard.write(&locked, bucket, word);
    }
    shard.stripe(path.end).add_items(&locked, 1);",
            "    drop(locked);
    for (bucket, word) in words.into_iter().rev() {
        let locked = shard.lock_one(bucket);
        let _moving = locked.moving();
        shard.write(&locked, bucket, word);
    }
    shard.stripe(path.end).add_items(&shard.lock_one(path.end), 1);",
        )],
        model: "exclusion::a_removed_item_leaves_no_phantom",
        message: "a removed item is still there",
    }
    a_copy_is_removed_like_the_last_one {
        edits: [(
            "shard.rs",
            "if in_first.is_some() && in_second.is_some() {",
            "if false {",
        )],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }

    // Writers among each other.
    the_path_is_not_checked_again {
        edits: [
            (
                "kick.rs",
                "        if shard.geometry().alternate(step.bucket, leaving) != next || again {",
                "        if again {",
            ),
            (
                "kick.rs",
                "    let lane = lanes.empty(word).first()?;",
                "    let lane = lanes.empty(word).first().or(lanes.taken(word).first())?;",
            ),
        ],
        model: "exclusion::two_kickers_on_one_path_lose_nothing",
        message: "a kick lost an item",
    }
    a_path_may_come_back_to_a_bucket {
        edits: [("kick.rs", " != next || again {", " != next || (again && false) {")],
        model: "exclusion::a_path_that_comes_back_to_a_bucket_is_not_walked",
        message: "a detour was walked",
    }
    a_search_looks_into_a_bucket_once {
        edits: [(
            "path.rs",
            "        if !lanes.empty(word).is_empty() {
            return",
            "        if moves > 0 && false {
            return",
        )],
        model: "exclusion::room_that_appears_during_the_search_is_found",
        message: "refused though there was room at every moment",
    }
    the_loser_of_the_last_room_does_not_look {
        edits: [(
            "kick.rs",
            "    if shard.contains(place) { Ok(false) } else { Err(Full::new()) }",
            "    Err(Full::new())",
        )],
        model: "winners::the_loser_of_the_last_room_is_not_refused",
        message: "refused though the item is in",
    }
    the_newcomer_is_not_looked_for_again_on_the_path {
        edits: [(
            "kick.rs",
            "copies == Copies::UnlessPresent && shard",
            "copies == Copies::UnlessPresent && false && shard",
        )],
        model: "winners::one_call_wins_on_the_kick_path",
        message: "not exactly one call added the item",
    }
    the_newcomers_buckets_are_not_locked_on_the_path {
        edits: [
            ("kick.rs", "(own.into_iter().chain(on_path))", "(on_path)"),
            ("kick.rs", "    let own = [place.first, place.second];\n", ""),
            (
                "shard.rs",
                "        debug_assert!(locked.include(self.stripe(bucket)));
        read_owned(&self.words[bucket.0 as usize])",
                "        match locked.include(self.stripe(bucket)) {
            true => read_owned(&self.words[bucket.0 as usize]),
            false => self.read(bucket),
        }",
            ),
        ],
        model: "winners::one_call_wins_on_the_kick_path",
        message: "not exactly one call added the item",
    }
    absence_is_decided_before_the_locks {
        edits: [(
            "shard.rs",
            "        if self.holds(first, second, place.fp) {
            return Some(false);
        }
        // The roomier",
            "        // The roomier",
        )],
        model: "winners::one_call_wins_where_there_is_room",
        message: "not exactly one call added the item",
    }
    absence_is_decided_under_one_lock {
        edits: [(
            "shard.rs",
            "        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        if self.holds(first, second, place.fp) {
            return Some(false);
        }
        // The roomier",
            "        let (first, second) = (self.read(place.first), self.read(place.second));
        let roomier_first = lanes.empty(first).len() >= lanes.empty(second).len();
        let locked = self.lock_one(if roomier_first { place.first } else { place.second });
        if self.holds(first, second, place.fp) {
            return Some(false);
        }
        // The roomier",
        )],
        model: "winners::one_call_wins_under_the_locks",
        message: "not exactly one call added the item",
    }
    a_remove_locks_only_the_bucket_it_clears {
        edits: [(
            "shard.rs",
            "        let locked = self.lock(place);
        let (first, second) = self.read_both(&locked, place);
        let in_first",
            "        let (first, second) = (self.read(place.first), self.read(place.second));
        let is_in_first = !lanes.holding(first, place.fp).is_empty();
        let locked = self.lock_one(if is_in_first { place.first } else { place.second });
        let in_first",
        )],
        model: "exclusion::a_removed_item_leaves_no_phantom",
        message: "a removed item is still there",
    }
    two_stripes_are_locked_as_they_come {
        edits: [
            ("stripe.rs", "&stripes[a.min(b) as usize]", "&stripes[a as usize]"),
            ("stripe.rs", "&stripes[a.max(b) as usize]", "&stripes[b as usize]"),
        ],
        model: "exclusion::removes_that_start_from_either_side_do_not_wait_for_each_other",
        message: "deadlock",
    }
    the_stripes_of_a_path_are_locked_as_they_come {
        edits: [("stripe.rs", "        indices.sort_unstable();\n", "        indices.reverse();\n")],
        model: "exclusion::kickers_in_opposite_directions_do_not_wait_for_each_other",
        message: "deadlock",
    }
    a_lock_is_leaked {
        edits: [(
            "shard.rs",
            "            (None, None) => return false,",
            "            (None, None) => { std::mem::forget(locked); return false }",
        )],
        model: "exclusion::a_remove_of_what_is_absent_lets_others_in",
        message: "deadlock",
    }
    a_clear_goes_stripe_by_stripe {
        edits: [(
            "shard.rs",
            "        let locked = Many::<SHARD_STRIPES>::lock(self.stripes, all);
        locked.outdate();
        for index in 0..self.words.len() as u32 {
            let bucket = Bucket(index);
",
            "        let _: arrayvec::ArrayVec<u32, SHARD_STRIPES> = all;
        for index in 0..self.words.len() as u32 {
            let bucket = Bucket(index);
            let locked = self.lock_one(bucket);
",
        )],
        model: "exclusion::nothing_escapes_a_clear",
        message: "an item escaped the clear",
    }

    // The lock itself.
    the_lock_is_taken_relaxed {
        edits: [(
            "lock.rs",
            "compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)",
            "compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)",
        )],
        model: "exclusion::two_inserts_into_one_bucket_both_stay",
        message: "Causality violation",
    }
    the_lock_is_released_relaxed {
        edits: [("lock.rs", "store(false, Ordering::Release)", "store(false, Ordering::Relaxed)")],
        model: "exclusion::two_inserts_into_one_bucket_both_stay",
        message: "Causality violation",
    }
    the_lock_does_not_lock {
        edits: [
            ("lock.rs", "if !self.try_take() {", "if !self.try_take() && false {"),
            (
                "sync.rs",
                "        // SAFETY: loom itself checks, and panics, when a store is not ordered before this.
        unsafe { word.unsync_load() }",
                "        word.load(Ordering::Relaxed)",
            ),
            (
                "sync.rs",
                "        // SAFETY: as above.
        unsafe { word.unsync_load() }",
                "        word.load(Ordering::Relaxed)",
            ),
        ],
        model: "exclusion::two_inserts_into_one_bucket_both_stay",
        message: "an insert overwrote another",
    }
}

/// The workspace of a twin: the crate's sources and the models, and nothing that only the library
/// or its benches need.
const MANIFEST: &str = "\
[workspace]
members = [\"loom-tests\"]
resolver = \"3\"

[profile.dev]
opt-level = 1
debug = 0
";

fn fails_as_it_should(twin: &Twin) {
    let copy = copy_of_the_sources(twin);
    for (file, original, replacement) in twin.edits {
        let file = copy.join("src").join(file);
        let text = fs::read_to_string(&file).unwrap();
        let found = text.matches(original).count();
        assert_eq!(found, 1, "{}: these lines are there {found} times:\n{original}", twin.name);
        fs::write(&file, text.replace(original, replacement)).unwrap();
    }
    let run = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--offline", "--test", "models", "--"])
        .args(["--exact", twin.model])
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", scratch().join("target"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("cargo runs");
    let output = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let output = output.concat();
    assert_eq!(run.status.success(), twin.edits.is_empty(), "{}:\n{output}", twin.name);
    assert!(output.contains(twin.message), "{}: not for its own reason:\n{output}", twin.name);
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("twins")
}

fn copy_of_the_sources(twin: &Twin) -> PathBuf {
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = scratch().join(twin.name);
    let models = "loom-tests/tests/models";
    for folder in ["src", models] {
        let _ = fs::remove_dir_all(copy.join(folder));
        fs::create_dir_all(copy.join(folder)).unwrap();
        for entry in fs::read_dir(original.join(folder)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.join(folder).join(entry.file_name())).unwrap();
        }
    }
    for file in ["loom-tests/build.rs", "Cargo.lock"] {
        fs::copy(original.join(file), copy.join(file)).unwrap();
    }
    // To cargo, packages of one name in one target folder are one package.
    let manifest = fs::read_to_string(original.join("loom-tests/Cargo.toml")).unwrap();
    let name = format!("name = \"{}\"", twin.name);
    let manifest = manifest.replace("name = \"loom-tests\"", &name);
    fs::write(copy.join("loom-tests/Cargo.toml"), manifest).unwrap();
    fs::write(copy.join("Cargo.toml"), MANIFEST).unwrap();
    copy
}

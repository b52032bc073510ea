//! Mutation tests of the models: for every rule, a twin of the crate breaks it, and the rule's
//! model has to fail on the twin.
//!
//! A passing model proves something only if it can fail, and loom passes some models after it has
//! explored next to nothing. So each test here copies the crate's sources, replaces a few lines of
//! the copy with a plausible mistake, and runs one model on it in a process of its own. The model
//! has to fail, with the message that belongs to the rule.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Twin {
    name: &'static str,
    /// A file in `src`, lines that occur in it exactly once, and their replacement.
    edits: &'static [(&'static str, &'static str, &'static str)],
    model: &'static str,
    message: &'static str,
}

const MISSED: &str = "a lookup missed an item that was moving";
const NEVER_THERE: &str = "a lookup found an item that was never there";
const STORE: &str = "self.words[word].store(value, Ordering::Release)";
const TWO_STRIPES: &str = "lookups::an_item_that_moves_to_another_stripe_is_found";

const SPLIT: &str = "growth::an_item_is_found_while_its_shard_is_split";
const MISSED_IN_SPLIT: &str = "a lookup missed an item of a shard that was split";
const LOST_IN_SPLIT: &str = "an item is not there once after a split";

const COPIES_BY_STRIPES: (&str, &str, &str) = (
    "shard/whole.rs",
    "        let locked = self.lock_all()?;
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
",
    "        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            let locked = self.lock_one(Bucket((word - self.base) as u32))?;
",
);
const SAVE: &str = "snapshots::an_item_is_saved_once_while_its_shard_is_split";

const MISSED_IN_ITS_WINDOW: &str = "a lookup missed an item that was within its window";
const EXPIRES_FROM_WIDE: &str =
    "forgetting::a_lane_in_which_an_item_expired_is_not_taken_for_a_third_item";

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
    // Without an edit, the model passes. So the twins below fail because of their edits.
    the_original_passes {
        edits: [],
        model: TWO_STRIPES,
        message: "test result: ok. 1 passed",
    }

    // Readers.
    a_miss_is_not_validated {
        edits: [("shard/look.rs", "stamp.still_hold() && self", "(stamp.still_hold() || true) && self")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    each_bucket_is_validated_by_itself {
        edits: [(
            "shard/look.rs",
            "        let stamp = self.stamp(place);
        let (first, second) = (self.read(place.first), self.read(place.second));
        let holds = || stamp.still_hold() && self.lease.check().is_ok();
        // Where a hit waits for this too, it comes first: so what compares needs no registers yet.
        if !(L::LASTING || L::WIDE) {
            return holds().then(|| self.matches(place, first, second));
        }
        let found = self.matches(place, first, second);
        if found && self.hits_last() {
            return Some(true);
        }
        holds().then_some(found)",
            "        let alone = |bucket| {
            let stamp = self.table.stripes().stamp(self.stripe(bucket));
            if !self.lanes().holding::<false>(self.read(bucket), place.fp).is_empty() {
                return Some(true);
            }
            stamp.still_holds().then_some(false)
        };
        Some(alone(place.first)? || alone(place.second)?)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    an_odd_version_is_not_noticed {
        edits: [("table/stripe.rs", "changed | moving == 0", "let _ = moving; changed == 0")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    words_are_loaded_relaxed {
        edits: [(
            "table/mod.rs",
            "word.load(Ordering::Acquire)",
            "word.load(Ordering::Relaxed)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    the_first_version_is_read_relaxed {
        edits: [
            ("table/stripe.rs", "version.load(Ordering::Acquire)", "version.load(Ordering::Relaxed)"),
        ],
        model: TWO_STRIPES,
        message: MISSED,
    }
    a_lookup_that_gives_up_says_no {
        edits: [(
            "shard/look.rs",
            "self.contains_locked(&self.lock(place)?, place)",
            "false",
        )],
        model: "lookups::a_lookup_that_gives_up_looking_is_right_under_the_locks",
        message: MISSED,
    }
    copies_are_counted_without_the_locks {
        edits: [(
            "shard/look.rs",
            "        Ok(self.count_locked(&self.lock(place)?, place))",
            "        let (first, second) = (self.read(place.first), self.read(place.second));
        let holding = |word| self.lease.holding(self.lanes(), word, place.fp).len();
        Ok(holding(first) + holding(second))",
        )],
        model: "lookups::an_item_that_moves_is_counted_once",
        message: "a moving item was not counted once",
    }

    // Threads that move items.
    words_are_stored_relaxed {
        edits: [("table/mod.rs", STORE, "self.words[word].store(value, Ordering::Relaxed)")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    only_the_mover_orders_its_stores {
        edits: [
            ("table/mod.rs", STORE, "self.words[word].store(value, Ordering::Relaxed)"),
            (
                "table/stripe.rs",
                "        Moving { stripes: self, which }",
                "        loom::sync::atomic::fence(Ordering::Release);
        Moving { stripes: self, which }",
            ),
        ],
        model: "lookups::an_item_is_found_whoever_wrote_last_where_it_was",
        message: MISSED,
    }
    a_version_is_outdated_relaxed {
        edits: [(
            "table/stripe.rs",
            "self.versions[stripe].store(even + 2, Ordering::Release)",
            "self.versions[stripe].store(even + 2, Ordering::Relaxed)",
        )],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }
    a_clear_outdates_no_reader {
        edits: [(
            "shard/whole.rs",
            "            self.table.stripes().outdate(locked, stripe);",
            "            let _ = stripe;",
        )],
        model: "lookups::a_clear_takes_an_item_away_at_one_moment",
        message: "a cleared item came back",
    }
    the_version_ends_relaxed {
        edits: [(
            "table/stripe.rs",
            "self.stripes.versions[stripe].store(odd + 1, Ordering::Release)",
            "self.stripes.versions[stripe].store(odd + 1, Ordering::Relaxed)",
        )],
        model: TWO_STRIPES,
        message: MISSED,
    }
    versions_stay_as_they_are {
        edits: [("shard/kick.rs", "(words.len() > 1 || ends_early)", "(words.len() > 9)")],
        model: TWO_STRIPES,
        message: MISSED,
    }
    the_version_changes_only_after_the_move {
        edits: [
            ("shard/kick.rs", "    let _moving = (words.len() > 1 || ends_early).then(|| shard.moving(&locked, moved));\n", "    let _ = &moved;\n"),
            (
                "shard/kick.rs",
                "    if counts {",
                "    drop(shard.moving(&locked, &stripes));\n    if counts {",
            ),
        ],
        model: TWO_STRIPES,
        message: MISSED,
    }
    a_path_is_walked_hand_over_hand {
        edits: [(
            "shard/kick.rs",
            "    for &(bucket, words) in words.iter().rev() {
        shard.write(&locked, bucket, words);
    }
    if counts {
        shard.add_items(&locked, last.map_or(path.end(), |step| step.bucket), 1);
    }",
            "    let _ = counts;
    drop(_moving);
    drop(locked);
    for &(bucket, words) in words.iter().rev() {
        let locked = shard.lock_one(bucket)?;
        let stripes = shard.stripes::<1>([bucket]);
        let _moving = shard.moving(&locked, &stripes);
        shard.write(&locked, bucket, words);
    }
    shard.add_items(&shard.lock_one(path.end())?, path.end(), 1);",
        )],
        model: "exclusion::a_removed_item_leaves_no_phantom",
        message: "a removed item is still there",
    }
    a_copy_is_removed_like_the_last_one {
        edits: [(
            "shard/write.rs",
            "if in_first.is_some() && in_second.is_some() {",
            "if false {",
        )],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }

    a_move_changes_the_version_of_one_stripe_only {
        edits: [
            (
                "table/stripe.rs",
                "        for &stripe in &which.ascending {
            debug_assert!(locked.include(self, stripe));
            let even",
                "        for &stripe in which.ascending.iter().take(1) {
            debug_assert!(locked.include(self, stripe));
            let even",
            ),
            (
                "table/stripe.rs",
                "for &stripe in &self.which.ascending {",
                "for &stripe in self.which.ascending.iter().take(1) {",
            ),
        ],
        model: TWO_STRIPES,
        message: MISSED,
    }
    a_copy_that_goes_outdates_one_stripe_only {
        edits: [("shard/write.rs", "for bucket in [place.first, place.second] {", "for bucket in [place.first] {")],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }

    a_version_stays_odd {
        edits: [("table/stripe.rs", "store(odd + 1, Ordering::Release)", "store(odd + 2, Ordering::Release)")],
        model: TWO_STRIPES,
        message: "a version stayed odd",
    }
    a_copy_in_the_same_stripe_outdates_nobody {
        edits: [(
            "shard/write.rs",
            "if in_first.is_some() && in_second.is_some() {",
            "if in_first.is_some() && in_second.is_some() && self.stripe(place.first) != self.stripe(place.second) {",
        )],
        model: "lookups::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed the copy that stayed",
    }

    // Wide buckets.
    a_hit_in_a_wide_bucket_needs_no_stamp {
        edits: [("shard/look.rs", "L::LASTING && !L::WIDE", "L::LASTING")],
        model: "wide::a_lane_that_is_used_again_is_not_taken_for_a_third_item",
        message: NEVER_THERE,
    }
    a_removal_from_a_wide_bucket_changes_no_version {
        edits: [(
            "shard/write.rs",
            "L::WIDE.then(|| self.stripes::<2>",
            "false.then(|| self.stripes::<2>",
        )],
        model: "wide::a_lane_that_is_used_again_is_not_taken_for_a_third_item",
        message: NEVER_THERE,
    }
    a_removal_from_a_wide_bucket_outdates_only_if_a_copy_is_elsewhere {
        edits: [(
            "shard/write.rs",
            "L::WIDE.then(|| self.stripes::<2>",
            "false.then(|| self.stripes::<2>",
        )],
        model: "wide::a_copy_that_comes_while_another_goes_is_found",
        message: "a lookup missed an item that was there",
    }
    the_first_word_is_stored_before_the_second {
        edits: [(
            "shard/mod.rs",
            "        if L::WIDE {
            self.table.write(locked, word + 1, tails);
        }
        self.table.write(locked, word, heads);",
            "        self.table.write(locked, word, heads);
        if L::WIDE {
            self.table.write(locked, word + 1, tails);
        }",
        )],
        model: "wide::an_item_that_arrives_is_not_taken_for_one_with_its_head",
        message: NEVER_THERE,
    }
    a_wide_shard_is_cleared_without_a_version {
        edits: [(
            "shard/whole.rs",
            "L::WIDE.then(|| self.moving(locked, &all))",
            "false.then(|| self.moving(locked, &all))",
        )],
        model: "wide::an_item_that_is_cleared_is_not_taken_for_another",
        message: NEVER_THERE,
    }
    a_kick_in_wide_buckets_changes_no_version {
        edits: [("shard/kick.rs", "(words.len() > 1 || ends_early)", "(words.len() > 9)")],
        model: "wide::an_item_that_moves_is_not_taken_for_another",
        message: NEVER_THERE,
    }
    second_words_are_loaded_relaxed {
        edits: [(
            "table/mod.rs",
            "load(&self.words[word])",
            "self.words[word].load(if word % 2 == 1 { Ordering::Relaxed } else { Ordering::Acquire })",
        )],
        model: "wide::a_lane_that_is_used_again_is_not_taken_for_a_third_item",
        message: NEVER_THERE,
    }
    second_words_of_a_growing_filter_are_loaded_relaxed {
        edits: [("table/span.rs", "load(self.word(true, bucket, 1))", "self.word(true, bucket, 1).load(crate::sync::Ordering::Relaxed)")],
        model: "wide::an_item_is_not_taken_for_another_in_the_middle_of_a_split",
        message: "a lookup found what is not there",
    }
    second_words_are_stored_relaxed {
        edits: [(
            "table/mod.rs",
            STORE,
            "self.words[word].store(value, if word % 2 == 1 { Ordering::Relaxed } else { Ordering::Release })",
        )],
        model: "wide::a_lane_that_is_used_again_is_not_taken_for_a_third_item",
        message: NEVER_THERE,
    }
    a_wide_shard_is_split_without_versions {
        edits: [(
            "room/growing/split.rs",
            "    let _moving = shard.moving(locked, &stripes);\n",
            "    let _ = &stripes;\n",
        )],
        model: "wide::an_item_is_not_taken_for_another_in_the_middle_of_a_split",
        message: "a lookup found what is not there",
    }

    // Batches.
    a_batch_moves_without_versions {
        edits: [("shard/kick.rs", "(words.len() > 1 || ends_early)", "(words.len() > 9)")],
        model: "batches::a_reader_finds_what_a_batch_moves",
        message: MISSED,
    }
    a_batch_looks_first_and_inserts_then {
        edits: [(
            "filter/batch/bulk.rs",
            "|(item, ahead)| answer(item, O::at(shards, shards.fetched(ahead))));",
            "|(item, ahead)| {
                use crate::room::shards::{Contains, Insert, Remove};
                let at = shards.fetched(ahead);
                let there = Contains::at::<WIDE, S>(shards, at);
                Insert::at::<WIDE, S>(shards, at).expect(\"there is room\");
                answer(item, O::at(shards, at));
                let _ = there && !Remove::at::<WIDE, S>(shards, at);
            });",
        )],
        model: "batches::each_item_of_racing_batches_has_one_winner",
        message: "not one winner for each item",
    }
    a_batch_does_not_lock {
        edits: [
            ("table/lock.rs", "if !self.try_take() {", "if !self.try_take() && false {"),
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
        model: "batches::a_batch_and_a_single_writer_keep_each_others_items",
        message: "an item of the batch is not there once",
    }

    // Writers against writers.
    the_path_is_not_checked_again {
        edits: [
            (
                "shard/kick.rs",
                "        if shard.alternate(step.bucket, leaving) != next {",
                "        if false {",
            ),
            (
                "shard/kick.rs",
                "    let lane = lanes.empty(words.heads).first()?;",
                "    let lane = lanes.empty(words.heads).first().or(lanes.taken(words.heads).first())?;",
            ),
        ],
        model: "exclusion::two_kickers_on_one_path_lose_nothing",
        message: "a kick lost an item",
    }
    a_path_may_come_back_to_a_bucket {
        edits: [("shard/path.rs", "is_simple.then_some(", "(is_simple || true).then_some(")],
        model: "exclusion::a_path_that_comes_back_to_a_bucket_is_not_walked",
        message: "a detour was walked",
    }
    a_search_looks_into_a_bucket_once {
        edits: [(
            "shard/path.rs",
            "        if !lanes.empty(word).is_empty() {
            return Some(node)",
            "        if moves > 0 && false {
            return Some(node)",
        )],
        model: "exclusion::room_that_appears_during_the_search_is_found",
        message: "refused though there was room at every moment",
    }
    the_loser_of_the_last_room_does_not_look {
        edits: [(
            "shard/kick.rs",
            "    if shard.contains_locked(&locked, place) {",
            "    if false && shard.contains_locked(&locked, place) {",
        )],
        model: "winners::the_loser_of_the_last_room_is_not_refused",
        message: "refused though the item is in",
    }
    a_refusal_is_decided_without_the_locks {
        edits: [(
            "shard/kick.rs",
            "    let locked = shard.lock(place).map_err(Refusal::Lapsed)?;
    if shard.contains_locked(&locked, place) {",
            "    if shard.contains(place).map_err(Refusal::Lapsed)? {",
        )],
        model: "winners::nobody_is_refused_while_the_item_comes_in",
        message: "refused though the item comes in",
    }
    a_search_ends_in_a_copy {
        edits: [(
            "shard/kick.rs",
            "match walk_near(shard, place, Copies::UnlessPresent)?",
            "match walk_near(shard, place, Copies::Add)?",
        )],
        model: "winners::one_call_wins_after_a_search",
        message: "not exactly one call added the item",
    }
    a_search_that_goes_far_ends_in_a_copy {
        edits: [
            (
                "shard/kick.rs",
                "match walk_near(shard, place, Copies::UnlessPresent)?",
                "match Outcome::Stale",
            ),
            (
                "shard/kick.rs",
                "match walk(shard, &path, place, Copies::UnlessPresent).map_err",
                "match walk(shard, &path, place, Copies::Add).map_err",
            ),
        ],
        model: "winners::one_call_wins_after_a_search",
        message: "not exactly one call added the item",
    }
    the_newcomer_is_not_looked_for_again_on_the_path {
        edits: [(
            "shard/kick.rs",
            "copies == Copies::UnlessPresent && shard",
            "copies == Copies::UnlessPresent && false && shard",
        )],
        model: "winners::one_call_wins_on_the_kick_path",
        message: "not exactly one call added the item",
    }
    the_newcomers_buckets_are_not_locked_on_the_path {
        edits: [
            ("shard/kick.rs", "if copies == Copies::UnlessPresent {", "if copies == Copies::UnlessPresent && false {"),
            (
                "table/mod.rs",
                "        debug_assert!(locked.include(&self.stripes, self.stripe_of_word(word)));
        read_owned(&self.words[word])",
                "        match locked.include(&self.stripes, self.stripe_of_word(word)) {
            true => read_owned(&self.words[word]),
            false => self.read(word),
        }",
            ),
        ],
        model: "winners::one_call_wins_on_the_kick_path",
        message: "not exactly one call added the item",
    }
    absence_is_decided_before_the_locks {
        edits: [(
            "shard/write.rs",
            "        if self.holds(first, second, place.fp) {
            return Ok(Some(false));
        }
",
            "",
        )],
        model: "winners::one_call_wins_where_there_is_room",
        message: "not exactly one call added the item",
    }
    absence_is_decided_under_one_lock {
        edits: [(
            "shard/write.rs",
            "        let locked = self.lock(place)?;
        let (first, second) = self.read_both(&locked, place);
        if self.holds(first, second, place.fp) {
            return Ok(Some(false));",
            "        let read = |bucket| self.read_rest(bucket, self.read(bucket));
        let (first, second) = (read(place.first), read(place.second));
        let locked = self.lock_one(self.roomier(place, first.heads, second.heads).0)?;
        if self.holds(first, second, place.fp) {
            return Ok(Some(false));",
        )],
        model: "winners::one_call_wins_under_the_locks",
        message: "not exactly one call added the item",
    }
    a_remove_locks_only_the_bucket_it_clears {
        edits: [(
            "shard/write.rs",
            "        let locked = self.lock(place)?;
        let (first, second) = self.read_both(&locked, place);
        // One time",
            "        let read = |bucket| self.read_rest(bucket, self.read(bucket));
        let (first, second) = (read(place.first), read(place.second));
        let is_in_first = !self.holding(first, place.fp).is_empty();
        let locked = self.lock_one(if is_in_first { place.first } else { place.second })?;
        // One time",
        )],
        model: "exclusion::a_removed_item_leaves_no_phantom",
        message: "a removed item is still there",
    }
    two_stripes_are_locked_as_they_come {
        edits: [
            ("table/stripe.rs", "self.lock(a.min(b))", "self.lock(a)"),
            ("table/stripe.rs", "self.lock(a.max(b))", "self.lock(b)"),
        ],
        model: "exclusion::removes_that_start_from_either_side_do_not_wait_for_each_other",
        message: "deadlock",
    }
    the_stripes_of_a_path_are_locked_as_they_come {
        edits: [
            (
                "table/stripe.rs",
                "let mut at = ascending.len();",
                "let mut at = if ascending.contains(&stripe) { continue } else { ascending.len() };",
            ),
            ("table/stripe.rs", "while at > 0 && ascending[at - 1] > stripe {", "while at > 99 {"),
        ],
        model: "exclusion::kickers_in_opposite_directions_do_not_wait_for_each_other",
        message: "deadlock",
    }
    a_lock_is_leaked {
        edits: [(
            "shard/write.rs",
            "let Some((Rank { lost, age, .. }, lane)) = found else { return Ok(Removal::Absent) };",
            "let Some((Rank { lost, age, .. }, lane)) = found else { std::mem::forget(locked); return Ok(Removal::Absent) };",
        )],
        model: "exclusion::a_remove_of_what_is_absent_lets_others_in",
        message: "deadlock",
    }
    a_clear_goes_stripe_by_stripe {
        edits: [(
            "shard/whole.rs",
            "        let locked = self.lock_all()?;\n        self.clear_locked(&locked);\n",
            "        for bucket in self.buckets() {
            let locked = self.lock_one(bucket)?;
            let taken = self.lanes().taken(self.read_locked(&locked, bucket).heads).len();
            if taken > 0 {
                self.write(&locked, bucket, Words::default());
                self.add_items(&locked, bucket, -(taken as i32));
            }
        }
        let locked = ();
",
        )],
        model: "exclusion::nothing_escapes_a_clear",
        message: "an item escaped the clear",
    }

    // The lock itself.
    the_lock_is_taken_relaxed {
        edits: [(
            "table/lock.rs",
            "compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)",
            "compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)",
        )],
        model: "exclusion::two_inserts_into_one_bucket_both_stay",
        message: "Causality violation",
    }
    the_lock_is_released_relaxed {
        edits: [("table/lock.rs", "store(false, Ordering::Release)", "store(false, Ordering::Relaxed)")],
        model: "exclusion::two_inserts_into_one_bucket_both_stay",
        message: "Causality violation",
    }
    the_lock_does_not_lock {
        edits: [
            ("table/lock.rs", "if !self.try_take() {", "if !self.try_take() && false {"),
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

    // Splits: readers.
    a_lookup_does_not_ask_whether_the_shard_was_split {
        edits: [("shard/look.rs", "stamp.still_hold() && self.lease.check().is_ok()", "stamp.still_hold()")],
        model: SPLIT,
        message: MISSED_IN_SPLIT,
    }
    a_lookup_asks_for_its_entry_too_soon {
        edits: [
            (
                "shard/look.rs",
                "        let stamp = self.stamp(place);",
                "        let early = self.lease.check();
        let stamp = self.stamp(place);",
            ),
            ("shard/look.rs", "stamp.still_hold() && self.lease.check().is_ok()", "stamp.still_hold() && early.is_ok()"),
        ],
        model: SPLIT,
        message: MISSED_IN_SPLIT,
    }
    a_hit_is_believed_during_a_split {
        edits: [("room/growing/until_split.rs", "const LASTING: bool = false;", "const LASTING: bool = true;")],
        model: "growth::an_item_that_is_absent_is_not_found_in_the_middle_of_a_split",
        message: "a lookup found what is not there",
    }
    an_entry_is_read_relaxed {
        edits: [("room/growing/directory.rs", "slot.load(Ordering::Acquire)", "slot.load(Ordering::Relaxed)")],
        model: "growth::an_item_is_found_while_its_shard_is_split_in_a_deep_directory",
        message: MISSED_IN_SPLIT,
    }

    // Splits: the splitting thread.
    an_entry_is_stored_relaxed {
        edits: [(
            "room/growing/directory.rs",
            "slot.store(entry.word(), Ordering::Release)",
            "slot.store(entry.word(), Ordering::Relaxed)",
        )],
        model: "growth::an_item_is_found_while_its_shard_is_split_in_a_deep_directory",
        message: MISSED_IN_SPLIT,
    }
    versions_stay_even_in_a_split {
        edits: [("room/growing/split.rs", "    let _moving = shard.moving(locked, &stripes);\n", "    let _ = &stripes;\n")],
        model: SPLIT,
        message: MISSED_IN_SPLIT,
    }
    entries_are_stored_after_the_versions {
        edits: [
            ("room/growing/split.rs", "let _moving", "let moving"),
            ("room/growing/split.rs", "    publish(&[lower_census", "    drop(moving);
    publish(&[lower_census"),
        ],
        model: SPLIT,
        message: MISSED_IN_SPLIT,
    }
    an_old_list_keeps_the_entry_of_a_split_shard {
        edits: [(
            "room/growing/directory.rs",
            "        if let Some(slot) = self.list(depth).get(index) {
            slot.store(SPLIT.word(), Ordering::Release);
        }
",
            "let _ = index;",
        )],
        model: SPLIT,
        message: MISSED_IN_SPLIT,
    }
    a_list_is_made_while_entries_are_stored {
        edits: [(
            "room/growing/directory.rs",
            "        let _alone = self.changes.lock();
        let depth = tenure.depth();",
            "        let depth = tenure.depth();",
        )],
        model: "growth::a_shard_is_split_while_the_directory_gets_longer",
        message: "Causality violation",
    }

    a_list_is_added_relaxed {
        edits: [(
            "sync.rs",
            "self.newest.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release)",
            "self.newest.store(std::ptr::from_ref(value).cast_mut(), Ordering::Relaxed)",
        )],
        model: "growth::an_item_is_found_by_an_old_list",
        message: "Causality violation",
    }
    the_newest_list_is_read_relaxed {
        edits: [(
            "sync.rs",
            "self.newest.load(Ordering::Acquire)",
            "self.newest.load(Ordering::Relaxed)",
        )],
        model: "growth::an_item_is_found_by_an_old_list",
        message: "Causality violation",
    }
    only_the_newest_list_learns_of_a_split {
        edits: [(
            "room/growing/directory.rs",
            "for level in depth + 1..=self.lists.get_alone().level {",
            "for level in [self.lists.get_alone().level] {",
        )],
        model: "growth::an_item_is_found_by_an_old_list",
        message: MISSED_IN_SPLIT,
    }
    items_are_not_shared_out {
        edits: [(
            "room/growing/split.rs",
            "    shard.share_out(locked, lower_items, Bucket(0));\n",
            "    let _ = lower_items;\n",
        )],
        model: SPLIT,
        message: "a split changed the number of items",
    }
    a_refusal_is_decided_without_its_locks {
        edits: [(
            "room/growing/grown.rs",
            "            let Ok(own) = shard.lock_before_split(place) else { return Ok(()) };
            if let Err(kind) = split_helps(shard, &own, place, &site.census(), || self.is_dense()) {",
            "            let slots = 16;
            let items = shard.all_items();
            if let Err(kind) = if 2 * items < slots { Err(FullKind::NoMemory) } else { Ok(()) } {",
        )],
        model: "growth::an_insert_is_not_refused_while_its_shard_is_split",
        message: "refused though a split made room",
    }
    a_last_removal_does_not_see_the_other {
        edits: [("room/growing/accounts.rs", "        fence(Ordering::SeqCst);\n", "        let _ = (fence as fn(Ordering), Ordering::SeqCst);\n")],
        model: "accounts::the_last_of_two_removals_clears_what_is_left_over",
        message: "lanes are left over",
    }
    a_shard_is_cleared_without_a_look_at_its_items {
        edits: [(
            "room/growing/accounts.rs",
            "            if items > 0 {\n                let excess",
            "            if items > 9 {\n                let excess",
        )],
        model: "accounts::what_comes_while_the_filter_is_cleared_stays",
        message: "an item went with what was left over",
    }
    a_clear_records_after_its_locks {
        edits: [
            (
                "room/growing/grown/shards.rs",
                "self.shard::<WIDE>(tenure).clear(nothing));",
                "self.shard::<WIDE>(tenure).clear(|| ()));",
            ),
            (
                "room/growing/grown/shards.rs",
                "                next = self.directory.end(tenure);\n",
                "                loom::thread::yield_now();\n                nothing();\n                next = self.directory.end(tenure);\n",
            ),
        ],
        model: "growth::a_clear_leaves_what_a_later_split_recorded",
        message: "a clear overwrote what a split recorded",
    }

    // The end of a list.
    a_list_answers_after_its_end {
        edits: [(
            "room/growing/stages.rs",
            "(!listed.has_ended).then(|| question(&listed.list))",
            "Some(question(&listed.list))",
        )],
        model: "small::an_item_is_found_while_its_list_ends",
        message: "a listed item was ",
    }
    the_shards_are_set_relaxed {
        edits: [("sync.rs", "self.is_set.store(true, Ordering::Release)", "self.is_set.store(true, Ordering::Relaxed)")],
        model: "small::one_call_wins_while_the_list_ends",
        message: "Causality violation",
    }
    the_shards_are_read_relaxed {
        edits: [("sync.rs", "self.is_set.load(Ordering::Acquire)", "self.is_set.load(Ordering::Relaxed)")],
        model: "small::one_call_wins_while_the_list_ends",
        message: "Causality violation",
    }
    an_item_is_added_to_a_list_that_has_ended {
        edits: [(
            "room/growing/stages.rs",
            "        if listed.has_ended {\n            return None;\n        }\n        // As many",
            "        // As many",
        )],
        model: "small::one_call_wins_while_the_list_ends",
        message: "an item",
    }
    an_item_is_removed_from_a_list_that_has_ended {
        edits: [(
            "room/growing/stages.rs",
            "        if listed.has_ended {
            return None;
        }
        let now",
            "        let now",
        )],
        model: "small::an_item_is_removed_once_while_the_list_ends",
        message: "an item was not removed once",
    }
    a_list_ends_before_its_shards_are_known {
        edits: [(
            "room/growing/stages.rs",
            "                    self.shards.set(Box::new(grown));\n                    listed.list = List::default();\n                    listed.has_ended = true;\n",
            "                    drop(grown);\n                    listed.list = List::default();\n",
        )],
        model: "small::an_item_is_found_while_its_list_ends",
        message: "an item is lost",
    }

    // Splits: writers.
    an_insert_believes_a_hit_during_a_split {
        edits: [(
            "shard/write.rs",
            "stamp.is_none_or(is_sure) {",
            "(true || stamp.is_none_or(is_sure)) {",
        )],
        model: "growth::an_item_is_not_taken_for_another_in_the_middle_of_a_split",
        message: "an item was taken for another",
    }
    an_insert_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/mod.rs",
            "        let locked = self.table.stripes().lock(self.stripe(bucket));
        self.lease.check().map(|()| locked)",
            "        Ok(self.table.stripes().lock(self.stripe(bucket)))",
        )],
        model: "growth::an_item_that_comes_during_a_split_is_found",
        message: LOST_IN_SPLIT,
    }
    a_decision_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/mod.rs",
            "        let locked = self.table.stripes().lock_two(both);
        self.lease.check().map(|()| locked)",
            "        Ok(self.table.stripes().lock_two(both))",
        )],
        model: "growth::one_call_wins_on_either_side_of_a_split",
        message: "not exactly one call added the item",
    }
    a_removal_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/mod.rs",
            "        let locked = self.table.stripes().lock_two(both);
        self.lease.check().map(|()| locked)",
            "        Ok(self.table.stripes().lock_two(both))",
        )],
        model: "growth::an_item_is_removed_during_a_split",
        message: "a present item was not removed",
    }
    a_kick_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/mod.rs",
            "        let locked = self.table.stripes().lock_many(which);
        self.lease.check().map(|()| locked)",
            "        Ok(self.table.stripes().lock_many(which))",
        )],
        model: "growth::a_path_of_before_a_split_is_not_walked",
        message: LOST_IN_SPLIT,
    }
    who_splits_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/mod.rs",
            "lock_many(&all);\n        self.lease.check_alone().map(|()| locked)",
            "lock_many(&all);\n        Ok(locked)",
        ), (
            "room/growing/grown.rs",
            "        if split_helps(shard, &locked, place, &before, || self.is_dense()).is_err() {
            return Ok(());
        }
",
            "",
        )],
        model: "growth::two_that_find_the_same_shard_full_split_it_once",
        message: "a shard was split twice",
    }
    a_clear_goes_on_after_a_split {
        edits: [(
            "room/growing/grown/shards.rs",
            "            if cleared.is_ok() {",
            "            let _ = cleared;
            {",
        )],
        model: "growth::nothing_escapes_a_clear_by_a_split",
        message: "an item escaped a clear",
    }

    // Entries of another filter.
    an_entry_is_given_up_when_its_shard_is_split {
        edits: [(
            "room/growing/grown/adopt.rs",
            "Err(Refusal::Lapsed(_)) => {}",
            "Err(Refusal::Lapsed(_)) => return Ok(true),",
        )],
        model: "union::an_entry_that_comes_during_a_split_is_found",
        message: LOST_IN_SPLIT,
    }
    an_entry_goes_to_the_first_of_its_shards {
        edits: [(
            "room/growing/grown/adopt.rs",
            "if depth > bits {",
            "if false {",
        )],
        model: "union::an_entry_that_belongs_to_both_halves_of_a_split_is_in_both",
        message: "an entry is not in each half once",
    }
    an_entry_counts_in_each_of_its_shards {
        edits: [("room/growing/grown/adopt.rs", "let counts = counts || site", "let counts = true || site")],
        model: "union::an_entry_that_belongs_to_both_halves_of_a_split_is_in_both",
        message: "an entry does not count as one item",
    }
    an_entry_is_added_without_a_look_under_the_locks {
        edits: [(
            "shard/write.rs",
            "if self.holds(first, second, place.fp) {
            return Ok(Some(false));",
            "if false {
            return Ok(Some(false));",
        )],
        model: "union::an_entry_and_its_item_are_there_once",
        message: LOST_IN_SPLIT,
    }
    an_entry_is_covered_by_what_knows_more {
        edits: [("shard/adopt.rs", "has_lost(*only) >= Some(self.entry.lost)", "has_lost(*only) >= Some(0)")],
        model: "union::an_entry_is_covered_only_by_what_has_lost_as_much",
        message: "an entry was taken for one that knows more",
    }
    a_finer_lane_keeps_its_bits {
        edits: [(
            "shard/adopt.rs",
            "let widened = host.widen(words, lane, entry);",
            "let widened = words;",
        )],
        model: "union::a_finer_lane_becomes_like_the_entry",
        message: "a finer lane did not lose its bits",
    }
    nobody_knows_that_an_entry_is_in_several_shards {
        edits: [(
            "room/growing/accounts.rs",
            "let no_transfer = self.transfers.read();
        self.has_excess.set(1);",
            "let no_transfer = self.transfers.read();",
        )],
        model: "union::nothing_is_left_of_an_entry_in_several_shards",
        message: "something of an entry is left",
    }

    // Saves: the copy of a shard.
    a_copy_that_goes_stripe_by_stripe_has_an_item_twice {
        edits: [COPIES_BY_STRIPES],
        model: "snapshots::an_item_that_moves_up_is_in_a_copy_once",
        message: "an item that moves is in the copy 2 times",
    }
    a_copy_that_goes_stripe_by_stripe_loses_an_item {
        edits: [COPIES_BY_STRIPES],
        model: "snapshots::an_item_that_moves_down_is_in_a_copy_once",
        message: "an item that moves is in the copy 0 times",
    }
    a_copy_is_made_without_the_locks {
        edits: [(
            "shard/whole.rs",
            "        let locked = self.lock_all()?;
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            *copy = self.table.read_locked(&locked, word);",
            "        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            *copy = self.table.read(word);",
        )],
        model: "snapshots::items_on_a_longer_path_are_in_a_copy_once",
        message: "an item that moves is in the copy 2 times",
    }
    a_copy_is_counted_after_the_locks {
        edits: [(
            "shard/whole.rs",
            "        Ok(self.all_items() - received())",
            "        drop(locked);
        Ok(self.all_items() - received())",
        )],
        model: "snapshots::a_copy_counts_what_is_in_it_while_items_come_and_go",
        message: "a copy does not count its lanes",
    }
    a_copy_sends_lookups_away {
        edits: [(
            "shard/whole.rs",
            "        for (word, copy) in (self.word(Bucket(0))..).zip(to) {",
            "        let all: crate::table::stripe::StripeSet<{ crate::layout::geometry::SHARD_STRIPES }> = self.own_stripes().collect();
        let _moving = self.moving(&locked, &all);
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {",
        )],
        model: "snapshots::a_lookup_does_not_wait_for_a_copy",
        message: "a lookup has to wait for a copy",
    }

    // Saves: from shard to shard.
    a_copy_does_not_ask_whether_the_shard_was_split {
        edits: [(
            "shard/whole.rs",
            "        let locked = self.lock_all()?;
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {",
            "        let all: crate::table::stripe::StripeSet<{ crate::layout::geometry::SHARD_STRIPES }> = self.own_stripes().collect();
        let locked = self.table.stripes().lock_many(&all);
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {",
        )],
        model: SAVE,
        message: "an item is saved 0 times, in shards of depths [0]",
    }
    a_save_passes_over_a_shard_that_was_split {
        edits: [(
            "room/growing/grown/shards.rs",
            "            if let Ok(items) = copied {
                *next = self.directory.end(tenure).map(|hash| hash.0);",
            "            *next = self.directory.end(tenure).map(|hash| hash.0);
            if let Ok(items) = copied {",
        )],
        model: SAVE,
        message: "an item is saved 0 times, in shards of depths []",
    }
    a_save_goes_by_a_list_of_its_beginning {
        edits: [(
            "room/growing/grown/shards.rs",
            "        loop {
            let tenure = self.directory.look_up(Mixed((*next)?));
            // If it has been split meanwhile, its halves come one after the other.",
            "        type List = std::cell::RefCell<Vec<(u64, crate::room::growing::site::Link, Option<u64>)>>;
        std::thread_local! { static LIST: List = List::default(); }
        let hash = (*next)?;
        if hash == 0 {
            let listed = |shard: Tenure<'_>| (shard.hash().0, shard.link(), self.directory.end(shard).map(|hash| hash.0));
            LIST.set(self.directory.shards().map(listed).collect());
        }
        let found = LIST.with_borrow(|list| list.iter().find(|(begin, ..)| *begin == hash).copied());
        let (_, link, end) = found.expect(\"a shard\");
        let depth = link.depth();
        let Ok(items) = self.ground.tables.at(link).shard::<false>().copy(buckets, || 0);
        *next = end;
        return Some(Copied { depth, items, excess: ByStamp::default() });
        #[allow(unreachable_code)]
        loop {
            let tenure = self.directory.look_up(Mixed((*next)?));",
        )],
        model: "snapshots::an_item_is_saved_once_while_its_shard_is_split_in_a_deep_directory",
        message: "an item is saved 0 times, in shards of depths [1, 2, 2]",
    }
    a_save_goes_through_the_first_shards_only {
        edits: [(
            "room/growing/grown/shards.rs",
            "let tenure = self.directory.look_up(Mixed((*next)?));
            // If it has been split meanwhile, its halves come",
            "let tenure = self.directory.look_up(Mixed((*next)?));
            let root = self.ground.tables.at(self.directory.shards().next().expect(\"a shard\").link()).shard::<false>();
            if let Ok(items) = root.copy(buckets, || 0) {
                *next = None;
                return Some(Copied { depth: 0, items, excess: ByStamp::default() });
            }
            // If it has been split meanwhile, its halves come",
        )],
        model: "snapshots::an_insert_that_had_returned_from_a_split_is_saved",
        message: "what was inserted before is not saved",
    }
    the_end_of_a_shard_is_looked_up_after_its_copy {
        edits: [(
            "room/growing/grown/shards.rs",
            "                *next = self.directory.end(tenure).map(|hash| hash.0);",
            "                let now = self.directory.look_up(tenure.hash());
                *next = self.directory.end(now).map(|hash| hash.0);",
        )],
        model: SAVE,
        message: "an item is saved 2 times, in shards of depths [0, 1]",
    }
    the_depth_of_a_shard_is_looked_up_after_its_copy {
        edits: [(
            "room/growing/grown/shards.rs",
            "                return Some(Copied { depth: tenure.depth(), items, excess });",
            "                let tenure = self.directory.look_up(tenure.hash());
                return Some(Copied { depth: tenure.depth(), items, excess });",
        )],
        model: SAVE,
        message: "an item is saved 0 times, in shards of depths [1]",
    }
    a_save_counts_the_items_of_the_filter {
        edits: [(
            "snapshot/write.rs",
            "let end = tally.end(block_bytes(&plan));",
            "let end = End { items: room.items() as i64, ..tally.end(block_bytes(&plan)) };",
        )],
        model: "snapshots::what_is_loaded_is_what_was_in_when_the_save_began",
        message: "what was saved cannot be loaded",
    }

    // Forgetting.
    a_tick_sends_no_lookup_away {
        edits: [("shard/expire.rs", "        stripes.outdate(&locked, stripe);", "        let _ = &locked;")],
        model: "forgetting::an_item_that_came_again_is_found_while_its_older_copy_expires",
        message: MISSED_IN_ITS_WINDOW,
    }
    a_tick_erases_at_once {
        edits: [(
            "table/ticking.rs",
            "(progress.pass, progress.next) = (Some(Pass::Announce), 0);",
            "(progress.pass, progress.next) = (Some(Pass::Expire), 0);",
        )],
        model: "forgetting::an_item_that_came_again_is_found_while_a_whole_tick_passes",
        message: MISSED_IN_ITS_WINDOW,
    }
    an_item_is_replaced_without_a_new_version {
        edits: [("shard/kick.rs", "(words.len() > 1 || ends_early)", "(words.len() > 1)")],
        model: "forgetting::an_item_that_came_again_is_found_while_a_kick_replaces_its_older_copy",
        message: MISSED_IN_ITS_WINDOW,
    }
    items_expire_from_wide_buckets_without_a_new_version {
        edits: [(
            "shard/expire.rs",
            "let _moving = WIDE.then(|| self.moving(locked, &which));",
            "let _ = &which;",
        )],
        model: EXPIRES_FROM_WIDE,
        message: NEVER_THERE,
    }
    a_lookup_in_wide_buckets_reads_one_version {
        edits: [(
            "shard/look.rs",
            "let both = L::WIDE && self.lanes().forgets();",
            "let both = false;",
        )],
        model: EXPIRES_FROM_WIDE,
        message: NEVER_THERE,
    }
    a_kick_moves_what_has_expired {
        edits: [(
            "shard/kick.rs",
            "if lanes.forgets() && lanes.has_expired(words, step.lane, shard.now()) {",
            "if false {",
        )],
        model: "forgetting::an_item_that_expires_does_not_escape_by_a_move",
        message: "an item that expired is still there",
    }
    a_path_is_taken_for_whole_that_ends_early {
        edits: [(
            "shard/kick.rs",
            "words.len() <= path.steps().len();",
            "words.len() == path.steps().len();",
        )],
        model: "forgetting::a_path_ends_at_an_item_that_expired",
        message: "the count is not the number of taken lanes",
    }
    a_kick_takes_the_time_of_before_the_tick {
        edits: [(
            "shard/kick.rs",
            "lanes.has_expired(words, step.lane, shard.now())",
            "lanes.has_expired(words, step.lane, crate::layout::stamps::Moment::of_tick(0))",
        )],
        model: "forgetting::an_item_that_has_just_come_is_not_taken_for_one_that_expired",
        message: "an item within its window is lost",
    }
    an_item_that_was_found_is_not_stamped {
        edits: [(
            "shard/refresh.rs",
            "        Ok(self.restamp(&locked, place))",
            "        drop(locked);\n        Ok(true)",
        )],
        model: "forgetting::an_item_that_was_refreshed_stays",
        message: "a refreshed item is not there once",
    }
    a_tick_overtakes_the_one_before {
        edits: [("table/ticking.rs", "            if progress.at_work > 0 {", "            if false {")],
        model: "forgetting::ticks_pass_one_after_the_other",
        message: "an item within its window is lost",
    }
    a_tick_taken_ahead_sends_no_lookup_away {
        edits: [(
            "room/fixed.rs",
            "            shard.own_stripes().for_each(|stripe| shard.announce(stripe));\n",
            "",
        )],
        model: "forgetting::an_item_that_came_again_is_found_while_a_tick_is_taken_ahead",
        message: MISSED_IN_ITS_WINDOW,
    }
    a_tick_ends_while_it_is_taken_ahead {
        edits: [
            ("table/ticking.rs", "        progress.at_work += usize::from(is_due);\n", ""),
            (
                "table/ticking.rs",
                "                    let _at_work = AtWork { ticking: self, again_from: None };\n",
                "",
            ),
        ],
        model: "forgetting::no_tick_ends_while_it_is_taken_ahead",
        message: "an item within its window is lost",
    }
    a_copy_is_made_while_a_tick_passes {
        edits: [(
            "table/ticking/copies.rs",
            "        self.finish(through);
        if self.own_time()",
            "        if self.own_time()",
        )],
        model: "forgetting::a_copy_is_made_between_two_ticks",
        message: "a copy is not of the time that it tells",
    }
    a_tick_begins_while_a_copy_is_made {
        edits: [
            ("table/ticking.rs", "                progress.copies > 0\n", "                false\n"),
            ("table/ticking.rs", "                if progress.copies > 0 {", "                if false {"),
        ],
        model: "forgetting::a_copy_is_made_between_two_ticks",
        message: "a copy is not of the time that it tells",
    }
    a_shard_is_copied_before_a_tick_gets_there {
        edits: [("table/ticking/copies.rs", "        self.ahead(through, hash);\n", "        let _ = (through, hash);\n")],
        model: "forgetting::a_shard_is_copied_while_a_tick_passes",
        message: "a copy is not of the time that it tells",
    }
    a_tick_begins_while_a_shard_is_copied {
        edits: [
            ("table/ticking.rs", "                progress.copies > 0\n", "                false\n"),
            ("table/ticking.rs", "                if progress.copies > 0 {", "                if false {"),
        ],
        model: "forgetting::a_shard_is_copied_while_a_tick_passes",
        message: "a copy is not of the time that it tells",
    }

    // Forgetting in a filter that grows.
    a_tick_passes_by_what_is_split_off {
        edits: [(
            "room/growing/grown/forget.rs",
            "self.ground.tables.segments()",
            "self.geometry.stripes() as usize",
        )],
        model: "forgetting::growing::a_tick_passes_while_a_shard_is_split",
        message: "something that expired is left",
    }
    a_tick_is_taken_ahead_through_the_shard_that_was {
        edits: [(
            "table/ticking.rs",
            "            if through.shard_of(hash) == shard {",
            "            if shard > 0 {",
        )],
        model: "forgetting::growing::a_tick_is_taken_ahead_while_a_shard_is_split",
        message: "something that expired is left",
    }
    a_sweep_sends_no_lookup_away {
        edits: [(
            "room/growing/grown/forget.rs",
            "            shard.own_stripes().for_each(|stripe| shard.announce(stripe));\n",
            "",
        )],
        model: "forgetting::growing::an_item_that_came_again_is_found_while_its_shard_is_swept",
        message: MISSED_IN_ITS_WINDOW,
    }
    a_tick_begins_while_a_shard_is_swept {
        edits: [(
            "room/growing/grown/forget.rs",
            "        let _no_split = self.accounts.transfers.write();\n",
            "",
        )],
        model: "forgetting::growing::no_tick_begins_while_a_shard_is_swept",
        message: MISSED_IN_ITS_WINDOW,
    }
    a_new_shard_is_counted_before_it_is_locked {
        edits: [(
            "room/growing/grown.rs",
            "        let Ok(locked) = unused.shard::<WIDE>().lock_all();
        self.ground.tables.use_next();
",
            "        self.ground.tables.use_next();
        let Ok(locked) = unused.shard::<WIDE>().lock_all();
",
        )],
        model: "forgetting::growing::a_tick_comes_to_a_new_shard_first",
        // Another thread works in the shard as it is being made.
        message: "Causality violation",
    }
    a_removal_believes_accounts_that_are_being_settled {
        edits: [("room/growing/grown/shards.rs", "if !self.accounts.are_settling() {", "if true {")],
        model: "forgetting::growing::an_item_is_removed_while_accounts_are_being_settled",
        message: "an item was not removed",
    }
    a_settlement_goes_unnoticed {
        edits: [("room/growing/accounts.rs", "        self.is_settling.set(1);\n", "")],
        model: "forgetting::growing::an_item_is_removed_while_accounts_are_being_settled",
        message: "an item was not removed",
    }
    a_filter_is_cleared_while_its_accounts_are_being_settled {
        edits: [("room/growing/accounts.rs", "        if self.are_settling() {", "        if false {")],
        model: "forgetting::growing::nothing_is_cleared_while_accounts_are_being_settled",
        message: MISSED_IN_ITS_WINDOW,
    }
}

/// The manifest of a twin's workspace: the crate's sources and the models, without the dependencies
/// that only the library or its benches need.
const WORKSPACE: &str = "\
[workspace]
members = [\"loom-tests\"]
resolver = \"3\"
";

/// Returns how a twin is compiled, as a configuration of cargo, which goes before that of this
/// repository.
///
/// The dependencies, loom among them, are compiled once for all twins, so they are optimised. A
/// twin is compiled for one run, which is mostly short, so it is not optimised. The exceptions are
/// models that build a growing filter: without optimisation they need more stack than loom's threads
/// have.
fn profile(module: &str) -> String {
    let level = match module {
        "accounts" | "small" | "snapshots" => 2,
        "forgetting::growing" | "growth" | "union" | "wide" => 1,
        _ => 0,
    };
    format!(
        "\
[profile.dev]
opt-level = {level}
debug = false
incremental = false

[profile.dev.package.\"*\"]
opt-level = 2

# Large, and next to idle.
[profile.dev.package.regex-automata]
opt-level = 0
[profile.dev.package.regex-syntax]
opt-level = 0
[profile.dev.package.tracing-subscriber]
opt-level = 0
"
    )
}

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
        .env("KOEL_LONG_TESTS", "1")
        .output()
        .expect("cargo runs");
    let output = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let output = output.concat();
    assert!(!output.contains("could not compile"), "{}:\n{output}", twin.name);
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
        copy_folder(&original.join(folder), &copy.join(folder));
    }
    // Only the twin's model is a test: code that nothing calls is checked but not generated, and
    // generating the other models would take most of the time.
    let (module, model) = twin.model.rsplit_once("::").expect("the file and the name of a model");
    let (root, _) = module.split_once("::").unwrap_or((module, ""));
    let file_of = |module: &str| {
        let folder = copy.join(models).join(module.replace("::", "/"));
        if folder.is_dir() { folder.join("mod.rs") } else { folder.with_extension("rs") }
    };
    for path in [file_of(root), file_of(module)] {
        let text = fs::read_to_string(&path).unwrap().replace("#[test]\n", "");
        fs::write(&path, text).unwrap();
    }
    let (path, begin) = (file_of(module), format!("\nfn {model}() {{"));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(&begin).count(), 1, "{}: there is no such model", twin.name);
    fs::write(&path, text.replace(&begin, &format!("\n#[test]{begin}"))).unwrap();
    let main = format!("#![allow(dead_code)]\nmod grove;\nmod toy;\n\nmod {root};\n");
    fs::write(copy.join(models).join("main.rs"), main).unwrap();
    for file in ["loom-tests/build.rs", "Cargo.lock"] {
        fs::copy(original.join(file), copy.join(file)).unwrap();
    }
    // In a shared target folder, cargo takes packages of the same name for the same package.
    let manifest = fs::read_to_string(original.join("loom-tests/Cargo.toml")).unwrap();
    let name = format!("name = \"{}\"", twin.name);
    let manifest = manifest.replace("name = \"loom-tests\"", &name);
    // Where there is no such file as this one.
    let (manifest, _) = manifest.split_once("[[test]]").expect("that this is a test");
    fs::write(copy.join("loom-tests/Cargo.toml"), manifest).unwrap();
    fs::write(copy.join("Cargo.toml"), WORKSPACE).unwrap();
    fs::create_dir_all(copy.join(".cargo")).unwrap();
    fs::write(copy.join(".cargo/config.toml"), profile(module)).unwrap();
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

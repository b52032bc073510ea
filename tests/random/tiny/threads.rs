//! Real threads use a filter while it is split all the time.

extern crate koel_small as koel;

#[path = "../../common/mod.rs"]
mod common;
mod small;

use common::{
    Hashes, Raise, SplitMix, alone, in_time, loaded, prehashed, rounds, together, watched,
};
use koel_small::Prehashed;
use small::{EXACT, Filter, Layout, layouts};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Inserts and removes items, and returns those that are left. The filter grows from one shard to hundreds or thousands.
fn grow(layout: Layout, filter: &Filter, random: &mut SplitMix) -> Vec<u64> {
    let mut own = Vec::new();
    for step in 0..15_000 {
        let hash = random.next();
        if filter.insert(&Prehashed(hash)).is_ok() {
            assert!(filter.contains(&Prehashed(hash)), "its own item is absent");
            own.push(hash);
        }
        if step % 3 == 0 && !own.is_empty() {
            let gone = own.swap_remove(random.below(own.len()));
            let removed = filter.remove(&Prehashed(gone));
            assert!(removed || layout.may_have_void(filter), "an item was lost");
        }
    }
    assert!(filter.has(&own));
    own
}

/// Fills and empties the filter in turns.
fn come_and_go(filter: &Filter, random: &mut SplitMix) {
    for _ in 0..40 {
        let own = filter.put_some(&random.take(1_000));
        for (at, &hash) in own.iter().enumerate() {
            assert!(filter.contains(&Prehashed(hash)), "its own item is absent");
            let copies = if at % 7 == 0 { filter.count(&Prehashed(hash)) } else { 1 };
            assert!(copies >= 1, "its own item counts 0");
            assert!(filter.remove(&Prehashed(hash)), "an item was lost");
        }
    }
}

/// Two threads let the filter grow, or fill and empty it in turns while another one shrinks it.
#[test]
fn a_pinned_item_is_never_absent_while_the_filter_grows_and_shrinks() {
    let _alone = alone();
    in_time(|| {
        let shrunk = AtomicUsize::new(0);
        let rounds = 0..rounds(1, 6);
        let cases = layouts().iter().flat_map(|it| rounds.clone().map(move |round| (*it, round)));
        for ((layout, round), shrinks) in cases.flat_map(|case| [(case, false), (case, true)]) {
            let filter = layout.filter();
            let most = if shrinks { 4 } else { 6 } * layout.slots();
            let pinned = filter.put_some(&SplitMix(round << 32).take(most));
            let is_over = AtomicBool::new(false);
            let kept = watched(&filter, &pinned, if shrinks { 3 } else { 2 }, |thread| {
                let mut random = SplitMix((thread as u64 + 7) << 48 | round << 32);
                if thread == 2 {
                    while !is_over.load(Relaxed) {
                        let before = filter.stats().splits;
                        filter.shrink();
                        let after = filter.stats().splits;
                        shrunk.fetch_add(before.saturating_sub(after), Relaxed);
                    }
                    return 0;
                }
                let _over = Raise(&is_over);
                match shrinks {
                    true => come_and_go(&filter, &mut random),
                    false => return grow(layout, &filter, &mut random).len(),
                }
                0
            });
            let what = format!("{layout:?}, round {round}: {}", filter.stats());
            match shrinks {
                true => assert_eq!(filter.len(), pinned.len(), "{what}"),
                false => {
                    layout.check_len(&filter, pinned.len() + kept.iter().sum::<usize>());
                    assert!(filter.stats().directory_depth >= 8, "{what}");
                }
            }
        }
        assert!(shrunk.into_inner() > 0);
    });
}

/// All threads insert the same items in the same order, so that they race for each of them.
#[test]
fn exactly_one_of_the_racing_threads_inserts_an_item_while_the_filter_grows() {
    let _alone = alone();
    in_time(|| {
        for &layout in layouts() {
            let all = [2, 4, 8, 2, 4, 8];
            for (&threads, round) in all[..rounds(2, 6)].iter().zip(0..) {
                let filter = layout.filter();
                let hashes = SplitMix(round << 32).take(4_000);
                let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
                let refused: Vec<AtomicBool> = hashes.iter().map(|_| false.into()).collect();
                together(threads, |_| {
                    for (at, &hash) in hashes.iter().enumerate() {
                        match filter.insert_if_absent(&Prehashed(hash)) {
                            Ok(won) => {
                                winners[at].fetch_add(u32::from(won), Relaxed);
                                assert!(filter.contains(&Prehashed(hash)), "an item is absent");
                            }
                            Err(_) => refused[at].store(true, Relaxed),
                        }
                    }
                });
                let what = format!("{layout:?}, {threads} threads: {}", filter.stats());
                let winners: Vec<u32> = winners.into_iter().map(AtomicU32::into_inner).collect();
                assert!(
                    winners.iter().all(|&winners| winners <= 1),
                    "an item has two winners: {what}"
                );
                assert_eq!(filter.len(), winners.iter().sum::<u32>() as usize, "{what}");
                for ((&hash, &winners), refused) in hashes.iter().zip(&winners).zip(&refused) {
                    assert!(
                        filter.contains(&Prehashed(hash)) || winners == 0,
                        "a winner's item is absent: {what}"
                    );
                    let nobody = winners == 0 && !refused.load(Relaxed);
                    assert!(!nobody || layout.bits < EXACT.bits, "an item has no winner: {what}");
                }
            }
        }
    });
}

#[test]
fn each_copy_is_removed_once_while_the_filter_grows() {
    let _alone = alone();
    in_time(|| {
        for &layout in layouts() {
            let all = [2, 4, 8, 2];
            for (&threads, round) in all[..rounds(2, 4)].iter().zip(0..) {
                let filter = layout.filter();
                let hashes = filter.put_some(&SplitMix(round << 32).take(3_000));
                let before = filter.stats().splits;
                let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
                let kept = AtomicUsize::new(0);
                together(threads, |thread| {
                    let mut random = SplitMix((thread as u64 + 1) << 48 | round << 32);
                    for (at, (hash, winners)) in hashes.iter().zip(&winners).enumerate() {
                        // New items, which stay, keep splitting the shards.
                        for _ in 0..2 {
                            let new = filter.insert(&Prehashed(random.next())).is_ok();
                            kept.fetch_add(usize::from(new), Relaxed);
                        }
                        // If the layout confuses items, a second removal might take out another
                        // item. So only one thread removes each item there.
                        if layout.bits == EXACT.bits || at % threads == thread {
                            let won = filter.remove(&Prehashed(*hash));
                            winners.fetch_add(u32::from(won), Relaxed);
                        }
                    }
                });
                let what = format!("{layout:?}, {threads} threads: {}", filter.stats());
                assert!(filter.stats().splits > before, "{what}");
                let removed: u32 = winners.iter().map(|winners| winners.load(Relaxed)).sum();
                layout.check_len(&filter, hashes.len() + kept.into_inner() - removed as usize);
                // A void item is not removed.
                let least = u32::from(!layout.may_have_void(&filter));
                let once = |wins: &AtomicU32| (least..=1).contains(&wins.load(Relaxed));
                assert!(winners.iter().all(once), "{what}");
                if layout.bits == EXACT.bits && least == 1 {
                    assert!(
                        hashes.iter().all(|&hash| !filter.contains(&Prehashed(hash))),
                        "{what}"
                    );
                }
            }
        }
    });
}

/// At the end, the length is the number of items that are counted.
#[test]
fn clearing_while_the_filter_grows_leaves_a_correct_length() {
    let _alone = alone();
    in_time(|| {
        for &layout in layouts() {
            for round in 0..rounds(1, 4) {
                let filter = layout.filter();
                let hashes = SplitMix(round << 32).take(6_000);
                together(3, |thread| {
                    if thread == 2 {
                        for _ in 0..50 {
                            filter.clear();
                            std::thread::yield_now();
                        }
                        return;
                    }
                    let own = hashes.iter().skip(thread).step_by(2);
                    // The item may be refused, or cleared at once.
                    own.for_each(|&hash| _ = filter.insert(&Prehashed(hash)));
                });
                if layout.bits == EXACT.bits {
                    let counted: usize =
                        hashes.iter().map(|&hash| filter.count(&Prehashed(hash))).sum();
                    assert_eq!(filter.len(), counted, "{}", filter.stats());
                }
                filter.clear();
                assert!(filter.is_empty());
                assert!(hashes.iter().all(|&hash| !filter.contains(&Prehashed(hash))));
                filter.put(&hashes[..4 * layout.slots()]);
                assert_eq!(filter.len(), 4 * layout.slots());
            }
        }
    });
}

/// Some threads insert, remove and split, and others save all the time. Some of the items are
/// pinned: they are never removed.
#[test]
fn a_pinned_item_is_in_every_save_that_began_after_its_insertion() {
    const GROWERS: usize = 2;
    const SAVERS: usize = 2;
    const STEPS: usize = 20_000;
    let _alone = alone();
    in_time(|| {
        for &layout in layouts() {
            for round in 0..rounds(1, 4) {
                let filter = layout.filter();
                let hashes_of = |thread: usize| SplitMix((thread as u64 + 7) << 48 | round << 32);
                let all = (0..GROWERS).flat_map(|thread| hashes_of(thread).take(STEPS));
                let all: Vec<u64> = all.collect();
                let pinned = Mutex::new(Vec::new());
                let is_over = AtomicBool::new(false);
                let check = |what: &str| {
                    let pinned = pinned.lock().expect("no panic").clone();
                    let copy = || filter.try_clone().expect("memory");
                    let loaded = if pinned.len() % 2 == 0 { loaded(&filter) } else { copy() };
                    for hash in pinned {
                        let count = loaded.count(&Prehashed(hash));
                        assert!(count >= 1, "{what}: a pinned item is not in the save");
                        let once = count == 1 || layout.bits < EXACT.bits;
                        assert!(once, "{what}: a pinned item is saved {count} times");
                    }
                    if layout.bits == EXACT.bits {
                        let found: usize =
                            all.iter().map(|&hash| loaded.count(&Prehashed(hash))).sum();
                        assert_eq!(found, loaded.len(), "{what}: not all saved items are found");
                    }
                    loaded.len()
                };
                together(GROWERS + SAVERS, |thread| {
                    if thread < GROWERS {
                        let _over = Raise(&is_over);
                        let mut own = Vec::new();
                        for (step, hash) in hashes_of(thread).take(STEPS).into_iter().enumerate() {
                            match filter.insert(&Prehashed(hash)) {
                                Ok(()) if step % 8 == 0 => {
                                    pinned.lock().expect("no panic").push(hash);
                                }
                                Ok(()) => own.push(hash),
                                Err(_) => {}
                            }
                            if step % 3 == 0 && !own.is_empty() {
                                let gone = own.swap_remove(step * 7 % own.len());
                                let removed = filter.remove(&Prehashed(gone));
                                assert!(
                                    removed || layout.may_have_void(&filter),
                                    "an item was lost"
                                );
                            }
                        }
                        return;
                    }
                    // One of the growers may go on.
                    while !is_over.load(Relaxed) {
                        check("while it grows");
                    }
                });
                assert_eq!(check("at rest"), filter.len(), "{layout:?}: {}", filter.stats());
                assert!(filter.stats().directory_depth >= 7, "{layout:?}: {}", filter.stats());
            }
        }
    });
}

/// A parallel batch gives the same answers as a loop, and leaves the same number of items.
#[test]
fn parallel_batches_answer_as_loops_do_while_the_filter_grows() {
    let _alone = alone();
    for &layout in layouts() {
        let (one, many) = (layout.filter(), layout.filter());
        let mut hashes = SplitMix(5).take(rounds(6_000, 30_000));
        hashes.extend_from_within(..hashes.len() / 3);
        let singly = |act: &dyn Fn(u64) -> bool| -> Vec<bool> {
            hashes.iter().map(|&hash| act(hash)).collect()
        };
        let first = singly(&|hash| one.insert(&Prehashed(hash)).is_ok());
        let answers = many.par_insert_many(&prehashed(&hashes));
        assert!(answers.iter().map(Result::is_ok).eq(first), "{layout:?}");
        let absent: Vec<_> =
            hashes.iter().map(|&hash| one.insert_if_absent(&Prehashed(hash))).collect();
        assert_eq!(many.par_insert_if_absent_many(&prehashed(&hashes)), absent, "{layout:?}");
        let found = singly(&|hash| one.contains(&Prehashed(hash)));
        assert_eq!(many.par_contains_many(&prehashed(&hashes)), found, "{layout:?}");
        let (most, last) = hashes.split_at(hashes.len() - 100);
        let removed: Vec<_> = most.iter().map(|&hash| one.remove(&Prehashed(hash))).collect();
        assert_eq!(many.par_remove_many(&prehashed(most)), removed, "{layout:?}");
        assert_eq!(one.len(), many.len(), "{layout:?}");
        // When no items are left, which of the last removals comes too late depends on the threads.
        let removed = last.iter().filter(|hash| one.remove(&Prehashed(**hash))).count();
        let answers = many.par_remove_many(&prehashed(last));
        assert_eq!(answers.iter().filter(|gone| **gone).count(), removed, "{layout:?}");
        assert_eq!(one.len(), many.len(), "{layout:?}");
    }
}

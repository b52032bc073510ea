//! Real threads use a filter while it is split all the time.

extern crate koel_small as koel;

#[path = "../../common/mod.rs"]
mod common;
mod small;

use common::{Hashes, Raise, SplitMix, alone, in_time, loaded, race, rounds, together, watched};
use koel_small::Prehashed;
use small::{EXACT, Filter, Layout, Tiny, layouts};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

/// (`tests/threads/soak.rs` has one that shrinks, too.)
#[test]
fn a_pinned_item_is_never_absent_while_the_filter_grows() {
    let _alone = alone();
    in_time(|| {
        let rounds = 0..rounds(1, 6);
        let cases = layouts().iter().flat_map(|it| rounds.clone().map(move |round| (*it, round)));
        for (layout, round) in cases {
            let filter = layout.tiny();
            let pinned = filter.put_some(&SplitMix(round << 32).take(6 * layout.slots()));
            let kept = watched(&filter, &pinned, 2, |thread| {
                let mut random = SplitMix((thread as u64 + 7) << 48 | round << 32);
                grow(layout, &filter, &mut random).len()
            });
            layout.check_len(&filter, pinned.len() + kept.iter().sum::<usize>());
            assert!(filter.stats().directory_depth >= 8, "{layout:?}, {}", filter.stats());
        }
    });
}

#[test]
fn exactly_one_of_the_racing_threads_inserts_an_item_while_the_filter_grows() {
    let _alone = alone();
    in_time(|| {
        for layout in layouts() {
            let all = [2, 4, 8, 2, 4, 8];
            for (&threads, round) in all[..rounds(2, 6)].iter().zip(0..) {
                let hashes = SplitMix(round << 32).take(4_000);
                race(&layout.tiny(), &hashes, threads, layout.bits == EXACT.bits);
            }
        }
    });
}

/// Returns the copy of a filter that comes back from its pieces, of one shard each.
fn in_pieces(filter: &Filter) -> Filter {
    let mut loader = Filter::loader();
    for piece in filter.pieces(0) {
        loader.push(piece.expect("memory").as_bytes()).expect("the next piece");
    }
    loader.finish().expect("all pieces")
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
                let filter = layout.tiny();
                let hashes_of = |thread: usize| SplitMix((thread as u64 + 7) << 48 | round << 32);
                let all = (0..GROWERS).flat_map(|thread| hashes_of(thread).take(STEPS));
                let all: Vec<u64> = all.collect();
                let pinned = Mutex::new(Vec::new());
                let is_over = AtomicBool::new(false);
                let check = |what: &str| {
                    let pinned = pinned.lock().expect("no panic").clone();
                    let loaded = match pinned.len() % 3 {
                        0 => loaded(&filter),
                        1 => in_pieces(&filter),
                        _ => filter.try_clone().expect("memory"),
                    };
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

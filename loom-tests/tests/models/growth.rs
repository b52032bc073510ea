//! An inserted item is found, once, while its shard is split.

use crate::grove::{Entry, Grove, ROOT, item, items, place, split_root, there_once};
use crate::toy::Model;
use koel_under_loom::act;
use koel_under_loom::internals::Shards;
use koel_under_loom::internals::{Copies, Mixed, Outcome, Path, execute};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Looks once, without locks. The result may be undecided, but not wrong.
fn look(grove: &Grove, hash: &Mixed) {
    let (shard, place) = grove.shard(*hash);
    assert_ne!(shard.look(place), Some(false), "a lookup missed an item of a shard that was split");
}

#[test]
fn an_item_is_found_while_its_shard_is_split() {
    for half in [0, 1] {
        Model::new("split and look", 2_900).in_short(2, 115).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 1);
                grove.put(item);
                item
            },
            &[split_root, look],
            |grove, item| {
                there_once(grove, item);
                assert_eq!(grove.room.items(), 1, "a split changed the number of items");
            },
        );
    }
}

/// The directory has enough entries before the split, so the split makes no new list.
#[test]
fn an_item_is_found_while_its_shard_is_split_in_a_deep_directory() {
    for half in [0b00, 0b01] {
        Model::new("deep directory", 650).in_short(2, 110).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 2);
                grove.pretend(item);
                grove.split(item, ROOT);
                // The split of the other half makes a list of level 2, where this half has two
                // entries.
                let other = self::item(1, 1);
                grove.pretend(other);
                let entry = Entry { shard: 1, depth: 1 };
                grove.split(other, entry);
                grove.put(item);
                item
            },
            &[
                |grove, item| {
                    let entry = Entry { depth: 1, ..ROOT };
                    grove.split_as_seen(*item, 2, entry).expect("a full shard was not split");
                },
                look,
            ],
            there_once,
        );
    }
}

#[test]
fn a_lookup_that_gives_up_looking_is_right_after_a_split() {
    for half in [0, 1] {
        Model::new("split and contains", 630)
            .blocking()
            .preemptions(3)
            .in_short(2, 175)
            .run_in::<Grove, Mixed>(
                move |grove: &Grove| {
                    let item = item(half, 1);
                    grove.put(item);
                    item
                },
                &[split_root, |grove, item| {
                    let found = act(&grove.room, *item, Shards::contains);
                    assert!(found, "a lookup missed an item of a shard that was split");
                }],
                there_once,
            );
    }
}

/// Two items with the same anchor and the same buckets. The window of `there`, once the split has
/// shifted it, equals the window of `absent` before the split.
fn two_that_meet_in_the_middle() -> (Mixed, Mixed) {
    let there = item(0, 1);
    let of_there = place(there, 0);
    let absent = (1u64..).map(|number| {
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Mixed(there.0 << 1 >> 50 << 50 | random >> 14)
    });
    let same_buckets = |hash: &Mixed| {
        let place = place(*hash, 0);
        let anchor = |fp: u32| fp >> 16;
        place.first == of_there.first && anchor(place.fp.head()) == anchor(of_there.fp.head())
    };
    (there, absent.into_iter().find(same_buckets).unwrap())
}

/// A lane means something else after a split. No lookup reads it with the other meaning.
#[test]
fn an_item_that_is_absent_is_not_found_in_the_middle_of_a_split() {
    let (there, absent) = two_that_meet_in_the_middle();
    Model::new("absent", 2_900).in_short(2, 115).run_in::<Grove, (Mixed, Mixed)>(
        move |grove: &Grove| {
            grove.put(there);
            (there, absent)
        },
        &[
            |grove, (there, _)| split_root(grove, there),
            |grove, (_, absent)| {
                let (shard, place) = grove.shard(*absent);
                assert_ne!(shard.look(place), Some(true), "a lookup found what is not there");
            },
        ],
        |grove, (there, absent)| {
            there_once(grove, there);
            assert_eq!(grove.copies(*absent), 0);
        },
    );
}

/// A writer waits for a stripe of a shard that is being split. After the split, its item may belong
/// to the other half.
#[test]
fn an_item_that_comes_during_a_split_is_found() {
    for half in [0, 1] {
        Model::new("split and insert", 28).blocking().preemptions(3).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 1);
                grove.pretend(item);
                item
            },
            &[split_root, |grove, item| {
                act(&grove.room, *item, Shards::insert).expect("there is room");
            }],
            there_once,
        );
    }
}

#[derive(Clone)]
struct Race {
    item: Mixed,
    winners: Arc<AtomicUsize>,
}

impl Race {
    fn of(item: Mixed) -> Self {
        Race { item, winners: Arc::default() }
    }

    fn won(&self, won: bool) {
        self.winners.fetch_add(usize::from(won), Ordering::Relaxed);
    }

    fn winners(&self) -> usize {
        self.winners.load(Ordering::Relaxed)
    }
}

#[test]
fn one_call_wins_on_either_side_of_a_split() {
    fn add(grove: &Grove, race: &Race) {
        let added = act(&grove.room, race.item, Shards::insert_if_absent);
        race.won(added.expect("there is room"));
    }
    for half in [0, 1] {
        Model::new("split and add", 150)
            .blocking()
            .preemptions(3)
            .in_short(2, 70)
            .run_in::<Grove, Race>(
                move |grove: &Grove| {
                    let item = item(half, 1);
                    grove.pretend(item);
                    Race::of(item)
                },
                &[
                    |grove, race| {
                        split_root(grove, &race.item);
                        add(grove, race);
                    },
                    add,
                ],
                |grove, race| {
                    assert_eq!(race.winners(), 1, "not exactly one call added the item");
                    there_once(grove, &race.item);
                },
            );
    }
}

#[test]
fn an_item_is_removed_once_on_either_side_of_a_split() {
    fn take(grove: &Grove, race: &Race) {
        race.won(act(&grove.room, race.item, Shards::remove));
    }
    for half in [0, 1] {
        Model::new("split and remove", 1_800)
            .blocking()
            .preemptions(3)
            .in_short(1, 65)
            .run_in::<Grove, Race>(
                move |grove: &Grove| {
                    let item = item(half, 1);
                    grove.put(item);
                    Race::of(item)
                },
                &[
                    |grove, race| {
                        split_root(grove, &race.item);
                        take(grove, race);
                    },
                    take,
                ],
                |grove, race| {
                    assert_eq!(race.winners(), 1, "an item was not removed once");
                    assert_eq!(grove.copies(race.item), 0, "a removed item is there");
                },
            );
    }
}

#[test]
fn an_item_is_removed_during_a_split() {
    for half in [0, 1] {
        Model::new("split and one remove", 700)
            .blocking()
            .preemptions(3)
            .in_short(2, 280)
            .run_in::<Grove, Mixed>(
                move |grove: &Grove| {
                    let item = item(half, 1);
                    grove.put(item);
                    item
                },
                &[split_root, |grove, item| {
                    let removed = act(&grove.room, *item, Shards::remove);
                    assert!(removed, "a present item was not removed");
                }],
                |grove, item| assert_eq!(grove.copies(*item), 0, "a removed item is there"),
            );
    }
}

/// Both threads have found the shard full. It is split once, and neither is refused.
#[test]
fn two_that_find_the_same_shard_full_split_it_once() {
    Model::new("two splitters", 21).blocking().preemptions(3).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1, 1);
            grove.put(item);
            // Enough for another split, if a thread tried.
            grove.pretend(item);
            grove.pretend(item);
            item
        },
        &[split_root, split_root],
        |grove, item| {
            assert_eq!(grove.room.splits(), 1, "a shard was split twice");
            there_once(grove, item);
        },
    );
}

/// The directory has four entries, and two of them belong to one shard. That shard is split while
/// another one needs a longer list.
#[test]
fn a_shard_is_split_while_the_directory_gets_longer() {
    Model::new("longer directory", 16).blocking().preemptions(3).run_in::<Grove, [Mixed; 2]>(
        |grove: &Grove| {
            let (deep, shallow) = (item(0b00, 2), item(0b11, 2));
            grove.pretend(deep);
            grove.split(deep, ROOT);
            grove.pretend(deep);
            grove.split(deep, Entry { depth: 1, ..ROOT });
            grove.put(deep);
            grove.put(shallow);
            [deep, shallow]
        },
        &[
            |grove, [deep, _]| grove.split(*deep, Entry { depth: 2, ..ROOT }),
            |grove, [_, shallow]| {
                let entry = Entry { shard: 1, depth: 1 };
                grove.split_as_seen(*shallow, 2, entry).expect("a full shard was not split");
            },
        ],
        |grove, items| {
            assert_eq!(grove.room.splits(), 4, "a split was lost");
            for item in items {
                there_once(grove, item);
            }
            let depths = [0b000, 0b001, 0b010, 0b100, 0b110].map(|bits| {
                let (shard, _) = grove.shard(item(bits, 3));
                shard.lease().depth()
            });
            assert_eq!(depths, [3, 3, 2, 2, 2], "an entry was lost");
        },
    );
}

#[derive(Clone)]
struct Kick {
    path: Path,
    moved: Mixed,
    newcomer: Mixed,
}

/// A path is found before a split and walked after it.
#[test]
fn a_path_of_before_a_split_is_not_walked() {
    for half in [0, 1] {
        Model::new("split and kick", 41).blocking().preemptions(3).run_in::<Grove, Kick>(
            move |grove: &Grove| {
                let moved = item(half, 1);
                grove.put(moved);
                let (shard, place) = grove.shard(moved);
                grove.stuff(moved, place.first);
                let newcomer = items(half, 1)
                    .find(|hash| self::place(*hash, 0).first == place.first && hash.0 != moved.0)
                    .unwrap();
                let lane = shard.lanes().taken(shard.read(place.first)).next().unwrap();
                let step = koel_under_loom::internals::Step { bucket: place.first, lane };
                let path = Path::new([step].into_iter().collect(), place.second).unwrap();
                Kick { path, moved, newcomer }
            },
            &[
                |grove, kick| split_root(grove, &kick.moved),
                |grove, kick| {
                    let (shard, place) = grove.shard(kick.newcomer);
                    if execute(shard, &kick.path, place, Copies::Add) != Ok(Outcome::Placed) {
                        act(&grove.room, kick.newcomer, Shards::insert).expect("there is room");
                    }
                },
            ],
            |grove, kick| {
                there_once(grove, &kick.moved);
                there_once(grove, &kick.newcomer);
            },
        );
    }
}

/// A writer is delayed while its shard is split, and then the half that its item belongs to.
#[test]
fn an_item_that_comes_during_two_splits_is_found() {
    Model::new("two splits and insert", 380)
        .blocking()
        .preemptions(3)
        .in_short(2, 170)
        .run_in::<Grove, Mixed>(
            |grove: &Grove| {
                let item = item(0b11, 2);
                grove.pretend(item);
                item
            },
            &[
                |grove, item| {
                    split_root(grove, item);
                    grove.pretend(*item);
                    let entry = Entry { shard: 1, depth: 1 };
                    grove.split_as_seen(*item, 1, entry).expect("a full shard was not split");
                },
                |grove, item| {
                    act(&grove.room, *item, Shards::insert).expect("there is room");
                },
            ],
            there_once,
        );
}

/// The shard is full of items of its upper half. The item is of the lower half, which a split leaves
/// empty.
#[test]
fn an_insert_is_not_refused_while_its_shard_is_split() {
    Model::new("split and refusal", 30)
        .blocking()
        .preemptions(2)
        .in_short(1, 350)
        .run_in::<Grove, Mixed>(
            |grove: &Grove| {
                let item = item(0, 1);
                let (shard, _) = grove.shard(item);
                for bucket in shard.buckets() {
                    let locked = shard.lock_one(bucket).unwrap();
                    let others = (1_000..).map(|number| place(Mixed(1 << 63 | number << 20), 0).fp);
                    let _ = others.take_while(|fp| shard.fill_locked(&locked, bucket, *fp)).count();
                }
                item
            },
            &[
                |grove, item| {
                    let answer = grove.split_as_seen(*item, 0, ROOT);
                    answer.expect("refused though a split made room");
                },
                |grove, item| {
                    let answer = act(&grove.room, *item, Shards::insert);
                    answer.expect("refused though a split made room");
                },
            ],
            there_once,
        );
}

/// A shard has as many copies of an item as it takes. While it is split, their words match another item by
/// a bit too few.
#[test]
fn an_item_is_not_refused_as_a_copy_of_another_in_the_middle_of_a_split() {
    let (there, absent) = two_that_meet_in_the_middle();
    Model::new("absent, and not a copy", 100)
        .blocking()
        .preemptions(2)
        .run_in::<Grove, (Mixed, Mixed)>(
            move |grove: &Grove| {
                grove.put(there);
                let (shard, place) = grove.shard(there);
                let locked = shard.lock_one(place.second).unwrap();
                assert!(shard.fill_locked(&locked, place.second, place.fp));
                (there, absent)
            },
            &[
                |grove, (there, _)| split_root(grove, there),
                |grove, (_, absent)| {
                    let answer = act(&grove.room, *absent, Shards::insert);
                    assert_eq!(answer, Ok(()), "an item was taken for a copy of another");
                },
            ],
            |grove, (there, absent)| {
                assert_eq!(grove.copies(*there), 2, "an item is not there twice after a split");
                there_once(grove, absent);
            },
        );
}

#[test]
fn an_item_is_not_taken_for_another_in_the_middle_of_a_split() {
    let (there, absent) = two_that_meet_in_the_middle();
    Model::new("absent, and added", 170).blocking().preemptions(3).run_in::<Grove, (Mixed, Mixed)>(
        move |grove: &Grove| {
            grove.put(there);
            (there, absent)
        },
        &[
            |grove, (there, _)| split_root(grove, there),
            |grove, (_, absent)| {
                let added = act(&grove.room, *absent, Shards::insert_if_absent);
                assert_eq!(added, Ok(true), "an item was taken for another");
            },
        ],
        |grove, (there, absent)| {
            there_once(grove, there);
            there_once(grove, absent);
        },
    );
}

/// The directory gets a longer list for another shard. Then a shard is split that has several
/// entries in an old list.
#[test]
fn an_item_is_found_by_an_old_list() {
    for bits in [0b100, 0b111] {
        Model::new("old list", 2_900).in_short(2, 115).run_in::<Grove, [Mixed; 2]>(
            move |grove: &Grove| {
                let (deep, shallow) = (item(0b00, 2), item(bits, 3));
                for depth in [0, 1] {
                    grove.pretend(deep);
                    grove.split(deep, Entry { depth, ..ROOT });
                }
                grove.pretend(deep);
                grove.put(shallow);
                [deep, shallow]
            },
            &[
                |grove, [deep, shallow]| {
                    grove.split(*deep, Entry { depth: 2, ..ROOT });
                    let entry = Entry { shard: 1, depth: 1 };
                    grove.split_as_seen(*shallow, 2, entry).expect("a shard was not split");
                },
                |grove, [_, shallow]| look(grove, shallow),
            ],
            |grove, [_, shallow]| there_once(grove, shallow),
        );
    }
}

//! Ticks pass while shards are split and swept.
//!
//! A filter of tiny shards that remembers items for two ticks. A stamp has two bits, so the one of the
//! next tick is that of what expires in the present one.

use crate::forgetting::MISSED;
use crate::toy::{Model, World};
use koel_under_loom::act;
use koel_under_loom::internals::{
    Fingerprint, Geometry, GrowthPlan, Lanes, Mixed, Moment, Sharded, Shards, Site, Stagger,
    SweepTarget, Ticking,
};

struct Grove {
    room: Sharded<false>,
}

impl World for Grove {
    fn of_shards(roots: usize) -> Self {
        let geometry = Geometry::new(Lanes::of_bits(32).remembering(2), roots, 8);
        let (stagger, own_bytes, max_bytes) = (Stagger::NONE, 0, usize::MAX);
        let plan =
            GrowthPlan { geometry, stagger, own_bytes, max_bytes, expected_growth: 1.0, rate: 1.0 };
        Grove { room: Sharded::of(plan) }
    }

    fn check(&self) {
        let now = self.ticking().clock().now();
        for number in 0.. {
            let Some(site) = self.room.site_of(number) else { break };
            let lanes = Lanes::of_bits(32).remembering(2);
            let mut words = site.shard::<false>().all_words();
            assert!(words.all(|words| lanes.expired(words, now).is_empty()), "{LEFT}");
        }
    }
}

const LEFT: &str = "something that expired is left";

impl Grove {
    fn ticking(&self) -> &Ticking {
        self.room.ticking().expect("a filter that forgets")
    }

    fn set_clock(&self, tick: u64) {
        self.ticking().clock().set(Moment::of_tick(tick));
    }

    fn insert(&self, item: Mixed) {
        act(&self.room, item, Shards::insert).expect("there is room");
    }

    /// Puts a copy of the item into its first bucket or into the second.
    fn put(&self, item: Mixed, into_second: bool) {
        let (shard, place) = self.room.locate(item);
        let bucket = if into_second { place.second } else { place.first };
        let locked = shard.lock_one(bucket).unwrap();
        assert!(shard.fill_locked(&locked, bucket, place.fp));
    }

    fn copies(&self, item: Mixed) -> usize {
        loop {
            let (shard, place) = self.room.locate(item);
            if let Ok(copies) = shard.count(place) {
                return copies;
            }
        }
    }

    /// Adds eight to the count of the item's shard, which then counts as half full until it is split.
    fn pretend(&self, item: Mixed) {
        let (shard, place) = self.room.locate(item);
        let locked = shard.lock_one(place.first).unwrap();
        shard.add_items(&locked, place.first, 8);
    }

    fn begin_tick(&self) {
        assert!(self.ticking().begin(&self.room), "a tick is passing");
    }

    fn finish_tick(&self) {
        self.ticking().finish(&self.room);
    }

    fn site(&self, number: usize) -> &Site {
        self.room.site_of(number).expect("a shard")
    }
}

/// Items in this shard of two, or of one, whose buckets are in two stripes.
fn items(shard: u64, grove: &Grove) -> impl Iterator<Item = Mixed> {
    let hashes = (1..).map(move |number: u64| {
        Mixed(shard << 63 | number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2)
    });
    hashes.filter(|hash| {
        let (_, place) = grove.room.locate(*hash);
        place.first.0 / 2 == 0 && place.second.0 / 2 == 3
    })
}

fn item(shard: u64, grove: &Grove) -> Mixed {
    items(shard, grove).next().expect("an item")
}

/// A shard that is to be split, with an item that expires with the next tick and one that stays.
fn to_be_split(grove: &Grove) -> [Mixed; 2] {
    let mut items = items(1, grove);
    let items = [items.next().unwrap(), items.next().unwrap()];
    grove.insert(items[0]);
    grove.set_clock(2);
    grove.insert(items[1]);
    grove.pretend(items[1]);
    items
}

fn split(grove: &Grove, [_, item]: &[Mixed; 2]) {
    let entry = grove.room.entry(0, 0);
    grove.room.split_as_seen(*item, 0, entry).expect("memory");
}

/// Nothing that expires escapes to the half that is split off, nothing else goes, and the counts are right.
#[test]
fn a_tick_passes_while_a_shard_is_split() {
    Model::new("tick and split", 60).preemptions(2).blocking().run_in::<Grove, [Mixed; 2]>(
        to_be_split,
        &[|grove, _| grove.ticking().tick(&grove.room), split],
        |grove, [gone, stays]| {
            assert_eq!(grove.copies(*gone), 0, "{LEFT}");
            assert_eq!(grove.copies(*stays), 1, "{MISSED}");
            assert_eq!(grove.room.items() % 8, 1, "what expired is counted wrong");
        },
    );
}

/// The tick has passed the place of a shard that was joined when another one is split into it.
#[test]
fn a_tick_passes_what_a_split_takes_next() {
    Model::new("tick and split into a spare", 30)
        .preemptions(2)
        .blocking()
        .run_in::<Grove, [Mixed; 2]>(
            |grove: &Grove| {
                let mut of_quarters = [0b00, 0b11].map(|bits| {
                    let mut hashes = (1..).map(|number: u64| {
                        Mixed(bits << 62 | number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2)
                    });
                    let two = hashes.by_ref().take(2).collect::<Vec<_>>();
                    [two[0], two[1]]
                });
                let [lower, upper] = &mut of_quarters;
                // Four quarters, the last of which comes after the second, which is joined to the first again.
                for (item, shard, depth) in [(lower[0], 0, 0), (lower[0], 0, 1), (upper[0], 1, 1)] {
                    grove.pretend(item);
                    let entry = grove.room.entry(shard, depth);
                    grove.room.split_as_seen(item, depth, entry).expect("memory");
                }
                assert!(grove.room.join_halves(lower[0]));
                grove.insert(upper[0]);
                grove.set_clock(2);
                grove.insert(upper[1]);
                grove.pretend(upper[1]);
                *upper
            },
            &[
                |grove, _| grove.ticking().tick(&grove.room),
                |grove, [_, item]| {
                    let entry = grove.room.entry(3, 2);
                    grove.room.split_as_seen(*item, 2, entry).expect("memory");
                },
            ],
            |grove, [gone, stays]| {
                assert_eq!(grove.copies(*gone), 0, "{LEFT}");
                assert_eq!(grove.copies(*stays), 1, "{MISSED}");
            },
        );
}

/// A tick that several threads work at may come to a new shard before it comes to the one that is split.
#[test]
fn a_tick_comes_to_a_new_shard_first() {
    Model::new("tick from the end", 120).preemptions(3).blocking().run_in::<Grove, [Mixed; 2]>(
        to_be_split,
        &[split, |grove, _| {
            grove.begin_tick();
            let (now, old) = (grove.ticking().clock().now(), grove.site(0));
            let in_old = old.shard::<false>().own_stripes().count();
            // The number of shards is no event to loom.
            loom::thread::yield_now();
            let all = grove.room.segments();
            SweepTarget::sweep(&grove.room, in_old..all, now);
            SweepTarget::sweep(&grove.room, 0..in_old, now);
            // Made since: it has nothing that was not sorted out before.
            SweepTarget::sweep(&grove.room, all..grove.room.segments(), now);
        }],
        |grove, [gone, stays]| {
            grove.check();
            grove.finish_tick();
            assert_eq!([gone, stays].map(|it| grove.copies(*it)), [0, 1], "{MISSED}");
            assert_eq!(grove.room.items() % 8, 1, "what expired is counted wrong");
        },
    );
}

/// A writer sweeps the stripes of its item before the tick gets there.
#[test]
fn an_item_that_came_again_is_found_while_a_writer_sweeps() {
    Model::new("came again and swept", 90).preemptions(3).blocking().run_in::<Grove, Mixed>(
        |grove| {
            let item = item(0, grove);
            // The older copy is in the bucket that a lookup reads last.
            grove.put(item, true);
            grove.set_clock(2);
            item
        },
        &[
            |grove, item| {
                grove.put(*item, false);
                grove.begin_tick();
                grove.room.sweep_for(*item);
            },
            |grove, item| {
                let (shard, place) = grove.room.locate(*item);
                assert_ne!(shard.look(place), Some(false), "{MISSED}");
            },
        ],
        |grove, item| {
            grove.finish_tick();
            assert_eq!((grove.copies(*item), grove.room.items()), (1, 1));
        },
    );
}

/// What expires does not get to a new shard behind the back of a writer that has swept the old one.
#[test]
fn a_writer_sweeps_while_a_shard_is_split() {
    Model::new("sweep and split", 100).preemptions(2).blocking().run_in::<Grove, [Mixed; 2]>(
        to_be_split,
        &[
            |grove, [gone, _]| {
                grove.begin_tick();
                grove.room.sweep_for(*gone);
                // (To count them would sweep them.)
                let (shard, place) = grove.room.locate(*gone);
                assert_eq!(shard.matches_of(place).lanes, 0, "{LEFT}");
            },
            split,
        ],
        |grove, [gone, stays]| {
            grove.finish_tick();
            assert_eq!([gone, stays].map(|it| grove.copies(*it)), [0, 1], "{MISSED}");
            assert_eq!(grove.room.items() % 8, 1, "what expired is counted wrong");
        },
    );
}

/// A copy of a shard is of one moment, though the tick has not passed elsewhere: its items, and their count.
#[test]
fn a_shard_is_copied_while_a_tick_passes() {
    Model::new("copy of a shard and tick", 50)
        .preemptions(3)
        .blocking()
        .run_in::<Grove, [Mixed; 2]>(
            to_be_split,
            &[
                |grove, _| grove.ticking().tick(&grove.room),
                |grove, [gone, stays]| {
                    let (mut next, mut buckets) = (Some(0), [0; 8]);
                    let held = grove.ticking().pause_in_a_tick();
                    let copied = grove.room.copy_shard(&mut next, &mut buckets).expect("a shard");
                    let left = usize::from(held.time().tick == 2);
                    let lanes = buckets.map(|word| Lanes::of_bits(32).taken(word).count());
                    let found = (
                        copied.items,
                        lanes.iter().sum(),
                        grove.copies(*gone),
                        grove.copies(*stays),
                    );
                    assert_eq!(
                        found,
                        (9 + left as i64, 1 + left, left, 1),
                        "a copy is not of its time"
                    );
                },
            ],
            |grove, _| assert_eq!(grove.room.items(), 9, "what expired is counted wrong"),
        );
}

/// The item's lane is void.
fn without_bits(grove: &Grove) -> Mixed {
    let item = item(0, grove);
    let (shard, place) = grove.room.locate(item);
    // Two bits of stamp are below fifteen of window.
    let window = (1 << 15) - 1;
    let void = place.fp.head() & !(window << 2 | 3) | 1 << 16;
    let locked = shard.lock_one(place.first).unwrap();
    assert!(shard.fill_locked(&locked, place.first, Fingerprint::new(void).unwrap()));
    shard.add_items(&locked, place.first, -1);
    grove.room.add_void_items(1);
    let site = grove.site(0);
    site.surplus_gauge().set(1 << 15);
    item
}

#[test]
fn an_item_without_bits_is_refreshed_or_expires() {
    Model::new("refresh without bits and tick", 70)
        .preemptions(2)
        .blocking()
        .run_in::<Grove, Mixed>(
            |grove| {
                let item = without_bits(grove);
                grove.set_clock(2);
                item
            },
            &[
                |grove, _| {
                    grove.begin_tick();
                    grove.finish_tick();
                },
                |grove, item| _ = act(&grove.room, *item, Shards::refresh),
            ],
            |grove, item| {
                let (copies, counted) = (grove.copies(*item), grove.room.items());
                assert_eq!(copies, counted, "an item is counted that expired, or not counted");
                let removed = act(&grove.room, *item, Shards::remove);
                assert_eq!(usize::from(removed), copies, "an item was not removed");
            },
        );
}

/// Two halves, each with an item that expires and one that stays.
fn halves(grove: &Grove) -> [Mixed; 4] {
    let of_half = |half: u64| {
        let hashes = (1..).map(move |number: u64| {
            Mixed(half << 63 | number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 2)
        });
        hashes.take(2).collect::<Vec<_>>()
    };
    let (lower, upper) = (of_half(0), of_half(1));
    [lower[0], upper[0]].iter().for_each(|item| grove.insert(*item));
    grove.set_clock(2);
    [lower[1], upper[1]].iter().for_each(|item| grove.insert(*item));
    grove.pretend(lower[0]);
    let entry = grove.room.entry(0, 0);
    grove.room.split_as_seen(lower[0], 0, entry).expect("memory");
    [lower[0], upper[0], lower[1], upper[1]]
}

/// Two halves, each with an item that expires and one that stays, are joined while a tick passes.
#[test]
fn a_tick_passes_while_halves_are_joined() {
    let model = Model::new("tick and join", 30).preemptions(2).in_short(1, 30);
    model.blocking().run_in::<Grove, [Mixed; 4]>(
        halves,
        &[
            |grove, _| {
                grove.begin_tick();
                grove.finish_tick();
            },
            |grove, items| _ = grove.room.join_halves(items[0]),
        ],
        |grove, items| {
            let copies = items.map(|item| grove.copies(item));
            assert_eq!(copies, [0, 0, 1, 1], "what stays is not there once, or what expired is");
            assert_eq!(grove.room.items(), 2, "items are counted wrong after a join and a tick");
        },
    );
}

/// A split takes the last bit of an item that expires, as the tick begins.
#[test]
fn an_item_that_loses_its_last_bit_as_it_expires_is_not_counted() {
    let model = Model::new("last bit and tick", 15).preemptions(3).in_short(2, 10);
    model.blocking().run_in::<Grove, Mixed>(
        |grove| {
            let item = item(0, grove);
            let (shard, place) = grove.room.locate(item);
            // Two bits of stamp are below fifteen of window. One bit is left.
            let window = (1 << 15) - 1;
            let fp = place.fp.head() & !(window << 2 | 3) & !(1 << 16) | 1 << 15;
            let locked = shard.lock_one(place.first).unwrap();
            assert!(shard.fill_locked(&locked, place.first, Fingerprint::new(fp).unwrap()));
            drop(locked);
            grove.set_clock(2);
            grove.pretend(item);
            item
        },
        &[
            |grove, _| {
                grove.begin_tick();
                grove.finish_tick();
            },
            |grove, item| {
                let entry = grove.room.entry(0, 0);
                // The tick may have been first.
                let _ = grove.room.split_as_seen(*item, 0, entry);
            },
        ],
        |grove, item| {
            let counted = grove.room.items() % 8;
            assert_eq!(counted, grove.copies(*item), "an item is counted that expired");
        },
    );
}

/// A writer sweeps a half that is being joined to the other, and then the whole.
#[test]
fn a_writer_sweeps_while_halves_are_joined() {
    let model = Model::new("sweep and join", 20).preemptions(2).in_short(2, 20);
    model.blocking().run_in::<Grove, [Mixed; 4]>(
        halves,
        &[
            |grove, items| {
                grove.begin_tick();
                grove.room.sweep_for(items[0]);
                // (To count them would sweep them.)
                let (shard, place) = grove.room.locate(items[0]);
                assert_eq!(shard.matches_of(place).lanes, 0, "{LEFT}");
            },
            |grove, items| _ = grove.room.join_halves(items[0]),
        ],
        |grove, items| {
            grove.finish_tick();
            let copies = items.map(|item| grove.copies(item));
            assert_eq!(copies, [0, 0, 1, 1], "{MISSED}");
        },
    );
}

use super::meeting::Alike;
use super::*;
use crate::layout::bucket::all_lanes;
use crate::layout::either;
use crate::layout::stamps::Moment;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// A lane in plain form: its anchor, and the bits of the hash that are left, in order.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    anchor: u32,
    bits: Vec<bool>,
}

impl Plain {
    fn random(rng: &mut SmallRng, aging: Aging, bits: u32) -> Self {
        let anchor = match aging.lanes.is_wide() {
            false => rng.random_range(0..1 << (aging.lanes.bits() - to_anchor(aging))),
            true => rng.random_range(1..1 << aging.lanes.bits()),
        };
        Plain { anchor, bits: (0..bits).map(|_| rng.random()).collect() }
    }

    /// The lane in both words, with a stamp of zeros.
    fn packed(&self, aging: Aging) -> Words {
        let bits = self.bits.iter().chain([&true]);
        let window = bits.fold(0, |window, bit| window << 1 | u64::from(*bit))
            << (aging.window_bits() as usize - self.bits.len() + usize::from(aging.stamp));
        match aging.lanes.is_wide() {
            false => {
                let heads = u64::from(self.anchor) << to_anchor(aging) | window;
                Words { heads, tails: 0 }
            }
            true => Words { heads: u64::from(self.anchor), tails: window },
        }
    }

    fn fingerprint(&self, aging: Aging) -> Fingerprint {
        let Words { heads, tails } = self.packed(aging);
        Fingerprint::new(heads as u32).expect("a head").with_tail(tails)
    }
}

/// How many bits of a narrow lane are below the anchor.
fn to_anchor(aging: Aging) -> u32 {
    u32::from(aging.window + aging.stamp)
}

fn words(aging: Aging, plain: &[Option<Plain>]) -> Words {
    let bits = aging.lanes.bits() as usize;
    let mut words = Words::default();
    for (at, lane) in plain.iter().enumerate() {
        let Words { heads, tails } =
            lane.as_ref().map_or(Words::default(), |lane| lane.packed(aging));
        words.heads |= heads << (at * bits);
        words.tails |= tails << (at * bits);
    }
    words
}

fn random_word(rng: &mut SmallRng, aging: Aging) -> Vec<Option<Plain>> {
    (0..aging.lanes.slots())
        .map(|_| {
            let bits = rng.random_range(0..=aging.window_bits());
            rng.random_bool(0.8).then(|| Plain::random(rng, aging, bits))
        })
        .collect()
}

fn for_random_words(mut check: impl FnMut(&mut SmallRng, Aging, Vec<Option<Plain>>)) {
    let mut rng = SmallRng::seed_from_u64(1);
    for aging in all_agings() {
        for _ in 0..10_000 {
            let plain = random_word(&mut rng, aging);
            check(&mut rng, aging, plain);
        }
    }
}

/// Those of all layouts, with stamps of some sizes and without.
fn all_agings() -> impl Iterator<Item = Aging> {
    let with = |ticks: u8| all_lanes().map(move |lanes| (lanes, ticks));
    let forgetful = [2, 6, 62].into_iter().flat_map(with);
    let forgetful = forgetful.map(|(lanes, ticks)| lanes.remembering(ticks));
    let have_room = forgetful.filter(|lanes| lanes.bits() >= lanes.stamp_bits() + 4);
    all_lanes().chain(have_room).map(Aging::new)
}

/// The bucket with a random stamp in each taken lane.
fn stamped(rng: &mut SmallRng, aging: Aging, words: Words) -> Words {
    let lanes = aging.lanes;
    lanes.taken(words.heads).fold(words, |words, lane| {
        let age = rng.random_range(0..=lanes.most_stamps());
        lanes.with_age(words, lane, age, Moment::FIRST)
    })
}

/// The bucket with stamps of zeros in all taken lanes.
fn unstamped(aging: Aging, words: Words) -> Words {
    let lanes = aging.lanes;
    let zero = |words, lane| lanes.with_age(words, lane, 0, Moment::FIRST);
    lanes.taken(words.heads).fold(words, zero)
}

#[test]
fn a_lane_matches_the_items_that_agree_in_all_bits_left() {
    for_random_words(|rng, aging, mut plain| {
        let mut item = Plain::random(rng, aging, aging.window_bits());
        // Often agrees with a lane of the word, in all or all but one of its bits.
        if let Some(Some(there)) = plain.first() {
            item.anchor = there.anchor;
            item.bits[..there.bits.len()].clone_from_slice(&there.bits);
            if rng.random_bool(0.3) {
                let other = rng.random_range(0..item.bits.len());
                item.bits[other] ^= true;
            }
        }
        plain.rotate_left(1);
        let fp = item.fingerprint(aging);
        let words = stamped(rng, aging, words(aging, &plain));
        let is_wide = aging.lanes.is_wide();
        let mut holding = either!(is_wide, W => aging.holding::<W>(words.heads, fp));
        if aging.lanes.is_wide() {
            holding = holding.and(aging.holding_tail(words.tails, fp));
        }
        let matching_bits = |lane: &Option<Plain>| {
            let left = lane.as_ref().filter(|lane| lane.anchor == item.anchor)?;
            item.bits.starts_with(&left.bits).then_some(left.bits.len())
        };
        let expected: Vec<usize> = plain.iter().filter_map(matching_bits).collect();
        assert_eq!(holding.len(), expected.len(), "{plain:?} {item:?}");
        let lacks = either!(is_wide, W => aging.closest::<W>(words, holding))
            .map(|(lacks, _)| lacks as usize);
        let most = expected.iter().max();
        assert_eq!(lacks, most.map(|most| aging.window_bits() as usize - most));
    });
}

fn fingerprint(aging: Aging, anchor: u64, window: u64) -> Fingerprint {
    either!(aging.lanes.is_wide(), W => aging.fingerprint::<W>(aging.anchor::<W>(anchor), window))
}

#[test]
fn a_fingerprint_is_made_of_the_top_bits_of_two_fractions() {
    for_random_words(|rng, aging, _| {
        let item = Plain::random(rng, aging, aging.window_bits());
        let bits = item.bits.iter().fold(0, |bits, bit| bits << 1 | u64::from(*bit));
        let anchor = match aging.lanes.is_wide() {
            false => u64::from(item.anchor) << (64 - aging.lanes.bits() + to_anchor(aging)),
            // The middle of the part of all fractions that has this anchor.
            true => {
                let part = u64::MAX / aging.lanes.heads();
                (u64::from(item.anchor) - 1) * part + part / 2
            }
        };
        let window = bits << (64 - aging.window_bits());
        let fp = fingerprint(aging, anchor, window);
        assert_eq!(fp, item.fingerprint(aging));
    });
}

#[test]
fn a_split_sorts_lanes_by_the_first_bit_left() {
    for_random_words(|rng, aging, plain| {
        let half = |upper: bool| -> Vec<Option<Plain>> {
            let sorted = plain.iter().map(|lane| {
                let Plain { anchor, bits } = lane.clone()?;
                match bits.split_first() {
                    None => Some(Plain { anchor, bits }),
                    Some((first, rest)) => {
                        (*first == upper).then(|| Plain { anchor, bits: rest.to_vec() })
                    }
                }
            });
            sorted.collect()
        };
        let whole = stamped(rng, aging, words(aging, &plain));
        let expected = [words(aging, &half(false)), words(aging, &half(true))];
        let halves = either!(aging.lanes.is_wide(), W => aging.split::<W>(whole));
        let found = [halves.lower, halves.upper].map(|half| unstamped(aging, half));
        assert_eq!(found, expected, "{plain:?}");
        // Each lane keeps its place and its stamp.
        let age = |words, lane| aging.lanes.age(words, lane, Moment::FIRST);
        for half in [halves.lower, halves.upper] {
            for lane in aging.lanes.taken(half.heads) {
                assert_eq!(age(half, lane), age(whole, lane));
            }
        }
        let used_up = plain.iter().flatten().filter(|lane| lane.bits.is_empty()).count();
        let counted = either!(aging.lanes.is_wide(), W => aging.used_up::<W>(whole));
        assert_eq!((halves.in_both, counted.len()), (counted, used_up));
        let are_in_both = |half: Words| {
            aging.lanes.taken(half.heads).tops() & halves.in_both.tops() == halves.in_both.tops()
        };
        assert!(are_in_both(halves.lower) && are_in_both(halves.upper));
    });
}

#[test]
fn either_bucket_yields_the_other_whatever_the_window() {
    for aging in all_agings() {
        for bucket in (0..GROWING_BUCKETS).map(Bucket) {
            let anchor = u64::from(bucket.0) << 53;
            let fp = |window| fingerprint(aging, anchor, window);
            let other = aging.alternate(bucket, fp(0));
            assert!(other != bucket && other.0 < GROWING_BUCKETS);
            assert_eq!(aging.alternate(other, fp(u64::MAX)), bucket);
        }
    }
}

#[test]
fn each_bit_a_lane_has_lost_doubles_its_vagueness() {
    for_random_words(|rng, aging, plain| {
        let of = |lane: &Plain| 1 << (aging.window_bits() as usize - lane.bits.len());
        let expected: u64 = plain.iter().flatten().map(of).sum();
        let words = stamped(rng, aging, words(aging, &plain));
        let found = either!(aging.lanes.is_wide(), W => aging.vagueness::<W>(words));
        assert_eq!(found, expected);
    });
}

#[test]
fn a_taken_lane_without_a_one_in_its_window_is_reported() {
    for_random_words(|rng, aging, plain| {
        let words = stamped(rng, aging, words(aging, &plain));
        let without_a_one =
            |words| either!(aging.lanes.is_wide(), W => aging.without_a_one::<W>(words));
        assert!(without_a_one(words).is_empty());
        let taken: Vec<Lane> = aging.lanes.taken(words.heads).collect();
        let Some(lane) = taken.get(rng.random_range(0..taken.len().max(1))) else { return };
        let damaged = match aging.lanes.is_wide() {
            false => {
                let anchor = Fingerprint::new(1 << to_anchor(aging)).expect("an anchor");
                Words { heads: aging.lanes.with(words.heads, *lane, anchor), tails: 0 }
            }
            // Only the stamp is left.
            true => {
                let bits = aging.lanes.value(words.tails, *lane) & u64::from(aging.in_a_window);
                let tails = aging.lanes.value(words.tails, *lane) ^ bits;
                let without = aging.lanes.without(words.tails, *lane);
                let tails = Fingerprint::new(tails as u32)
                    .map_or(without, |stamp| aging.lanes.with(without, *lane, stamp));
                Words { tails, ..words }
            }
        };
        let without = without_a_one(damaged);
        assert_eq!((without.first(), without.len()), (Some(*lane), 1));
    });
}

#[test]
fn an_entry_is_covered_by_what_agrees_and_has_lost_as_much() {
    for_random_words(|rng, aging, mut plain| {
        let bits = rng.random_range(0..=aging.window_bits());
        let mut entry = Plain::random(rng, aging, bits);
        // Often agrees with a lane of the word, in all or all but one of the bits that both have.
        if let Some(Some(there)) = plain.first() {
            entry.anchor = there.anchor;
            let common = entry.bits.len().min(there.bits.len());
            entry.bits[..common].clone_from_slice(&there.bits[..common]);
            if common > 0 && rng.random_bool(0.3) {
                let other = rng.random_range(0..common);
                entry.bits[other] ^= true;
            }
        }
        plain.rotate_left(1);
        let words = stamped(rng, aging, words(aging, &plain));
        let alone = stamped(rng, aging, entry.packed(aging));
        let fp = aging.lanes.get_whole(alone, Lane::LOWEST).expect("an entry");
        let is_wide = aging.lanes.is_wide();
        let lost = either!(is_wide, W => aging.lost_by::<W>(fp)) as usize;
        assert_eq!(lost, aging.window_bits() as usize - entry.bits.len());
        let Alike { covering, finer } = either!(is_wide, W => aging.alike::<W>(words, fp));
        let agreeing = |(number, lane): (usize, &Option<Plain>)| {
            let bits = &lane.as_ref().filter(|lane| lane.anchor == entry.anchor)?.bits;
            let common = bits.len().min(entry.bits.len());
            let agree = bits[..common] == entry.bits[..common];
            agree.then_some((number, bits.len() <= entry.bits.len()))
        };
        let expected: Vec<_> = plain.iter().enumerate().filter_map(agreeing).collect();
        let numbers = |covers: bool| -> Vec<usize> {
            expected.iter().filter(|(_, is)| *is == covers).map(|(number, _)| *number).collect()
        };
        let all: Vec<Lane> = aging.lanes.set_of(aging.lanes.tops()).collect();
        let found = |set: LaneSet| -> Vec<usize> {
            set.map(|lane| all.iter().position(|it| *it == lane).expect("a lane")).collect()
        };
        assert_eq!(
            (found(covering), found(finer)),
            (numbers(true), numbers(false)),
            "{plain:?} {entry:?}"
        );
    });
}

/// Bits that were left to lanes of the other depth are there again, as far as a window has room for them.
#[test]
fn a_bucket_of_one_depth_becomes_one_of_another() {
    for_random_words(|rng, aging, plain| {
        let whole = stamped(rng, aging, words(aging, &plain));
        let (position, depth) = (rng.random::<u64>(), rng.random_range(0..20));
        let levels = rng.random_range(0..5);
        let is_upper = |level: u32| position << level >> 63 == 1;
        let changed = |from: u32, to: u32| {
            let mut row = [whole.heads, whole.tails];
            let row = &mut row[..aging.lanes.words()];
            either!(aging.lanes.is_wide(), W => {
                aging.bring_to_depth::<W>(row, (from, to), position);
            });
            Words { heads: row[0], tails: row.get(1).copied().unwrap_or(0) }
        };
        let split = |lane: &Option<Plain>| {
            let Plain { anchor, mut bits } = lane.clone()?;
            for level in depth..depth + levels {
                if !bits.is_empty() && bits.remove(0) != is_upper(level) {
                    return None;
                }
            }
            Some(Plain { anchor, bits })
        };
        let joined = |lane: &Option<Plain>| {
            let Plain { anchor, mut bits } = lane.clone()?;
            (depth..depth + levels).rev().for_each(|level| bits.insert(0, is_upper(level)));
            bits.truncate(aging.window_bits() as usize);
            Some(Plain { anchor, bits })
        };
        for (found, expected) in [
            (changed(depth, depth + levels), plain.iter().map(split).collect::<Vec<_>>()),
            (changed(depth + levels, depth), plain.iter().map(joined).collect()),
        ] {
            assert_eq!(unstamped(aging, found), words(aging, &expected), "{plain:?}");
            for lane in aging.lanes.taken(found.heads) {
                let age = |words| aging.lanes.age(words, lane, Moment::FIRST);
                assert_eq!(age(found), age(whole));
            }
        }
    });
}

use super::*;
use crate::layout::bucket::all_lanes;
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
    fn random(rng: &mut SmallRng, shrinking: Shrinking, bits: u32) -> Self {
        let anchor = match shrinking.lanes.is_wide() {
            false => rng.random_range(0..1 << (shrinking.lanes.bits() - to_anchor(shrinking))),
            true => rng.random_range(1..1 << shrinking.lanes.bits()),
        };
        Plain { anchor, bits: (0..bits).map(|_| rng.random()).collect() }
    }

    /// The lane in both words, with a stamp of zeros.
    fn packed(&self, shrinking: Shrinking) -> Words {
        let bits = self.bits.iter().chain([&true]);
        let suffix = bits.fold(0, |suffix, bit| suffix << 1 | u64::from(*bit))
            << (shrinking.suffix_bits() as usize - self.bits.len() + usize::from(shrinking.stamp));
        match shrinking.lanes.is_wide() {
            false => {
                let heads = u64::from(self.anchor) << to_anchor(shrinking) | suffix;
                Words { heads, tails: 0 }
            }
            true => Words { heads: u64::from(self.anchor), tails: suffix },
        }
    }

    fn fingerprint(&self, shrinking: Shrinking) -> Fingerprint {
        let Words { heads, tails } = self.packed(shrinking);
        Fingerprint::new(heads as u32).expect("a head").with_tail(tails)
    }
}

/// The number of bits below the anchor in a narrow lane.
fn to_anchor(shrinking: Shrinking) -> u32 {
    u32::from(shrinking.suffix + shrinking.stamp)
}

fn words(shrinking: Shrinking, plain: &[Option<Plain>]) -> Words {
    let bits = shrinking.lanes.bits() as usize;
    let mut words = Words::default();
    for (at, lane) in plain.iter().enumerate() {
        let Words { heads, tails } =
            lane.as_ref().map_or(Words::default(), |lane| lane.packed(shrinking));
        words.heads |= heads << (at * bits);
        words.tails |= tails << (at * bits);
    }
    words
}

fn random_word(rng: &mut SmallRng, shrinking: Shrinking) -> Vec<Option<Plain>> {
    (0..shrinking.lanes.slots())
        .map(|_| {
            let bits = rng.random_range(0..=shrinking.suffix_bits());
            rng.random_bool(0.8).then(|| Plain::random(rng, shrinking, bits))
        })
        .collect()
}

fn for_random_words(mut check: impl FnMut(&mut SmallRng, Shrinking, Vec<Option<Plain>>)) {
    let mut rng = SmallRng::seed_from_u64(1);
    for shrinking in all_shrinkings() {
        for _ in 0..10_000 {
            let plain = random_word(&mut rng, shrinking);
            check(&mut rng, shrinking, plain);
        }
    }
}

/// The encodings of all layouts, without stamps and with stamps of some sizes.
fn all_shrinkings() -> impl Iterator<Item = Shrinking> {
    let with = |ticks: u8| all_lanes().map(move |lanes| (lanes, ticks));
    let forgetful = [2, 6, 62].into_iter().flat_map(with);
    let forgetful = forgetful.map(|(lanes, ticks)| lanes.remembering(ticks));
    let have_room = forgetful.filter(|lanes| lanes.bits() >= lanes.stamp_bits() + 4);
    let all = all_lanes().chain(have_room);
    all.map(|lanes| Shrinking::new(lanes, 1.0))
}

/// The bucket with a random stamp in each taken lane.
fn stamped(rng: &mut SmallRng, shrinking: Shrinking, words: Words) -> Words {
    let lanes = shrinking.lanes;
    lanes.taken(words.heads).fold(words, |words, lane| {
        let age = rng.random_range(0..=lanes.last_stamp());
        lanes.with_age(words, lane, age, Moment::FIRST)
    })
}

/// The bucket with stamps of zeros in all taken lanes.
fn unstamped(shrinking: Shrinking, words: Words) -> Words {
    let lanes = shrinking.lanes;
    let zero = |words, lane| lanes.with_age(words, lane, 0, Moment::FIRST);
    lanes.taken(words.heads).fold(words, zero)
}

#[test]
fn a_lane_matches_the_items_that_agree_in_all_bits_left() {
    for_random_words(|rng, shrinking, mut plain| {
        let mut item = Plain::random(rng, shrinking, shrinking.suffix_bits());
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
        let fp = item.fingerprint(shrinking);
        let words = stamped(rng, shrinking, words(shrinking, &plain));
        let matching = match shrinking.lanes.is_wide() {
            false => shrinking.matching(words.heads, fp),
            true => {
                let anchors = shrinking.lanes.matching(words.heads, fp);
                anchors.and(shrinking.matching_tail(words.tails, fp))
            }
        };
        let matching_bits = |lane: &Option<Plain>| {
            let left = lane.as_ref().filter(|lane| lane.anchor == item.anchor)?;
            item.bits.starts_with(&left.bits).then_some(left.bits.len())
        };
        let expected: Vec<usize> = plain.iter().filter_map(matching_bits).collect();
        assert_eq!(matching.len(), expected.len(), "{plain:?} {item:?}");
        let lost = matching.map(|lane| shrinking.lost(shrinking.suffixes(words), lane) as usize);
        let left: Vec<usize> = lost.map(|lost| shrinking.suffix_bits() as usize - lost).collect();
        assert_eq!(left, expected);
    });
}

fn fingerprint(shrinking: Shrinking, anchor: u32, suffix: u32) -> Fingerprint {
    let is_wide = shrinking.lanes.is_wide();
    shrinking.fingerprint(shrinking.anchor(anchor, is_wide), suffix, is_wide)
}

#[test]
fn a_fingerprint_is_made_of_random_bits_and_a_suffix() {
    for_random_words(|rng, shrinking, _| {
        let item = Plain::random(rng, shrinking, shrinking.suffix_bits());
        let bits = item.bits.iter().fold(0, |bits, bit| bits << 1 | u32::from(*bit));
        let anchor = match shrinking.lanes.is_wide() {
            false => item.anchor << to_anchor(shrinking),
            // The middle of the part of all numbers that has this anchor.
            true => {
                let part = u32::MAX / shrinking.lanes.last_head() as u32;
                (item.anchor - 1) * part + part / 2
            }
        };
        // Above the `1` and the stamp.
        let suffix = bits << (1 + shrinking.stamp);
        let fp = fingerprint(shrinking, anchor, suffix);
        assert_eq!(fp, item.fingerprint(shrinking));
    });
}

#[test]
fn a_split_sorts_lanes_by_the_first_bit_left() {
    for_random_words(|rng, shrinking, plain| {
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
        let whole = stamped(rng, shrinking, words(shrinking, &plain));
        let expected = [words(shrinking, &half(false)), words(shrinking, &half(true))];
        let halves = shrinking.split(whole);
        let found = [halves.lower, halves.upper].map(|half| unstamped(shrinking, half));
        assert_eq!(found, expected, "{plain:?}");
        // Each lane keeps its place and its stamp.
        let age = |words, lane| shrinking.lanes.age(words, lane, Moment::FIRST);
        for half in [halves.lower, halves.upper] {
            for lane in shrinking.lanes.taken(half.heads) {
                assert_eq!(age(half, lane), age(whole, lane));
            }
        }
        let void = plain.iter().flatten().filter(|lane| lane.bits.is_empty()).count();
        assert_eq!(shrinking.void_lanes(whole).len(), void);
    });
}

#[test]
fn either_bucket_yields_the_other_whatever_the_suffix() {
    for shrinking in all_shrinkings() {
        for bucket in (0..GROWING_BUCKETS).map(Bucket) {
            let anchor = bucket.0.reverse_bits() | bucket.0;
            let fp = |suffix| fingerprint(shrinking, anchor, suffix);
            let other = shrinking.alternate(bucket, fp(0));
            assert!(other != bucket && other.0 < GROWING_BUCKETS);
            assert_eq!(shrinking.alternate(other, fp(u32::MAX)), bucket);
        }
    }
}

#[test]
fn each_bit_a_lane_has_lost_doubles_its_weight() {
    for_random_words(|rng, shrinking, plain| {
        let of = |lane: &Plain| 1 << (shrinking.suffix_bits() as usize - lane.bits.len());
        let expected: u64 = plain.iter().flatten().map(of).sum();
        let words = stamped(rng, shrinking, words(shrinking, &plain));
        let found = shrinking.match_weight(words);
        assert_eq!(found, expected);
    });
}

#[test]
fn a_taken_lane_without_a_one_in_its_suffix_is_reported() {
    for_random_words(|rng, shrinking, plain| {
        let words = stamped(rng, shrinking, words(shrinking, &plain));
        let without_a_one = |words| shrinking.without_a_one(words);
        assert!(without_a_one(words).is_empty());
        let taken: Vec<Lane> = shrinking.lanes.taken(words.heads).collect();
        let Some(lane) = taken.get(rng.random_range(0..taken.len().max(1))) else { return };
        let damaged = match shrinking.lanes.is_wide() {
            false => {
                let anchor = Fingerprint::new(1 << to_anchor(shrinking)).expect("an anchor");
                Words { heads: shrinking.lanes.with(words.heads, *lane, anchor), tails: 0 }
            }
            // Only the stamp is left.
            true => {
                let bits =
                    shrinking.lanes.value(words.tails, *lane) & u64::from(shrinking.in_a_suffix);
                let tails = shrinking.lanes.value(words.tails, *lane) ^ bits;
                let without = shrinking.lanes.without(words.tails, *lane);
                let tails = Fingerprint::new(tails as u32)
                    .map_or(without, |stamp| shrinking.lanes.with(without, *lane, stamp));
                Words { tails, ..words }
            }
        };
        let without = without_a_one(damaged);
        assert_eq!((without.first(), without.len()), (Some(*lane), 1));
    });
}

#[test]
fn an_entry_is_covered_by_what_agrees_and_has_lost_as_much() {
    for_random_words(|rng, shrinking, mut plain| {
        let bits = rng.random_range(0..=shrinking.suffix_bits());
        let mut entry = Plain::random(rng, shrinking, bits);
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
        let words = stamped(rng, shrinking, words(shrinking, &plain));
        let alone = stamped(rng, shrinking, entry.packed(shrinking));
        let fp = shrinking.lanes.get_whole(alone, Lane::LOWEST).expect("an entry");
        let lost = shrinking.lost_by(fp) as usize;
        assert_eq!(lost, shrinking.suffix_bits() as usize - entry.bits.len());
        let MergeMatches { covering, finer } = shrinking.merge_matches(words, fp);
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
        let all: Vec<Lane> = shrinking.lanes.set_of(shrinking.lanes.tops()).collect();
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

/// A lane regains the bits of the levels between the two depths, as far as its suffix has room for them. A void lane
/// stays void.
#[test]
fn a_bucket_of_one_depth_becomes_one_of_another() {
    for_random_words(|rng, shrinking, plain| {
        let whole = stamped(rng, shrinking, words(shrinking, &plain));
        let (position, depth) = (rng.random::<u64>(), rng.random_range(0..20));
        let levels = rng.random_range(0..5);
        let is_upper = |level: u32| position << level >> 63 == 1;
        let half = |words, level| {
            let halves = shrinking.split(words);
            if is_upper(level) { halves.upper } else { halves.lower }
        };
        let deeper = (depth..depth + levels).fold(whole, half);
        let shallower = shrinking.joined_to_depth(whole, (depth + levels, depth), position);
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
            if !bits.is_empty() {
                (depth..depth + levels).rev().for_each(|level| bits.insert(0, is_upper(level)));
            }
            bits.truncate(shrinking.suffix_bits() as usize);
            Some(Plain { anchor, bits })
        };
        for (found, expected) in [
            (deeper, plain.iter().map(split).collect::<Vec<_>>()),
            (shallower, plain.iter().map(joined).collect()),
        ] {
            assert_eq!(unstamped(shrinking, found), words(shrinking, &expected), "{plain:?}");
            for lane in shrinking.lanes.taken(found.heads) {
                let age = |words| shrinking.lanes.age(words, lane, Moment::FIRST);
                assert_eq!(age(found), age(whole));
            }
        }
    });
}

#[test]
fn bits_grow_with_the_logarithm() {
    let least = |growth: f64| (0..).find(|exponent| f64::from(*exponent).exp2() >= growth);
    for growth in [1.0, 1.000_1, 2.0, 2.1, 3.0, 4.0, 255.9, 256.0, 256.1, 8_192.0, 1e6, 4e9] {
        assert_eq!(bits_for(growth), least(growth).expect("a power") + 2, "{growth}");
    }
    assert!(bits_for(f64::MAX) > 60);
}

#[test]
fn the_example_on_the_page_is_right() {
    let shrinking = Shrinking::new(Lanes::of_bits(16), 1.0);
    let bucket = |heads| Words { heads, tails: 0 };
    let halves = shrinking.split(bucket(0x5CB3));
    assert_eq!((halves.lower, halves.upper), (bucket(0), bucket(0x5C66)));
    let other = Fingerprint::new(0x5C65).expect("a fingerprint");
    assert_eq!(shrinking.matching(0x5C66, other).len(), 1);
    assert_eq!(shrinking.joined(bucket(0x5C66), true), bucket(0x5CB3));
}

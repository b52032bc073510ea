use super::*;

const ALL: [Lanes; 8] = [
    Lanes::of_bits(2),
    Lanes::of_bits(8),
    Lanes::of_bits(9),
    Lanes::of_bits(10),
    Lanes::of_bits(12),
    Lanes::of_bits(16),
    Lanes::of_bits(21),
    Lanes::of_bits(32),
];

/// Finds lanes the plain way, one at a time.
fn lanes_where(lanes: Lanes, word: u64, wanted: impl Fn(u64) -> bool) -> Vec<u8> {
    let mask = lanes.fingerprints();
    (0..lanes.slots)
        .map(|slot| slot * lanes.bits)
        .filter(|&shift| wanted((word >> shift) & mask))
        .collect()
}

fn shifts(set: LaneSet) -> Vec<u8> {
    set.map(|lane| lane.shift).collect()
}

#[test]
fn matches_empties_and_taken_are_exact_for_neighbouring_values() {
    for lanes in ALL {
        let top = lanes.fingerprints();
        // The values at which borrows and carries would cross into the next lane.
        let values = [0, 1, 2, top / 2, top / 2 + 1, top - 1, top];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut word = 0;
            for slot in 0..lanes.slots {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                word |= values[(seed >> 33) as usize % values.len()] << (slot * lanes.bits);
            }
            assert_eq!(shifts(lanes.empty(word)), lanes_where(lanes, word, |v| v == 0));
            assert_eq!(shifts(lanes.taken(word)), lanes_where(lanes, word, |v| v != 0));
            for value in &values[1..] {
                let fp = Fingerprint::new(*value as u32).unwrap();
                let found = lanes.matching(word, fp);
                assert_eq!(shifts(found), lanes_where(lanes, word, |v| v == *value));
                assert_eq!(found.len(), shifts(found).len());
                assert_eq!(found.is_empty(), shifts(found).is_empty());
            }
        }
    }
}

#[test]
fn taken_lanes_are_counted_over_many_words() {
    for lanes in ALL {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed ^ seed >> 29
        };
        let full = lanes.ones * lanes.fingerprints();
        for length in [0, 1, 100, 128, 129, 1_000] {
            let words: Vec<u64> = (0..length).map(|_| random() & random() & random()).collect();
            let expected: usize = words.iter().map(|word| lanes.taken(*word).len()).sum();
            assert_eq!(lanes.count_taken(&words), expected);
            assert_eq!(lanes.count_taken(&vec![full; length]), length * lanes.slots());
        }
    }
}

#[test]
fn a_lane_written_is_read_back_and_leaves_its_neighbours_alone() {
    for lanes in ALL {
        let full = Fingerprint::new(lanes.fingerprints() as u32).unwrap();
        let one = Fingerprint::new(1).unwrap();
        let word = lanes.empty(0).fold(0, |word, lane| lanes.with(word, lane, full));
        assert_eq!(lanes.taken(word).len(), lanes.slots());
        for lane in lanes.taken(word) {
            let changed = lanes.with(word, lane, one);
            assert_eq!(lanes.get(changed, lane), Some(one));
            assert_eq!(lanes.matching(changed, full).len(), lanes.slots() - 1);
            let cleared = lanes.without(word, lane);
            assert_eq!(lanes.get(cleared, lane), None);
            assert_eq!(lanes.empty(cleared).first(), Some(lane));
            assert_eq!(lanes.matching(cleared, full).len(), lanes.slots() - 1);
        }
    }
}

#[test]
fn a_fingerprint_in_a_wide_bucket_has_its_halves_in_the_same_lane_of_both_words() {
    for lanes in all_lanes().filter(|lanes| lanes.is_wide()) {
        let top = lanes.last_head();
        let fp = |head: u64, tail| Fingerprint::new(head as u32).unwrap().with_tail(tail);
        let full = lanes
            .empty(0)
            .fold(Words::default(), |words, lane| lanes.with_whole(words, lane, fp(top, top)));
        assert_eq!(full, Words { heads: lanes.ones() * top, tails: lanes.ones() * top });
        assert_eq!(lanes.count_taken(&[full.heads, full.tails, 0, 0]), lanes.slots());
        assert_eq!(lanes.wrong(full), 0);
        for lane in lanes.taken(full.heads) {
            for other in [fp(1, 0), fp(top, 0), fp(1, top), fp(top - 1, 1)] {
                let words = lanes.with_whole(full, lane, other);
                assert_eq!(lanes.get_whole(words, lane), Some(other));
                let both = |fp| {
                    let heads = lanes.matching(words.heads, fp);
                    heads.and(lanes.matching_tail(words.tails, fp)).len()
                };
                assert_eq!((both(other), both(fp(top, top))), (1, lanes.slots() - 1));
            }
            let without = lanes.without_whole(full, lane);
            assert_eq!((lanes.get_whole(without, lane), lanes.wrong(without)), (None, 0));
            // A tail without a head.
            let damaged = Words { heads: without.heads, ..full };
            assert_ne!(lanes.wrong(damaged), 0);
        }
    }
}

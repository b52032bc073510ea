use super::*;
use crate::layout::bucket::all_lanes;

/// All layouts with enough bits for stamps, for several numbers of ticks.
fn forgetful() -> impl Iterator<Item = Lanes> {
    let windows = [1, 2, 3, 6, 7, 14, 30, 31, MAX_TICKS];
    let all = windows.into_iter().flat_map(|ticks| all_lanes().map(move |it| (it, ticks)));
    all.map(|(lanes, ticks)| lanes.remembering(ticks)).filter(|it| it.bits() > it.stamp_bits())
}

fn moments() -> impl Iterator<Item = Moment> {
    [0, 1, 5, 62, 63, 64, 1_000, (u64::MAX >> 2) - 1].into_iter().flat_map(|tick| {
        let before = Moment::of_tick(tick.wrapping_sub(1));
        [Moment::of_tick(tick), before.next(false), before.next(true)]
    })
}

/// Buckets with random fingerprints of random ages up to one tick more than is remembered.
fn buckets(lanes: Lanes, now: Moment) -> impl Iterator<Item = (Words, Vec<Option<u64>>)> {
    let mut seed = 7u64;
    (0..200).map(move |_| {
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut words = Words::default();
        let mut ages = Vec::new();
        for lane in lanes.empty(0) {
            let Some(age) = next(5).checked_sub(1).map(|_| next(lanes.remembers() as u64 + 2))
            else {
                ages.push(None);
                continue;
            };
            let unit = u64::from(lanes.unit_of_heads());
            let head = 1 + next(lanes.last_head() / unit);
            let tails = if lanes.is_wide() { next(lanes.last_head() + 1) } else { 0 };
            let fp = Fingerprint::new((head * unit) as u32).expect("not zero");
            let fp = fp.with_tail(tails & !u64::from(lanes.unit_of_tails() - 1));
            words = lanes.with_whole(words, lane, lanes.stamped(fp, now));
            words = lanes.with_age(words, lane, age, now);
            ages.push(Some(age));
        }
        (words, ages)
    })
}

#[test]
fn a_stamp_takes_as_many_bits_as_ticks_and_two_more_need() {
    let bits = |ticks| Lanes::of_bits(16).remembering(ticks).stamp_bits();
    let expected = [(0, 0), (1, 2), (2, 2), (3, 3), (6, 3), (7, 4), (14, 4), (30, 5), (62, 6)];
    for (ticks, wanted) in expected {
        assert_eq!(bits(ticks), wanted, "{ticks} ticks");
    }
    let lanes = Lanes::of_bits(16).remembering(6);
    assert_eq!(lanes.fingerprints(), (1 << 13) - 1);
    assert_eq!(Lanes::of_wide(24).remembering(6).fingerprints(), ((1 << 12) - 1) << 9);
}

#[test]
fn exactly_the_lanes_that_are_too_old_expire() {
    for lanes in forgetful() {
        for now in moments() {
            let (mut all, mut all_left, mut gone) = (Vec::new(), Vec::new(), 0);
            for (words, ages) in buckets(lanes, now) {
                let is_old = |age: u64| match now.ends_all() {
                    false => age == u64::from(lanes.remembers()) + 1,
                    true => age > 0,
                };
                let expired = lanes.expired(words, now);
                let mut left = words;
                for (lane, age) in lanes.empty(0).zip(&ages) {
                    let expected = age.is_some_and(is_old);
                    assert_eq!(expired.clone().any(|it| it == lane), expected, "{lanes:?} {now:?}");
                    if let Some(age) = *age {
                        assert_eq!(lanes.age(words, lane, now), age);
                        let stamp = lanes.stamp(words, lane) as u8;
                        assert_eq!(lanes.has_stamp_expired(stamp, now), expected);
                    }
                    if expected {
                        left = lanes.without_whole(left, lane);
                    }
                }
                let both = |Words { heads, tails }| [heads, tails].into_iter().take(lanes.words());
                all.extend(both(words));
                all_left.extend(both(left));
                gone += expired.len() as u64;
                let too_old = |age: &Option<u64>| *age > Some(lanes.remembers().into());
                let is_wrong = lanes.wrong_stamps(words, now) != 0;
                assert_eq!(is_wrong, ages.iter().any(too_old));
            }
            let expiry = lanes.expiry(now);
            let sum: u64 = all.chunks_mut(128).map(|words| expiry.erase(words)).sum();
            assert_eq!((all, sum), (all_left, gone), "{lanes:?} {now:?}");
        }
    }
}

#[test]
fn fingerprints_are_compared_without_their_stamps() {
    for lanes in forgetful() {
        let now = Moment::of_tick(19);
        for (words, _) in buckets(lanes, now) {
            for lane in lanes.taken(words.heads) {
                let plain = lanes.with_age(words, lane, now.tick(), now);
                let fp = lanes.get_whole(plain, lane).expect("taken");
                for age in 0..=u64::from(lanes.remembers()) + 1 {
                    let words = lanes.with_age(words, lane, age, now);
                    let found = match lanes.is_wide() {
                        false => lanes.matching(words.heads, fp),
                        true => {
                            let heads = lanes.matching(words.heads, fp);
                            heads.and(lanes.matching_tail(words.tails, fp))
                        }
                    };
                    assert!(found.clone().any(|it| it == lane));
                    let same = found.clone().all(|it| {
                        let plain = lanes.with_age(words, it, now.tick(), now);
                        lanes.get_whole(plain, it) == Some(fp)
                    });
                    assert!(same);
                }
            }
        }
    }
}

#[test]
fn nothing_expires_in_a_filter_that_remembers_for_ever() {
    for lanes in all_lanes() {
        let full = Words { heads: u64::MAX >> 1, tails: u64::MAX >> 1 };
        for now in moments() {
            assert!(lanes.expired(full, now).is_empty());
        }
    }
}

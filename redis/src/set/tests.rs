//! Sets are equal if the same was done to them, however far the ticks have come that pass in them.

use crate::set::Set;
use crate::set::items::Answer;
use crate::set::spec::FilterSpec;
use koel::{FullKind, Prehashed, StableHash};

/// A set of this expansion, in the tick 1,000.
fn set(capacity: u64, expansion: u16) -> Set {
    let hasher = StableHash::with_seed(7);
    let spec =
        FilterSpec { hasher, expansion, forget_after: 14, ..FilterSpec::new(capacity, 0.01) };
    let Ok(set) = Set::new(spec) else { panic!("no memory") };
    set.begin_tick(1_000);
    set
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn digest(set: &Set) -> Vec<u8> {
    let mut bytes = Vec::new();
    set.each_digested(|chunk| bytes.extend_from_slice(chunk));
    bytes
}

/// Does the same to a set whose ticks pass when something else ends them, and to one in which parts of them pass at
/// other times.
fn compare(capacity: u64, expansion: u16, rounds: u64) {
    let (mut primary, mut replica) = (set(capacity, expansion), set(capacity, expansion));
    let (mut random, mut tick) = (Random(capacity), 1_000);
    let [mut refused, mut were_ticking] = [0, 0];
    let most = usize::MAX;
    let first: Vec<_> = (0..capacity).map(|item| primary.hash(&item.to_le_bytes())).collect();
    for set in [&mut primary, &mut replica] {
        set.add_many(&first, most, &mut vec![Ok(false); first.len()]);
    }
    for round in 0..rounds {
        let count = 1 + random.below(capacity.min(40_000) / 4) as usize;
        let hashes: Vec<Prehashed> =
            (0..count).map(|_| primary.hash(&random.below(4 * capacity).to_le_bytes())).collect();
        let kind = random.below(100);
        if kind >= 85 {
            tick += if random.below(20) == 0 { 20 } else { 1 };
        }
        let act = |set: &mut Set| -> Vec<Answer> {
            let mut answers = vec![Ok(false); hashes.len()];
            match kind {
                0..15 => answers[0] = set.add(hashes[0], most),
                15..30 => answers[0] = set.add_if_absent(hashes[0], most),
                30..45 => set.add_many(&hashes, most, &mut answers),
                45..60 => set.add_many_if_absent(&hashes, most, &mut answers),
                60..80 => {
                    let each = answers.iter_mut().zip(&hashes).take(50);
                    each.for_each(|(answer, hash)| *answer = Ok(set.remove(*hash)));
                }
                80..83 => *set = set.try_clone().expect("memory"),
                83..85 => {
                    let mut other = set.try_clone().expect("memory");
                    hashes.iter().for_each(|hash| _ = other.remove(*hash));
                    hashes.iter().rev().for_each(|hash| _ = other.add(*hash, most));
                    answers[0] = match set.merged(&[&other], most) {
                        Ok(merged) => {
                            *set = merged;
                            Ok(true)
                        }
                        Err(_) => Err(FullKind::NoRoomNearby),
                    };
                }
                _ => set.begin_tick(tick),
            }
            answers
        };
        let (here, there) = (act(&mut primary), act(&mut replica));
        assert_eq!(here, there, "{capacity}, {expansion}: round {round}, {kind}");
        refused += here.iter().filter(|answer| answer.is_err()).count();
        match random.below(4) {
            0 => _ = replica.pass_first_part(),
            1 => _ = replica.pass_part(),
            _ => {}
        }
        let differ = primary.is_ticking() && !replica.is_ticking();
        were_ticking += usize::from(differ);
        if random.below(if differ { 2 } else { 30 }) == 0 {
            let when = format!("{capacity}, {expansion}: round {round}");
            // Either ends the tick.
            match random.below(2) {
                0 => assert_eq!(primary.stats(), replica.stats(), "{when}"),
                _ => assert!(digest(&primary) == digest(&replica), "{when}"),
            }
        }
    }
    assert!(digest(&primary) == digest(&replica), "{capacity}, {expansion}");
    assert_eq!(primary.stats(), replica.stats());
    assert!(were_ticking > 0, "no tick passed here later than there");
    assert!(refused > 0 || expansion > 0, "a set of fixed size that never was full");
}

#[test]
fn tables_and_figures_are_equal_whenever_what_expires_is_erased() {
    compare(3_000, 0, 500);
    compare(300_000, 0, 80);
    compare(300_000, 1, 50);
}

use super::*;
use std::collections::BTreeMap;

fn insert(list: &mut List, hash: Mixed, stamp: u8) {
    if !list.insert(hash, stamp) {
        let longer = list.longer().expect("memory");
        *list = longer;
        assert!(list.insert(hash, stamp), "no room for one more");
    }
}

fn hashes(list: &List) -> Vec<u64> {
    list.items().map(|(hash, _)| hash).collect()
}

fn stamps(list: &List) -> Vec<u8> {
    list.items().map(|(_, stamp)| stamp).collect()
}

/// Hashes from the whole range, hashes from a corner of it, and a few hashes again and again.
fn streams() -> [Vec<u64>; 4] {
    let random = |n: u64| Mixed::of(n).0;
    let all = 0..3_000;
    [
        all.clone().map(random).collect(),
        all.clone().map(|n| GAP - 1 - random(n) % 5_000).collect(),
        all.clone().map(|n| random(n) % 5_000).collect(),
        all.map(|n| random(n % 50)).collect(),
    ]
}

#[test]
fn a_list_agrees_with_a_multiset() {
    for stream in streams() {
        let (mut list, mut set) = (List::new(false), BTreeMap::<u64, usize>::new());
        for (step, &hash) in stream.iter().enumerate() {
            insert(&mut list, Mixed(hash), 0);
            *set.entry(hash).or_default() += 1;
            let other = stream[Mixed::of(step as u64 + 1).0 as usize % stream.len()];
            if step % 3 == 0 {
                let copies = set.entry(other).or_default();
                assert_eq!(list.remove(Mixed(other), u64::from), *copies > 0);
                *copies = copies.saturating_sub(1);
            }
            let copies = set.get(&other).copied().unwrap_or(0);
            assert_eq!(
                (list.count(Mixed(other)), list.contains(Mixed(other))),
                (copies, copies > 0)
            );
            let slots = list.slots();
            assert_eq!(
                (slots.count(Mixed(other)), slots.contains(Mixed(other))),
                (copies, copies > 0)
            );
        }
        let expected = set.iter().flat_map(|(hash, copies)| std::iter::repeat_n(*hash, *copies));
        assert!(expected.eq(hashes(&list)));
        assert_eq!(list.len(), hashes(&list).len());
        assert!(!list.contains(Mixed(GAP)) && !list.slots().contains(Mixed(GAP)));
        assert_eq!((list.count(Mixed(GAP)), list.slots().count(Mixed(GAP))), (0, 0));
    }
}

#[test]
fn a_list_with_stamps_agrees_with_a_map_of_them() {
    for stream in streams() {
        let (mut list, mut map) = (List::new(true), BTreeMap::<u64, Vec<u8>>::new());
        for (step, &hash) in stream.iter().enumerate() {
            let day = (step / 100) as u8;
            insert(&mut list, Mixed(hash), day);
            map.entry(hash).or_default().push(day);
            let other = stream[Mixed::of(step as u64 + 1).0 as usize % stream.len()];
            let copies = map.entry(other).or_default();
            match step % 5 {
                0 => {
                    let oldest = copies.iter().min().copied();
                    let removed = list.remove(Mixed(other), |stamp| 255 - u64::from(stamp));
                    assert_eq!(removed, oldest.is_some());
                    let at = copies.iter().position(|stamp| Some(*stamp) == oldest);
                    at.map(|at| copies.remove(at));
                }
                1 => {
                    assert_eq!(list.refresh(Mixed(other), day), !copies.is_empty());
                    copies.fill(day);
                }
                2 if step % 100 == 2 => {
                    list.expire(|stamp| stamp + 5 < day);
                    map.values_mut().for_each(|copies| copies.retain(|it| it + 5 >= day));
                }
                _ => {}
            }
            let copies = map.get(&other).map_or(0, Vec::len);
            assert_eq!(list.count(Mixed(other)), copies);
        }
        let expected = map.iter().flat_map(|(hash, copies)| copies.iter().map(|_| *hash));
        assert!(expected.eq(hashes(&list)));
        let mut found: Vec<_> = list.items().collect();
        let mut expected: Vec<_> = map
            .iter()
            .flat_map(|(hash, copies)| copies.iter().map(|stamp| (*hash, *stamp)))
            .collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let again = List::of(&hashes(&list), Some(&stamps(&list)));
        assert!(again.expect("memory").items().eq(list.items()));
    }
}

#[test]
fn an_empty_list_takes_48_bytes_and_a_long_one_nine_bytes_an_item() {
    let mut list = List::new(false);
    assert_eq!((list.heap_bytes(), list.len(), list.contains(Mixed(7))), (48, 0, false));
    assert!(!list.remove(Mixed(7), u64::from));
    for n in 1..20_000 {
        insert(&mut list, Mixed::of(n), 0);
        assert!(list.heap_bytes() <= 9 * n as usize + 250, "{n}: {}", list.heap_bytes());
    }
}

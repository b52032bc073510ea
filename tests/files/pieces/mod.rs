//! Filters in pieces: what pieces hold, which cursors they have, and that a filter comes back from
//! them.

mod in_use;
mod parts;
mod refused;

use crate::common::{Hashes, SplitMix, bytes_of, layouts, rounds};
use crate::file::{END_WORDS, ENTRY_WORDS, FilterFile, HEADER_WORDS, word};
use crate::{Filter, HASH, builder, with_items};
use koel::{Piece, Prehashed, SnapshotErrorKind};

/// Sizes of pieces: one shard each, a few, and all of them.
const SIZES: [usize; 4] = [0, 200_000, 1 << 20, usize::MAX];

pub fn pieces_of(filter: &Filter, most_bytes: usize) -> Vec<Piece> {
    filter.pieces(most_bytes).collect::<Result<_, _>>().expect("pieces")
}

pub fn cut(pieces: &[Piece]) -> Vec<FilterFile> {
    pieces.iter().map(|piece| FilterFile::cut(piece.as_bytes())).collect()
}

/// Pushes all pieces.
pub fn loaded(pieces: &[Piece]) -> Filter {
    let mut loader = Filter::loader();
    for piece in pieces {
        assert!(loader.next().is_some());
        loader.push(piece.as_bytes()).expect("the next piece");
        assert_eq!(loader.next(), piece.next());
    }
    loader.finish().expect("all pieces")
}

pub fn growing(capacity: usize, rate: f64) -> Filter {
    let builder = builder(capacity).false_positive_rate(rate).growing().expected_growth(50.0);
    builder.build().expect("a filter")
}

/// Checks that the pieces match the specification, and that the filter comes back from them.
fn check(filter: &Filter) {
    let bytes = bytes_of(filter);
    for most_bytes in SIZES {
        let pieces = pieces_of(filter, most_bytes);
        let words = cut(&pieces);
        let file = FilterFile::joined(&words);
        assert!(file.bytes() == bytes, "the pieces do not make up the file");
        file.check();
        for (piece, words) in pieces.iter().zip(&words) {
            let size = piece.as_bytes().len();
            assert!(size <= most_bytes || words.blocks.len() == 1);
            let is_last = words.end_place() == words.roots() << 31;
            assert_eq!(piece.next(), (!is_last).then_some(words.end_place()));
            // There would not have been room for one more.
            let shard = 8 * (words.shard_words() + ENTRY_WORDS);
            assert!(is_last || most_bytes - size.min(most_bytes) < shard);
        }
        let again = loaded(&pieces);
        assert!(bytes_of(&again) == bytes);
        assert_eq!((again.len(), again.capacity()), (filter.len(), filter.capacity()));
        let (stats, before) = (again.stats(), filter.stats());
        assert_eq!(stats.splits, before.splits);
        assert_eq!(stats.directory_depth, before.directory_depth);
        // It is calculated from what was counted in each block.
        assert_eq!(stats.false_positive_rate, before.false_positive_rate);
        let mut any = Filter::loader();
        pieces.iter().for_each(|piece| any.push(piece.as_bytes()).expect("the next piece"));
        assert_eq!(any.next(), None);
        let any = bytes_of(&any.finish().expect("all pieces"));
        assert!(any == bytes);
    }
}

#[test]
fn a_fixed_filter_comes_back_from_its_pieces() {
    for layout in layouts() {
        let few = rounds(&[0, 1_000][..], &[0, 1, 10, 1_000, 20_000]);
        // This capacity takes several shards.
        let large = (rounds(30_000, 1_000_000), 1_000_000);
        for (items, capacity) in few.iter().map(|&items| (items, items)).chain([large]) {
            check(&with_items(layout.filter_with(capacity as usize, HASH), items));
        }
    }
}

#[test]
fn a_growing_filter_comes_back_from_its_pieces_and_grows_on() {
    for layout in layouts() {
        let (some, many) = rounds((30_000, 150_000), (600_000, 300_000));
        for (capacity, items) in [(1_000, 0), (1_000, some), (rounds(100_000, 200_000), many)] {
            let filter = growing(capacity, (16.0 * layout.rate).min(0.9));
            (0..items).for_each(|item: u64| filter.insert(&item).expect("memory"));
            check(&filter);
            (0..items / 2).for_each(|item| assert!(filter.remove(&item)));
            check(&filter);
            let again = loaded(&pieces_of(&filter, 1 << 20));
            for item in items / 2..2 * items + rounds(100_000, 200_000) {
                if item >= items {
                    again.insert(&item).expect("memory");
                }
                assert!(again.contains(&item), "{item}");
            }
            assert!((items / 2..items).all(|item| again.remove(&item)));
            assert!(again.stats().splits > filter.stats().splits);
        }
    }
}

#[test]
fn a_shard_is_one_piece() {
    for items in [0, 1, 10, 1_000, 8_000u64] {
        let filter = growing(10, 0.001);
        (0..items).for_each(|item| filter.insert(&item).expect("memory"));
        assert_eq!(pieces_of(&filter, 0).len(), 1);
        check(&filter);
        for cursor in [1, 1 << 31, 1 << 63, u64::MAX] {
            let error = filter.piece_at(cursor, 0).expect_err("no piece");
            assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
        }
        // The mark has a word.
        let around = 8 * (HEADER_WORDS + 1 + ENTRY_WORDS + END_WORDS);
        assert_eq!(bytes_of(&filter).len(), (64 << 10) + around);
        // It goes on as a filter that was never saved does.
        let again = Filter::read_from(&bytes_of(&filter)[..]).expect("a filter");
        for item in items..items + 20_000 {
            assert_eq!(again.insert(&item).is_ok(), filter.insert(&item).is_ok());
        }
        assert!(bytes_of(&again) == bytes_of(&filter));
    }
}

/// Every cursor is that of a shard, or refused.
fn cursors(filter: &Filter) {
    let words = cut(&pieces_of(filter, usize::MAX));
    let places: Vec<u64> = words[0].places().map(|(place, _)| place).collect();
    let beside = places.iter().flat_map(|place| [place.wrapping_sub(1), *place, place + 1]);
    let roots = words[0].roots();
    let shifts = (0..64).map(|bit| 1 << bit);
    let others = [u64::MAX, (roots << 31) - 1, roots << 31, (roots << 31) + 1, roots << 32];
    let random = SplitMix(1).take(rounds(100, 500));
    let inside = random.iter().map(|n| n % (roots << 31));
    // Places where the shards would be halved next.
    let halves = words[0].blocks.iter().zip(&places);
    let halves = halves.map(|(block, place)| place + (1 << 30 >> block[word::DEPTH]));
    let all = beside.chain(shifts).chain(others).chain(random.clone()).chain(inside).chain(halves);
    let mut found = 0;
    for cursor in all {
        match filter.piece_at(cursor, 0) {
            Ok(piece) => {
                assert!(places.binary_search(&cursor).is_ok(), "{cursor}");
                let at = FilterFile::cut(piece.as_bytes());
                at.check_part();
                assert_eq!(at.start(), cursor);
                found += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
                assert!(error.to_string().contains(&cursor.to_string()));
                assert!(places.binary_search(&cursor).is_err(), "{cursor}");
            }
        }
    }
    assert!(found >= places.len());
}

#[test]
fn any_number_is_the_cursor_of_a_piece_or_refused() {
    for layout in layouts().iter().take(1) {
        cursors(&layout.filter_with(100, HASH));
        cursors(&layout.filter_with(4_000_000, HASH));
    }
    // One root, and several, some of which were split.
    let many = rounds(400_000, 2_000_000);
    for (capacity, items) in [(1, 0), (1, 500_000), (300_000, 0), (300_000, many)] {
        let filter = growing(capacity, 0.005);
        (0..items).for_each(|item: u64| filter.insert(&item).expect("memory"));
        cursors(&filter);
    }
}

/// Between two pieces, shards are joined, also the one in which the cursor is.
/// Joins of shards that have been sent, or will be, do not matter to a dump. One across its end ends it.
#[test]
fn a_dump_goes_on_or_begins_again_when_its_filter_has_shrunk() {
    let hashes = SplitMix(21).take(rounds(150_000, 400_000));
    let (stay, go) = hashes.split_at(20_000);
    let mut ended = 0;
    for remembers in [0, 7] {
        for before in 0..rounds(12, 40) {
            let builder = builder(1_000).growing();
            let filter = match remembers {
                0 => builder.build().expect("memory"),
                ticks => builder.remembers(ticks).build().expect("memory"),
            };
            filter.put(&hashes);
            filter.take(go);
            let (mut loader, mut next, mut pieces) = (Filter::loader(), Some(0), 0);
            while let Some(cursor) = next {
                if pieces == before {
                    assert!(filter.shrink() > 0 || !cfg!(target_os = "linux"));
                    filter.tick();
                }
                pieces += 1;
                // One shard, or several.
                match filter.piece_at(cursor, 200_000 * (pieces % 2)) {
                    Ok(piece) => {
                        loader.push(piece.as_bytes()).expect("the next piece");
                        assert!(loader.push(piece.as_bytes()).is_err(), "a piece was taken twice");
                        assert_eq!(loader.next(), piece.next());
                        next = piece.next();
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
                        assert_eq!(pieces, before + 1, "only the piece after a join");
                        (loader, next, ended) = (Filter::loader(), Some(0), ended + 1);
                    }
                }
            }
            let again = loader.finish().expect("a whole filter");
            assert_eq!(again.len(), stay.len());
            assert!(again.has(stay));
            let absent = go.iter().filter(|hash| !again.contains(&Prehashed(**hash))).count();
            assert!(absent * 100 > go.len() * 99);
            again.take(stay);
            assert!(again.is_empty());
        }
    }
    assert!(ended > 0);
}

/// Bursts come and go between the pieces of a small filter, which shrinks after each. Nothing that stays is lost, with
/// all bits of fingerprints left and without any.
#[test]
fn nothing_is_lost_from_pieces_between_bursts() {
    let stay = SplitMix(31).take(100);
    for (rate, growth, burst) in [(0.9, 1.0, 300_000), (0.03, 30.0, 1_500_000)] {
        let builder = builder(100).growing();
        let builder = builder.false_positive_rate(rate).expected_growth(growth);
        let filter = builder.build().expect("memory");
        filter.put(&stay);
        let mut random = SplitMix(32);
        let mut burst = || {
            let hashes = random.take(burst);
            let come = hashes.iter().filter(|hash| filter.insert(&Prehashed(**hash)).is_ok());
            let come: Vec<u64> = come.copied().collect();
            come.iter().for_each(|hash| _ = filter.remove(&Prehashed(*hash)));
        };
        burst();
        let (mut loader, mut next, mut pieces) = (Filter::loader(), Some(0), 0);
        while let Some(cursor) = next {
            if pieces == 3 {
                filter.shrink();
                burst();
            }
            pieces += 1;
            next = match filter.piece_at(cursor, 0) {
                Ok(piece) => {
                    loader.push(piece.as_bytes()).expect("the next piece");
                    piece.next()
                }
                Err(error) => {
                    assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
                    loader = Filter::loader();
                    Some(0)
                }
            };
        }
        let again = loader.finish().expect("a whole filter");
        for filter in [&again, &filter] {
            let counted = filter.len();
            assert!(counted == 100 || growth == 1.0 && counted < 100, "{counted}");
            filter.shrink();
            assert!(filter.has(&stay));
            let removed = stay.iter().filter(|hash| filter.remove(&Prehashed(**hash)));
            assert_eq!((removed.count(), filter.len()), (counted, 0));
        }
    }
}

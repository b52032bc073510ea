//! Filters in pieces: which cursors they have, and what comes back from them. (`snapshots.rs` checks what they hold.)

mod in_use;
mod parts;
mod refused;

use crate::common::{Hashes, SplitMix, bytes_of, layouts, rounds};
use crate::file::{END_WORDS, ENTRY_WORDS, FilterFile, HEADER_WORDS, word};
use crate::snapshots::check;
use crate::{Filter, HASH, builder};
use koel::{Piece, Prehashed, SnapshotErrorKind};

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

#[test]
fn a_shard_is_one_piece() {
    for items in [0, 1, 10, 1_000, 8_000u64] {
        let filter = growing(10, 0.001);
        (0..items).for_each(|item| filter.insert(&item).expect("memory"));
        assert_eq!(pieces_of(&filter, 0).len(), 1);
        check(&filter, 0..items);
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

/// Dumps a filter, one shard and several in turns, and begins again where a join has ended the dump. `before` is called
/// before each piece. Returns what comes back, and after how many pieces it began again.
fn dumped(filter: &Filter, mut before: impl FnMut(usize)) -> (Filter, Option<usize>) {
    let (mut loader, mut next, mut ended) = (Filter::loader(), Some(0), None);
    for pieces in 0.. {
        let Some(cursor) = next else { break };
        before(pieces);
        next = match filter.piece_at(cursor, 200_000 * ((pieces + 1) % 2)) {
            Ok(piece) => {
                loader.push(piece.as_bytes()).expect("the next piece");
                assert!(loader.push(piece.as_bytes()).is_err(), "a piece was taken twice");
                assert_eq!(loader.next(), piece.next());
                piece.next()
            }
            Err(error) => {
                assert_eq!((error.kind(), ended), (SnapshotErrorKind::NoSuchPiece, None));
                (loader, ended) = (Filter::loader(), Some(pieces));
                Some(0)
            }
        };
    }
    (loader.finish().expect("a whole filter"), ended)
}

/// Between two pieces, shards are joined, also the one in which the cursor is.
/// Joins of shards that have been sent, or will be, do not matter to a dump. One across its end ends it.
#[test]
fn a_dump_goes_on_or_begins_again_when_its_filter_has_shrunk() {
    let hashes = SplitMix(21).take(rounds(150_000, 400_000));
    let (stay, go) = hashes.split_at(20_000);
    let mut has_ended = false;
    for (remembers, before) in
        [0, 7].into_iter().flat_map(|it| (0..rounds(12, 40)).map(move |n| (it, n)))
    {
        let builder = builder(1_000).growing();
        let builder = if remembers > 0 { builder.remembers(remembers) } else { builder };
        let filter = builder.build().expect("memory");
        filter.put(&hashes);
        filter.take(go);
        let (again, ended) = dumped(&filter, |pieces| {
            if pieces == before {
                assert!(filter.shrink() > 0 || !cfg!(target_os = "linux"));
                filter.tick();
            }
        });
        assert!(ended.is_none_or(|pieces| pieces == before), "only the piece after a join");
        has_ended |= ended.is_some();
        assert_eq!(again.len(), stay.len());
        assert!(again.has(stay) && again.found(go) * 100 < go.len());
        again.take(stay);
        assert!(again.is_empty());
    }
    assert!(has_ended);
}

/// Bursts come and go between the pieces of a small filter, which shrinks after each. Nothing that stays is lost, with
/// all bits of fingerprints left and without any.
#[test]
fn nothing_is_lost_from_pieces_between_bursts() {
    let stay = SplitMix(31).take(100);
    for (rate, growth, burst) in [(0.9, 1.0, 300_000), (0.03, 30.0, 1_500_000)] {
        let builder = builder(100).growing().false_positive_rate(rate).expected_growth(growth);
        let filter = builder.build().expect("memory");
        filter.put(&stay);
        let mut random = SplitMix(32);
        let mut burst = || {
            let come = filter.put_some(&random.take(burst));
            come.iter().for_each(|hash| _ = filter.remove(&Prehashed(*hash)));
        };
        burst();
        let (again, _) = dumped(&filter, |pieces| {
            if pieces == 3 {
                filter.shrink();
                burst();
            }
        });
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

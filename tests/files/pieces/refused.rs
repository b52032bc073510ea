//! Pieces that are lost, repeated, in another order, of another filter, damaged or forged are refused. The loader goes
//! on as if they had never come, or begins again.

use crate::common::{LAYOUTS, SplitMix, bytes_of, rounds};
use crate::damage::{Way, every_damage};
use crate::file::{FilterFile, end, word};
use crate::pieces::{growing, loaded, pieces_of};
use crate::{Filter, HASH, builder, place, with_items};
use koel::SnapshotErrorKind::{
    self, Damaged, Incomplete, OutOfMemory, OutOfOrder, Outgrown, WrongHasher,
};
use koel::{PieceLoader, SnapshotError, SnapshotFile, SnapshotInfo, StableHash};

fn fixed() -> Filter {
    with_items(LAYOUTS[3].filter_with(2_000_000, HASH), 20_000)
}

fn split() -> Filter {
    with_items(growing(1, 0.005), 200_000)
}

/// A filter of one shard.
fn small() -> Filter {
    with_items(builder(10).growing().build().expect("a small filter"), 20)
}

/// The pieces of a filter, its bytes, and a loader that some of them were pushed to.
struct Scene {
    pieces: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    loader: PieceLoader<StableHash>,
    pushed: usize,
}

impl Scene {
    fn of(filter: &Filter, pushed: usize) -> Self {
        let pieces = pieces_of(filter, 0).iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let loader = Filter::loader();
        let bytes = bytes_of(filter);
        let mut scene = Scene { pieces, bytes, loader, pushed: 0 };
        (0..pushed).for_each(|_| scene.push());
        scene
    }

    /// Pushes the next piece.
    fn push(&mut self) {
        self.loader.push(&self.pieces[self.pushed]).expect("the next piece");
        self.pushed += 1;
    }

    /// Checks that a piece is refused. The loader does not notice, or has become empty.
    #[track_caller]
    fn refuses(&mut self, piece: &[u8]) -> SnapshotError {
        let next = self.loader.next();
        let error = self.loader.push(piece).expect_err("not the next piece");
        if error.kind() == OutOfOrder {
            assert_eq!(self.loader.next(), next);
        } else if self.loader.next() != next {
            assert_eq!(self.loader.next(), Some(0));
            let pushed = std::mem::take(&mut self.pushed);
            (0..pushed).for_each(|_| self.push());
        }
        assert!(error.offset().is_none_or(|at| at <= piece.len() as u64), "{error}");
        error
    }

    /// Pushes all other pieces, and checks that the filter is complete.
    fn finishes(mut self) {
        (self.pushed..self.pieces.len()).for_each(|_| self.push());
        assert!(bytes_of(&self.loader.finish().expect("all pieces")) == self.bytes);
    }
}

fn order(filter: &Filter) {
    let count = Scene::of(filter, 0).pieces.len();
    assert!(count > 2);
    for pushed in 0..=count {
        let mut scene = Scene::of(filter, pushed);
        for other in (0..count).filter(|other| *other != pushed) {
            let piece = scene.pieces[other].clone();
            let error = scene.refuses(&piece);
            assert_eq!(error.kind(), OutOfOrder, "{error}");
            let start = FilterFile::cut(&piece).start();
            assert!(error.to_string().contains(&format!("cursor {start},")), "{error}");
            let word = match () {
                () if pushed == count => "finish",
                () if other < pushed => "already",
                () => "too soon",
            };
            assert!(error.to_string().contains(word), "{error}");
        }
        scene.finishes();
    }
    // Without its last piece, it is no filter.
    for pushed in 0..count {
        let scene = Scene::of(filter, pushed);
        let next = scene.loader.next().expect("more pieces");
        let error = scene.loader.finish().map(drop).expect_err("too few pieces");
        assert_eq!(error.kind(), Incomplete);
        assert!(error.to_string().contains(&format!("cursor {next} ")), "{error}");
    }
}

#[test]
fn a_piece_that_is_not_the_next_one_is_refused() {
    order(&fixed());
    order(&split());
}

fn strangers(filter: &Filter, twin: &Filter) {
    let strange = pieces_of(twin, 0);
    for pushed in 1..pieces_of(filter, 0).len() {
        let mut scene = Scene::of(filter, pushed);
        for piece in &strange {
            let error = scene.refuses(piece.as_bytes());
            assert_eq!(error.kind(), OutOfOrder, "{error}");
            assert!(error.to_string().contains("another filter"), "{error}");
        }
        scene.finishes();
    }
}

#[test]
fn a_piece_of_a_filter_that_was_built_otherwise_is_refused() {
    let other = LAYOUTS[3].filter_with(2_000_001, HASH);
    strangers(&fixed(), &other);
    strangers(&split(), &growing(2, 0.005));
    strangers(&split(), &fixed());
}

fn damage(filter: &Filter, pushed: usize, step: usize) {
    let mut scene = Scene::of(filter, pushed);
    let piece = scene.pieces[pushed].clone();
    every_damage(&piece, Way::Piece, step, &mut |bytes| Some(scene.refuses(bytes)));
    scene.finishes();
}

#[test]
fn a_damaged_piece_is_refused_and_the_dump_can_begin_again() {
    for pushed in [0, 1] {
        damage(&fixed(), pushed, rounds(29_989, 997));
        damage(&split(), pushed, rounds(997, 31));
    }
    damage(&small(), 0, rounds(997, 31));
}

/// Pushes a piece with this change, and otherwise intact. Returns the kind of the error.
fn forged(scene: &mut Scene, change: impl FnOnce(&mut FilterFile)) -> Option<SnapshotErrorKind> {
    let mut piece = FilterFile::cut(&scene.pieces[scene.pushed]);
    change(&mut piece);
    let bytes = piece.with_sums().bytes();
    // Another loader, so that a forgery that is believed does no harm.
    let mut loader = Filter::loader();
    for piece in &scene.pieces[..scene.pushed] {
        loader.push(piece).expect("the next piece");
    }
    let kind = loader.push(&bytes).err().map(|error| error.kind());
    if kind.is_some() {
        assert_eq!(Some(scene.refuses(&bytes).kind()), kind);
    }
    kind
}

/// (`agreement.rs` has those of a filter that is one piece.)
fn forgeries(filter: &Filter, pushed: usize) {
    let scene = &mut Scene::of(filter, pushed);
    assert_eq!(forged(scene, |_| ()), None);
    let mut random = SplitMix(3);
    let steps = rounds(3, 20);
    for value in (0..steps).map(|step| random.next() >> (step * 63 / steps)) {
        assert_eq!(forged(scene, |piece| piece.header[word::START] = value | 1), Some(OutOfOrder));
        assert_eq!(forged(scene, |piece| piece.end[end::BYTES] ^= value | 1), Some(Incomplete));
        assert_eq!(forged(scene, |piece| piece.blocks[0][word::DEPTH] = value | 32), Some(Damaged));
        for field in word::GROWS..word::TICKS {
            let kind = forged(scene, |piece| piece.header[field] = value | 1 << 63);
            // The first piece is believed about a capacity or a limit, as a file is. Later ones have
            // to say the same, except for the limit.
            let kinds = [Damaged, OutOfOrder, WrongHasher, OutOfMemory];
            assert!(kind.is_none_or(|kind| kinds.contains(&kind)), "{field}: {kind:?}");
            let may_change = field == word::MAX_BYTES;
            assert!(pushed == 0 || may_change || kind.is_some(), "{field}: {kind:?}");
        }
    }
    // Without shards, with more than there are, and with another mark.
    let changes: [fn(&mut FilterFile); 3] = [
        |piece| piece.blocks.clear(),
        |piece| piece.blocks.push(piece.blocks[0].clone()),
        |piece| piece.mark[0] ^= 1 << 40,
    ];
    for change in &changes[..if filter.grows() { 3 } else { 2 }] {
        let kind = forged(scene, change);
        assert!(matches!(kind, Some(Incomplete | Damaged)), "{kind:?}");
    }
}

#[test]
fn a_forged_piece_is_refused() {
    for pushed in [0, 1] {
        forgeries(&fixed(), pushed);
        forgeries(&split(), pushed);
    }
    let scene = &mut Scene::of(&small(), 0);
    for words in 0..24 {
        let kind = forged(scene, |piece| piece.blocks[0].truncate(words));
        assert!(matches!(kind, Some(Damaged | Incomplete)), "{words}: {kind:?}");
    }
}

#[test]
fn shards_that_were_split_too_often_are_refused_by_the_last_piece() {
    let piece = FilterFile::cut(pieces_of(&growing(1, 0.005), 0)[0].as_bytes());
    for (deepest, kind) in [(20, None), (22, Some(Outgrown))] {
        let mut loader = Filter::loader();
        let depths: Vec<u64> = (1..=deepest).chain([deepest]).collect();
        let (mut place, mut found) = (0, None);
        for depth in &depths {
            assert_eq!(found, None);
            let mut next = piece.clone();
            next.blocks[0][word::DEPTH] = *depth;
            next.header[word::START] = place;
            place += 1 << (31 - depth);
            let pushed = loader.push(&next.sealed().bytes());
            found = pushed.err().map(|error| error.kind());
        }
        assert_eq!(found, kind);
        assert_eq!(loader.finish().is_ok(), kind.is_none());
    }
}

/// What a refused part has brought is gone, also if the stream panicked, and so is the memory for it.
#[test]
fn a_refused_part_leaves_nothing_behind() {
    struct Panics<'a>(&'a [u8]);
    impl std::io::Read for Panics<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            assert!(!self.0.is_empty(), "an intended panic");
            self.0.read(into)
        }
    }
    let filter = split();
    let mut loader = Filter::loader();
    let (pieces, size) = (pieces_of(&filter, 0), loaded(&pieces_of(&filter, 0)).size_in_bytes());
    // A hundred shards more, and an end that is not theirs.
    let mut large = FilterFile::cut(pieces[1].as_bytes());
    large.blocks[0][word::DEPTH] = 25;
    large.blocks = vec![large.blocks[0].clone(); 100];
    let mut bytes = large.sealed().bytes();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    for _ in 0..3 {
        loader.push(pieces[0].as_bytes()).expect("the first piece");
        assert_eq!(loader.push(&bytes).expect_err("a damaged piece").kind(), Damaged);
        assert_eq!(loader.next(), Some(0));
        loader.push(pieces[0].as_bytes()).expect("the first piece");
        let panics = std::panic::AssertUnwindSafe(|| loader.read_from(Panics(&bytes[..last])));
        std::panic::catch_unwind(panics).expect_err("a panic");
        assert_eq!(loader.next(), Some(0));
    }
    pieces.iter().for_each(|piece| loader.push(piece.as_bytes()).expect("the next piece"));
    let again = loader.finish().expect("all pieces");
    assert!(bytes_of(&again) == bytes_of(&filter));
    assert!(again.size_in_bytes() <= size, "{} > {size}", again.size_in_bytes());
}

/// A file is the part that has all of a filter, and so is its only piece.
#[test]
fn a_file_is_a_piece_and_a_piece_may_be_a_file() {
    let place = place();
    let path = &place.path;
    for filter in [split(), small()] {
        let file = bytes_of(&filter);
        let mut loader = Filter::loader();
        loader.push(&file).expect("a file");
        assert_eq!(loader.next(), None);
        assert!(bytes_of(&loader.finish().expect("all of it")) == file);
        let whole = filter.piece_at(0, usize::MAX).expect("memory");
        let again = Filter::read_from(whole.as_bytes()).expect("all of it");
        assert!(bytes_of(&again) == file);
        std::fs::write(path, whole.as_bytes()).expect("a file");
        let again = Filter::load(path).expect("all of it");
        assert!(bytes_of(&again) == file);
        assert_eq!(SnapshotInfo::read(path).expect("all of it").stats.items, filter.len());
        let opened = SnapshotFile::open(path).expect("all of it");
        assert!(opened.contains(&1u64).expect("an answer"));
        std::fs::write(path, [whole.as_bytes(), &[0; 8]].concat()).expect("a file");
        let error = Filter::load(path).map(drop).expect_err("eight bytes too many");
        assert_eq!(error.kind(), Incomplete);
    }
}

#[test]
fn loaders_and_pieces_can_be_passed_to_other_threads() {
    fn passes<T: Send + Sync>() {}
    passes::<PieceLoader<StableHash>>();
    passes::<koel::Piece>();
}

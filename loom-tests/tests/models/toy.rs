//! A shard of eight buckets and four stripes, and the runner of the models.
//!
//! ```text
//! stripe    0      1      2      3
//! bucket   0 1    2 3    4 5    6 7        two lanes of 32 bits each
//! ```
//!
//! The buckets are narrow, of one word, or wide, of two such words. A table that forgets remembers items for two ticks.
//! Its stamps have two bits, so the stamp of the next tick is that of what has expired.

use koel_under_loom::internals::{
    Backend, Bucket, Copies, Fingerprint, Fixed, FixedShards, Geometry, Lanes, Outcome, Path,
    Permanent, Place, Shard, Step, Table, execute, set_queue_first,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a lookup must not do, and what must not become of an item: messages of many models.
pub const MISSED: &str = "a lookup missed an item";
pub const FALSELY_FOUND: &str = "a lookup found what is not there";
pub const NOT_ONCE: &str = "an item is not there once";

const BUCKETS: u32 = 8;

pub fn lanes<const WIDE: bool, const FORGETS: bool>() -> Lanes {
    let lanes = if WIDE { Lanes::of_wide(64) } else { Lanes::of_bits(32) };
    if FORGETS { lanes.remembering(2) } else { lanes }
}

pub struct Toy<const WIDE: bool = false, const FORGETS: bool = false> {
    backend: Backend,
}

impl<const WIDE: bool, const FORGETS: bool> Toy<WIDE, FORGETS> {
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    fn fixed(&self) -> &Fixed {
        let Backend::Fixed(fixed) = &self.backend else { unreachable!() };
        fixed
    }

    pub fn shards(&self) -> FixedShards<'_, WIDE> {
        FixedShards(self.fixed())
    }

    pub fn table(&self) -> &Table {
        self.fixed().table()
    }

    pub fn shard(&self) -> Shard<Permanent<'_>> {
        Shard::new(self.table(), 0)
    }

    /// Returns an item with these two buckets. One of them has to be even and one odd. Items with
    /// different `number`s have different fingerprints, even if their buckets differ.
    pub fn item(&self, first: u32, second: u32, number: usize) -> Place {
        let (first, second) = (Bucket(first), Bucket(second));
        let geometry = &self.table().geometry;
        let fps = (1..).filter_map(|it| Fingerprint::new(it * geometry.lanes().unit_of_heads()));
        let mut fps = fps.filter(|fp| geometry.alternate(first, *fp) == second);
        Place { first, second, fp: fps.nth(number).unwrap() }
    }

    /// Puts an item into this bucket.
    pub fn put(&self, place: &Place, bucket: u32) {
        let Ok(locked) = self.shard().lock_one(Bucket(bucket));
        assert!(self.shard().fill_locked(&locked, Bucket(bucket), place.fp));
    }

    /// Fills a bucket with items that no model looks for.
    pub fn stuff(&self, bucket: u32) {
        while self.empty_lanes(bucket) > 0 {
            self.put(&self.item(bucket, bucket ^ 5, 9), bucket);
        }
    }

    pub fn insert(&self, item: &Place) {
        self.shard().insert(*item).expect("there is room");
    }

    pub fn remove(&self, item: &Place) {
        assert_eq!(self.shard().remove_locked(*item), Ok(true), "a present item was not removed");
    }

    /// Returns the path on which these items move, in order from the newcomer's side. Each item
    /// leaves the bucket given with it, and the last one moves to `end`.
    pub fn path(&self, moves: &[(&Place, u32)], end: u32) -> Path {
        let lanes = self.table().geometry.lanes();
        let step = |(place, bucket): &(&Place, u32)| {
            let bucket = Bucket(*bucket);
            let word = self.shard().read(bucket);
            Step { bucket, lane: lanes.matching(word, place.fp).first().unwrap() }
        };
        Path::new(moves.iter().map(step).collect(), Bucket(end)).expect("no bucket comes twice")
    }

    /// Puts an item into bucket `from`, fills that bucket, and plans the item's move to bucket `to`.
    /// Lookups of the item begin at bucket `first`, which is one of the two.
    pub fn one_move(&self, from: u32, to: u32, first: u32) -> Kick {
        let moved = self.item(first, from + to - first, 0);
        self.put(&moved, from);
        self.stuff(from);
        let path = self.path(&[(&moved, from)], to);
        Kick { path, newcomer: self.item(from, from ^ 1, 1), moved: vec![moved] }
    }

    /// Plans two moves: of an item from bucket 0 to 3, and of another from there to 4.
    pub fn two_moves(&self) -> Kick {
        let (a, b) = (self.item(3, 0, 0), self.item(4, 3, 0));
        self.put(&a, 0);
        self.put(&b, 3);
        self.stuff(0);
        self.stuff(3);
        let path = self.path(&[(&a, 0), (&b, 3)], 4);
        Kick { path, newcomer: self.item(0, 1, 1), moved: vec![a, b] }
    }

    pub fn copies(&self, place: &Place) -> usize {
        let Ok(copies) = self.shard().count(*place);
        copies
    }

    /// Looks once, without locks. The result may be undecided, but not wrong.
    pub fn is_found(&self, item: &Place) {
        assert_ne!(self.shard().look(*item), Some(false), "{MISSED}");
    }

    pub fn is_not_found(&self, item: &Place) {
        assert_ne!(self.shard().look(*item), Some(true), "{FALSELY_FOUND}");
    }

    fn empty_lanes(&self, bucket: u32) -> usize {
        self.shard().lanes().empty(self.shard().read(Bucket(bucket))).len()
    }
}

/// A newcomer, the path that makes room for it, and what moves on that.
#[derive(Clone)]
pub struct Kick {
    pub path: Path,
    pub newcomer: Place,
    pub moved: Vec<Place>,
}

/// Walks the path of a kick.
pub fn walk<const WIDE: bool>(toy: &Toy<WIDE>, Kick { path, newcomer, .. }: &Kick) {
    assert_eq!(execute(toy.shard(), path, *newcomer, Copies::Add), Ok(Outcome::Placed));
}

pub fn look<const WIDE: bool>(toy: &Toy<WIDE>, kick: &Kick) {
    kick.moved.iter().for_each(|item| toy.is_found(item));
}

pub fn all_there_once<const WIDE: bool>(toy: &Toy<WIDE>, kick: &Kick) {
    for item in kick.moved.iter().chain([&kick.newcomer]) {
        assert_eq!(toy.copies(item), 1, "{NOT_ONCE}");
    }
}

/// The number of calls that did what only one of them may do.
#[derive(Clone, Default)]
pub struct Winners(Arc<AtomicUsize>);

impl Winners {
    pub fn add(&self, won: bool) {
        self.0.fetch_add(usize::from(won), Ordering::Relaxed);
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The subject of a model. It is built again for each execution, and checked when all threads have
/// ended.
pub trait World: Send + Sync + 'static {
    fn of_shards(shards: usize) -> Self;

    fn check(&self) {}
}

impl<const WIDE: bool, const FORGETS: bool> World for Toy<WIDE, FORGETS> {
    fn of_shards(shards: usize) -> Self {
        let geometry = Geometry::new(lanes::<WIDE, FORGETS>(), shards, BUCKETS);
        Toy { backend: Backend::Fixed(Fixed::with_geometry(geometry)) }
    }

    fn check(&self) {
        let stripes = &self.table().stripes;
        let taken = |bucket| 2 - self.empty_lanes(bucket) as i32;
        let items: i32 = self.shard().own_stripes().map(|it| stripes.items(it)).sum();
        let lanes = (0..BUCKETS).map(taken).sum();
        assert_eq!(items, lanes, "the count is not the number of taken lanes");
        for stripe in 0..BUCKETS / 2 {
            let lanes = taken(2 * stripe) + taken(2 * stripe + 1);
            assert_eq!(stripes.items(stripe as usize), lanes, "a segment is counted wrong");
            assert!(stripes.see(stripe as usize).still_holds(), "a version stayed odd");
        }
    }
}

/// How a model is run: by default on the real locks, and exhaustively.
pub struct Model {
    /// The least number of executions in each round. A round with fewer has explored nothing.
    floor: usize,
    preemptions: Option<usize>,
    blocking: bool,
    shards: usize,
}

impl Model {
    pub fn new(floor: usize) -> Self {
        Model { floor, preemptions: None, blocking: false, shards: 1 }
    }

    /// Makes threads block on a taken lock instead of trying again, and explores only executions with at most
    /// this many preemptions, or all. Models of three and more threads need it, because their tries would never end. It
    /// also makes loom report threads that wait for each other as a deadlock.
    pub fn blocking(floor: usize, most: impl Into<Option<usize>>) -> Self {
        Model { blocking: true, preemptions: most.into(), ..Model::new(floor) }
    }

    /// Explores only executions with at most this many preemptions.
    pub fn preemptions(self, most: usize) -> Self {
        Model { preemptions: Some(most), ..self }
    }

    /// If `KOEL_LONG_TESTS` is not set in the environment, explores only executions with at most
    /// this many preemptions. There are at least `floor` of them.
    pub fn in_short(self, most: usize, floor: usize) -> Self {
        if std::env::var_os("KOEL_LONG_TESTS").is_some() {
            return self;
        }
        Model { preemptions: Some(most), floor, ..self }
    }

    /// Runs the model on a table of this many shards.
    pub fn shards(self, shards: usize) -> Self {
        Model { shards, ..self }
    }

    /// Builds a new table for each execution, runs two or more threads to their ends, and then
    /// checks what has to hold at rest. The counts and versions are always checked.
    pub fn run<W: World, T: Clone + Send + 'static>(
        &self,
        setup: impl Fn(&W) -> T + Send + Sync + 'static,
        threads: &[fn(&W, &T)],
        at_rest: impl Fn(&W, &T) + Send + Sync + 'static,
    ) {
        self.run_each([()], move |world, ()| setup(world), threads, at_rest);
    }

    /// The same for each of these cases.
    pub fn run_each<W: World, T: Clone + Send + 'static, C: Copy + Send + Sync + 'static>(
        &self,
        cases: impl IntoIterator<Item = C>,
        setup: impl Fn(&W, C) -> T + Send + Sync + 'static,
        threads: &[fn(&W, &T)],
        at_rest: impl Fn(&W, &T) + Send + Sync + 'static,
    ) {
        let (setup, at_rest) = (Arc::new(setup), Arc::new(at_rest));
        for case in cases {
            let (mut threads, shards) = (threads.to_vec(), self.shards);
            // The last thread is loom's first one, and loom explores the two cases differently.
            for _ in ["forwards", "backwards"] {
                let executions = Arc::new(AtomicUsize::new(0));
                let (setup, at_rest) = (Arc::clone(&setup), Arc::clone(&at_rest));
                let mut builder = loom::model::Builder::new();
                builder.preemption_bound = self.preemptions;
                builder.max_branches = 10_000;
                set_queue_first(self.blocking);
                let (counter, own) = (Arc::clone(&executions), threads.clone());
                builder.check(move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let world = Arc::new(W::of_shards(shards));
                    let items = setup(&world, case);
                    let (last, spawned) = own.split_last().unwrap();
                    let spawn = |&thread: &fn(&W, &T)| {
                        let (world, items) = (Arc::clone(&world), items.clone());
                        loom::thread::spawn(move || thread(&world, &items))
                    };
                    let handles: Vec<_> = spawned.iter().map(spawn).collect();
                    last(&world, &items);
                    handles.into_iter().for_each(|handle| handle.join().unwrap());
                    at_rest(&world, &items);
                    world.check();
                });
                let executions = executions.load(Ordering::Relaxed);
                println!("checked: {executions} executions of models");
                let is_enough = executions >= self.floor;
                assert!(is_enough, "only {executions} executions: nothing was explored");
                threads.reverse();
            }
        }
    }
}

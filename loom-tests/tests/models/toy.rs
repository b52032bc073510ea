//! A shard of eight buckets and four stripes, and the runner of the models.
//!
//! ```text
//! stripe    0      1      2      3
//! bucket   0 1    2 3    4 5    6 7        two lanes of 32 bits each
//! ```
//!
//! The buckets are narrow, of one word, or wide, of two such words.

use koel_under_loom::internals::Fixed;
use koel_under_loom::internals::{
    Bucket, Copies, Fingerprint, Geometry, Lanes, Outcome, Path, Permanent, Place, Shard, Step,
    Table, execute, set_queue_first,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const BUCKETS: u32 = 8;

pub struct Toy<const WIDE: bool = false> {
    room: Fixed<WIDE>,
}

impl<const WIDE: bool> Toy<WIDE> {
    /// Builds a table of one or more such shards. Most models use only the first one.
    pub fn of_shards(shards: usize) -> Self {
        Self::with(if WIDE { Lanes::of_wide(64) } else { Lanes::of_bits(32) }, shards)
    }

    fn with(lanes: Lanes, shards: usize) -> Self {
        let geometry = Geometry::new(lanes, shards, BUCKETS);
        Toy { room: Fixed::of(geometry) }
    }

    pub fn room(&self) -> &Fixed<WIDE> {
        &self.room
    }

    pub fn table(&self) -> &Table {
        self.room.table()
    }

    pub fn shard(&self) -> Shard<'_, Permanent<WIDE>> {
        Shard::new(self.table(), 0)
    }

    /// Returns an item with these two buckets. One of them has to be even and one odd. Items with
    /// different `number`s have different fingerprints, even if their buckets differ.
    pub fn item(&self, first: u32, second: u32, number: usize) -> Place {
        let (first, second) = (Bucket(first), Bucket(second));
        let unit = self.table().geometry().lanes().unit_of_heads();
        let fp = (1..)
            .map(|value| Fingerprint::new(value * unit).unwrap())
            .filter(|fp| self.table().geometry().alternate(first, *fp) == second)
            .nth(number)
            .unwrap();
        Place { first, second, fp }
    }

    /// Puts an item into this bucket.
    pub fn put(&self, place: &Place, bucket: u32) {
        let Ok(locked) = self.shard().lock_one(Bucket(bucket));
        assert!(self.shard().fill_locked(&locked, Bucket(bucket), place.fp));
    }

    /// Fills a bucket with items that no model looks for.
    pub fn stuff(&self, bucket: u32) {
        while self.shard().empty_lanes(Bucket(bucket)) > 0 {
            let other = self.item(bucket, bucket ^ 5, 9);
            self.put(&other, bucket);
        }
    }

    /// Returns the path on which these items move, in order from the newcomer's side. Each item
    /// leaves the bucket given with it, and the last one moves to `end`.
    pub fn path(&self, moves: &[(&Place, u32)], end: u32) -> Path {
        self.path_or_detour(moves, end).expect("no bucket comes twice")
    }

    pub fn path_or_detour(&self, moves: &[(&Place, u32)], end: u32) -> Option<Path> {
        let lanes = self.table().geometry().lanes();
        let step = |(place, bucket): &(&Place, u32)| {
            let bucket = Bucket(*bucket);
            let word = self.shard().read(bucket);
            Step { bucket, lane: lanes.matching::<WIDE>(word, place.fp).first().unwrap() }
        };
        Path::new(moves.iter().map(step).collect(), Bucket(end))
    }

    pub fn execute(&self, path: &Path, newcomer: &Place) {
        assert_eq!(execute(self.shard(), path, *newcomer, Copies::Add), Ok(Outcome::Placed));
    }

    pub fn copies(&self, place: &Place) -> usize {
        let Ok(copies) = self.shard().count(*place);
        copies
    }

    fn check(&self) {
        let free: usize = (0..BUCKETS).map(|bucket| self.shard().empty_lanes(Bucket(bucket))).sum();
        let lanes = 2 * BUCKETS as usize;
        assert_eq!(
            self.shard().own_stripes().map(|stripe| self.shard().items(stripe)).sum::<i32>(),
            (lanes - free) as i32,
            "the count is not the number of taken lanes"
        );
        for stripe in 0..BUCKETS / 2 {
            let buckets = [2 * stripe, 2 * stripe + 1];
            let free: usize =
                buckets.map(|bucket| self.shard().empty_lanes(Bucket(bucket))).iter().sum();
            let stripes = self.table().stripes();
            assert_eq!(
                stripes.items(stripe as usize),
                4 - free as i32,
                "a segment is counted wrong"
            );
            assert!(stripes.see(stripe as usize).still_holds(), "a version stayed odd");
        }
    }
}

/// The subject of a model. It is built again for each execution, and checked when all threads have
/// ended.
pub trait World: Send + Sync + 'static {
    fn of_shards(shards: usize) -> Self;

    fn check(&self);
}

impl<const WIDE: bool> World for Toy<WIDE> {
    fn of_shards(shards: usize) -> Self {
        Toy::of_shards(shards)
    }

    fn check(&self) {
        Toy::check(self);
    }
}

/// A table that remembers items for two ticks. A stamp has two bits, so the one of the next tick is that
/// of what has expired.
pub struct Forgetful<const WIDE: bool = false>(pub Toy<WIDE>);

impl<const WIDE: bool> World for Forgetful<WIDE> {
    fn of_shards(shards: usize) -> Self {
        let lanes = if WIDE { Lanes::of_wide(64) } else { Lanes::of_bits(32) };
        Forgetful(Toy::with(lanes.remembering(2), shards))
    }

    fn check(&self) {
        self.0.check();
    }
}

trait EmptyLanes {
    fn empty_lanes(&self, bucket: Bucket) -> usize;
}

impl<const WIDE: bool> EmptyLanes for Shard<'_, Permanent<WIDE>> {
    fn empty_lanes(&self, bucket: Bucket) -> usize {
        self.lanes().empty(self.read(bucket)).len()
    }
}

/// Which of two threads is spawned. The other one runs in loom's first thread, and loom explores
/// the two cases differently.
#[derive(Clone, Copy, Debug)]
pub enum Round {
    FirstSpawned,
    SecondSpawned,
}

/// How a model is run: by default on the real locks, and exhaustively.
pub struct Model {
    name: &'static str,
    /// The least number of executions in each round. A round with fewer has explored nothing.
    floor: usize,
    preemptions: Option<usize>,
    blocking: bool,
    shards: usize,
}

impl Model {
    pub fn new(name: &'static str, floor: usize) -> Self {
        Model { name, floor, preemptions: None, blocking: false, shards: 1 }
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

    /// Makes threads block on a taken lock instead of trying again. Models of three and more
    /// threads need it, because their tries would never end. It also makes loom report threads that
    /// wait for each other as a deadlock.
    pub fn blocking(self) -> Self {
        Model { blocking: true, ..self }
    }

    /// Runs the model on a table of this many shards.
    pub fn shards(self, shards: usize) -> Self {
        Model { shards, ..self }
    }

    /// Builds a new table for each execution, runs two or more threads to their ends, and then
    /// checks what has to hold at rest. The counts and versions are always checked.
    pub fn run<T: Clone + Send + 'static>(
        self,
        setup: impl Fn(&Toy) -> T + Clone + Send + Sync + 'static,
        threads: &[fn(&Toy, &T)],
        at_rest: impl Fn(&Toy, &T) + Clone + Send + Sync + 'static,
    ) {
        self.run_in(setup, threads, at_rest);
    }

    /// The same for any kind of table.
    pub fn run_in<W: World, T: Clone + Send + 'static>(
        self,
        setup: impl Fn(&W) -> T + Clone + Send + Sync + 'static,
        threads: &[fn(&W, &T)],
        at_rest: impl Fn(&W, &T) + Clone + Send + Sync + 'static,
    ) {
        for round in [Round::FirstSpawned, Round::SecondSpawned] {
            let executions = Arc::new(AtomicUsize::new(0));
            let (setup, at_rest) = (setup.clone(), at_rest.clone());
            let mut threads = threads.to_vec();
            if let Round::SecondSpawned = round {
                threads.reverse();
            }
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = self.preemptions;
            builder.max_branches = 10_000;
            let shards = self.shards;
            set_queue_first(self.blocking);
            let counter = Arc::clone(&executions);
            builder.check(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                let toy = Arc::new(W::of_shards(shards));
                let items = setup(&toy);
                let (last, spawned) = threads.split_last().unwrap();
                let handles: Vec<_> = spawned
                    .iter()
                    .map(|&thread| {
                        let (toy, items) = (Arc::clone(&toy), items.clone());
                        loom::thread::spawn(move || thread(&toy, &items))
                    })
                    .collect();
                last(&toy, &items);
                for handle in handles {
                    handle.join().unwrap();
                }
                at_rest(&toy, &items);
                toy.check();
            });
            let executions = executions.load(Ordering::Relaxed);
            println!("{}, {round:?}: {executions} executions", self.name);
            assert!(executions >= self.floor, "only {executions} executions: nothing was explored");
        }
    }
}

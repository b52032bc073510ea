//! The model of the README: how long an operation takes when other cores work on the same filter.

/// What an operation touches on average: the rows of the page's second table.
#[derive(Clone, Copy)]
pub struct Counts {
    words: f64,
    words_written: f64,
    versions: f64,
    versions_written: f64,
    locks: f64,
}

/// The counts of a row of the page.
pub fn counts(row: &str) -> Counts {
    let page = include_str!("../README.md");
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("| {row} |")));
    let cells = line.unwrap_or_default().split('|').filter_map(|cell| cell.trim().parse().ok());
    match cells.collect::<Vec<f64>>()[..] {
        [words, words_written, versions, versions_written, locks] => {
            Counts { words, words_written, versions, versions_written, locks }
        }
        _ => panic!("benches/cores/README.md has no row {row}"),
    }
}

impl Counts {
    /// How many words it touches.
    pub fn words(self) -> f64 {
        self.words
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Design {
    Koel,
    /// The same table behind 64 mutexes, which lookups take too.
    Mutexes,
    /// The same table, and each insert is one compare-and-swap of a word, without a lock.
    Swap,
}

impl Design {
    pub fn name(self) -> &'static str {
        match self {
            Design::Koel => "",
            Design::Mutexes => ", 64 mutexes",
            Design::Swap => ", one swap",
        }
    }
}

/// The mutexes of [`Design::Mutexes`].
const MUTEXES: f64 = 64.0;
/// The locks in a cache line.
const LOCKS_IN_A_LINE: f64 = 8.0;

/// Times are in nanoseconds.
pub struct Model {
    pub counts: Counts,
    /// The operation on one core.
    pub own: f64,
    pub swap: f64,
    /// Of a lock's line, and of a word's or version's.
    pub transfers: [f64; 2],
    /// Whether each core has the whole table in its caches.
    pub cached: bool,
    pub stripes: f64,
    pub shards: f64,
    /// Splits per operation, and the time of one.
    pub splits: f64,
    pub split: f64,
    pub design: Design,
}

impl Model {
    /// Million operations a second on so many cores.
    pub fn throughput(&self, cores: usize) -> f64 {
        let n = cores as f64;
        let [of_lock, of_word] = self.transfers;
        let (own, fetched) = (self.own(), of_word * self.lines(n));
        let (places, locks) = match self.design {
            Design::Koel => (self.stripes, self.counts.locks),
            Design::Mutexes => (MUTEXES, 1.0),
            Design::Swap => (1.0, 0.0),
        };
        // A lock is held while its operation writes: half of an operation of koel, and all of one
        // behind a mutex.
        let held = if self.design == Design::Koel { (own + fetched) / 2.0 } else { own + fetched };
        let of_others = (n - 1.0) / n;
        let mut time = own + fetched;
        for _ in 0..200 {
            // Other cores that want this lock's line at any moment, and how long they have it.
            let lines = match self.design {
                Design::Koel => places / LOCKS_IN_A_LINE,
                _ => places,
            };
            let wanted = (n - 1.0) * locks / (lines * time);
            let lost = if self.design == Design::Koel { 1.0 - (-wanted * held).exp() } else { 0.0 };
            let line = of_lock * locks * of_others * (1.0 + lost);
            let [for_lines, for_locks] = [
                queue(cores, lines, line, time - line),
                queue(cores, places, held * locks, time - held * locks),
            ];
            let next = own + fetched + line + for_lines + for_locks + self.splits(n, time);
            time = (time + next) / 2.0;
        }
        1_000.0 * n / time
    }

    /// The time on one core.
    fn own(&self) -> f64 {
        match self.design {
            // A mutex is taken and released by a swap each; a stripe's lock takes one.
            Design::Mutexes => self.own + self.swap * (2.0 - self.counts.locks).max(0.0),
            _ => self.own,
        }
    }

    /// How many transfers of words and versions an operation waits for.
    fn lines(&self, n: f64) -> f64 {
        let Counts { words, words_written, versions, versions_written, .. } = self.counts;
        let (versions, versions_written) =
            if self.design == Design::Koel { (versions, versions_written) } else { (0.0, 0.0) };
        // Words that are in no cache come from memory, on one core as on many.
        let (words, words_written) = if self.cached { (words, words_written) } else { (0.0, 0.0) };
        // Loads do not wait for each other, so they are waited for once.
        let stale = |all, written| if all > 0.0 { others(n, written, all) } else { 0.0 };
        let fresh = (1.0 - stale(words, words_written)).powf(words)
            * (1.0 - stale(versions, versions_written)).powf(versions);
        // A line that was loaded has to be taken away from the others before it is stored to.
        let taken = |all: f64, written: f64| {
            if written > 0.0 { written * others(n, all, written) } else { 0.0 }
        };
        1.0 - fresh + taken(words, words_written) + taken(versions, versions_written)
    }

    /// The wait of an operation for shards that others split: all who touch one wait for its end.
    fn splits(&self, n: f64, time: f64) -> f64 {
        let round = self.shards * time;
        let lost = self.split - round * (1.0 - (-self.split / round).exp());
        self.splits * (n - 1.0) * lost.max(0.0)
    }
}

/// The chance that another core did what each core does `theirs` times per operation, since this core
/// did what it does `own` times.
fn others(n: f64, theirs: f64, own: f64) -> f64 {
    (n - 1.0) * theirs / ((n - 1.0) * theirs + own)
}

/// The mean wait in a queue, when `cores` take turns between `elsewhere` and one of `places` at
/// random, where they are for `service`: mean value analysis, core by core.
fn queue(cores: usize, places: f64, service: f64, elsewhere: f64) -> f64 {
    let (mut waiting, mut wait) = (0.0, 0.0);
    for n in 1..=cores {
        wait = service * waiting / places;
        waiting = n as f64 * (service + wait) / (service + wait + elsewhere.max(0.0));
    }
    wait
}

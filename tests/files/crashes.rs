//! A crawl is killed again and again, and each time continues from its file. An item of a completed
//! save is never new again.

use crate::common::rounds;
use crate::kind::{Fixed, Growing, Kind, Saved};
use crate::process::{again, names, task};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Stdio, exit};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 2;

/// The number of addresses of each thread, more than it usually reaches.
const ADDRESSES: u64 = 120_000;
const CAPACITY: usize = THREADS * ADDRESSES as usize;

/// Each save has so many more addresses of each thread than the one before, however slow the machine.
const MORE: u64 = 100;

/// Returns an address of a thread, which visits them in order and the same ones in every run.
fn url(thread: usize, number: u64) -> String {
    format!("https://{thread}.example/{number}")
}

/// Inserts the addresses that were seen, and returns how many of them were new to the filter.
fn new_among(filter: &Saved, seen: [u64; THREADS]) -> usize {
    let all = seen.iter().enumerate().flat_map(|(thread, end)| (0..*end).map(move |n| (thread, n)));
    all.filter(|(thread, n)| filter.insert_if_absent(&url(*thread, *n)).expect("room")).count()
}

#[test]
#[ignore = "the other tests run and kill it"]
fn the_crawl() {
    let Some(task) = task() else { return };
    let path = Path::new(&task[1]);
    let seen = [2, 3].map(|word: usize| task[word].parse().expect("a number"));
    let pause = task[4].parse().expect("a number");
    match &*task[0] {
        "fixed" => crawl::<Fixed>(path, seen, pause),
        _ => crawl::<Growing>(path, seen, pause),
    }
}

/// Continues from the file and saves repeatedly. After `pause` saves it waits. It prints each step.
fn crawl<K: Kind>(path: &Path, seen: [u64; THREADS], pause: u32) {
    let filter = match Saved::load(path) {
        Ok(filter) => filter,
        Err(_) if !path.exists() => K::filter(CAPACITY),
        Err(error) => panic!("{error}"),
    };
    println!("\nnew again: {}", new_among(&filter, seen));
    let begin = Instant::now();
    // The crawl ends by itself, in case the test that should kill it was killed.
    let lives = || begin.elapsed() < Duration::from_secs(60);
    let mut saves = 0;
    let counts = seen.map(AtomicU64::new);
    thread::scope(|scope| {
        for (thread, count) in counts.iter().enumerate() {
            let (filter, from) = (&filter, count.load(Acquire));
            scope.spawn(move || {
                for number in (from..ADDRESSES).take_while(|_| lives()) {
                    filter.insert_if_absent(&url(thread, number)).expect("room");
                    count.store(number + 1, Release);
                    if number % 10 == 0 {
                        thread::sleep(Duration::from_micros(300));
                    }
                }
            });
        }
        let mut saved = seen;
        while lives() {
            let now = counts.each_ref().map(|count| count.load(Acquire));
            let enough = |(now, saved): (&u64, &u64)| *now >= ADDRESSES.min(saved + MORE);
            if !now.iter().zip(&saved).all(enough) {
                thread::sleep(Duration::from_micros(200));
                continue;
            }
            println!("saving {} {}", now[0], now[1]);
            filter.save(path).expect("nothing is in the way");
            println!("saved");
            (saved, saves) = (now, saves + 1);
            // Waits to be killed between two saves, even on a busy machine.
            if saves == pause {
                thread::sleep(Duration::from_secs(60));
            }
            thread::sleep(Duration::from_millis(2));
        }
    });
    exit(1);
}

/// The output of one crawl so far, and how long its last save took.
struct Heard {
    line: String,
    since: Instant,
    saving: Option<[u64; THREADS]>,
    saves: u32,
    saved: [u64; THREADS],
    took: Duration,
}

impl Heard {
    /// Reads one line. Returns `false` at the end of the output.
    fn hear(&mut self, from: &mut impl BufRead) -> bool {
        self.line.clear();
        if from.read_line(&mut self.line).expect("a pipe") == 0 {
            return false;
        }
        let words: Vec<&str> = self.line.split_whitespace().collect();
        match words[..] {
            ["saving", one, other] => {
                self.saving = Some([one, other].map(|word| word.parse().expect("a number")));
                self.since = Instant::now();
            }
            ["saved"] => {
                self.saved = self.saving.take().expect("a save that was announced");
                self.saves += 1;
                self.took = self.since.elapsed();
            }
            ["new", "again:", count] => assert_eq!(count, "0", "a saved address is new again"),
            _ => {}
        }
        true
    }
}

fn kill_and_go_on<K: Kind>() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen");
    let mut random = SmallRng::seed_from_u64(9);
    let (mut seen, mut took) = ([0; THREADS], Duration::from_millis(1));
    let (mut saves, mut during, mut unfinished, mut between) = (0, 0, 0, 0);
    let kills = rounds(16, 200);
    for round in 0..kills {
        let enough = random.random_range(0..4);
        let in_a_save = round % 4 != 0;
        // "Between two saves" means after at least one.
        let enough = if in_a_save { enough } else { enough.max(1) };
        let pause = if in_a_save { 0 } else { enough };
        let numbers = [seen[0], seen[1], pause.into()].map(|number: u64| number.to_string());
        let [one, other, pause] = numbers.each_ref().map(String::as_str);
        let words = [K::NAME, path.to_str().expect("UTF-8"), one, other, pause];
        let mut crawl =
            again("crashes::the_crawl", &words).stdout(Stdio::piped()).spawn().expect("itself");
        let mut pipe = BufReader::new(crawl.stdout.take().expect("a pipe"));
        let since = Instant::now();
        let mut heard =
            Heard { line: String::new(), since, saving: None, saves: 0, saved: seen, took };
        while heard.saves < enough || heard.saving.is_some() != in_a_save {
            assert!(heard.hear(&mut pipe), "the crawl has ended by itself: {}", heard.line);
        }
        let wait = if in_a_save { heard.took } else { Duration::from_millis(1) };
        thread::sleep(wait.mul_f64(random.random_range(0.0..1.0)));
        crawl.kill().expect("it lives");
        crawl.wait().expect("it was killed");
        while heard.hear(&mut pipe) {}

        (seen, took) = (heard.saved, heard.took);
        saves += heard.saves;
        let left = names(folder.path());
        if heard.saving.is_some() {
            during += 1;
            unfinished += u32::from(left.contains(&".seen.koel-saving".to_string()));
        } else {
            between += 1;
        }
        if left.contains(&"seen".to_string()) {
            let filter = Saved::load(&path).expect("a whole file");
            assert_eq!(new_among(&filter, seen), 0, "round {round}");
        } else {
            assert_eq!(heard.saves, 0);
            assert_eq!(seen, [0; THREADS]);
        }
    }
    println!(
        "{}: {kills} kills, {during} of them during a save ({unfinished} of these left an \
         unfinished file) and {between} between two saves; \
         {saves} completed saves, {seen:?} addresses seen",
        K::NAME
    );
    assert!(during >= kills / 4 && unfinished >= kills / 8 && between >= kills / 8);
    let least = ADDRESSES.min(MORE * u64::from(saves));
    assert!(saves >= kills / 2 && seen.iter().all(|seen| *seen >= least));

    let filter = Saved::load(&path).expect("a whole file");
    filter.save(&path).expect("nothing is in the way");
    assert_eq!(names(folder.path()), ["seen"]);
}

#[test]
fn a_saved_item_is_never_new_again_in_a_fixed_filter() {
    kill_and_go_on::<Fixed>();
}

#[test]
fn a_saved_item_is_never_new_again_in_a_growing_filter() {
    kill_and_go_on::<Growing>();
}

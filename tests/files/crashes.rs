//! A crawl is killed again and again, and each time continues from its file. An item of a completed
//! save is never new again.

use crate::common::{Raise, rounds};
use crate::kind::{Fixed, Growing, Kind, Saved};
use crate::process::{Place, again, task};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// More than a crawl reaches.
const CAPACITY: usize = 240_000;

/// Each save has so many more addresses than the one before, however slow the machine.
const MORE: u64 = 200;

fn url(number: u64) -> String {
    format!("https://a.example/{number}")
}

#[test]
#[ignore = "the other tests run and kill it"]
fn the_crawl() {
    let Some(task) = task() else { return };
    let path = Path::new(&task[1]);
    let filter = match Saved::load(path) {
        Ok(filter) => filter,
        Err(_) if !path.exists() => Kind::named(&task[0]).filter(CAPACITY),
        Err(error) => panic!("{error}"),
    };
    let [seen, pause] = [2, 3].map(|word: usize| task[word].parse::<u64>().expect("a number"));
    let (begin, is_over) = (Instant::now(), AtomicBool::new(false));
    println!();
    thread::scope(|scope| {
        // Others come and go meanwhile.
        scope.spawn(|| {
            for other in (1u64 << 40..).take_while(|_| !is_over.load(Relaxed)) {
                filter.insert(&other).expect("room");
                filter.remove(&other);
                thread::sleep(Duration::from_micros(30));
            }
        });
        let _over = Raise(&is_over);
        // It ends by itself, in case the test that should kill it was killed.
        for save in (1..).take_while(|_| begin.elapsed() < Duration::from_secs(60)) {
            let end = seen + save * MORE;
            (end - MORE..end).for_each(|n| _ = filter.insert_if_absent(&url(n)).expect("room"));
            println!("saving {end}");
            filter.save(path).expect("nothing is in the way");
            println!("saved");
            // Waits to be killed between two saves, even on a busy machine.
            thread::sleep(Duration::from_millis(if save == pause { 60_000 } else { 2 }));
        }
    });
    exit(1);
}

fn kill_and_go_on(kind: Kind) {
    let place = Place::new("seen");
    let mut random = SmallRng::seed_from_u64(9);
    let (mut seen, mut took) = (0, Duration::from_millis(1));
    let (mut saves, mut during, mut unfinished, mut between) = (0, 0, 0, 0);
    let kills = rounds(16, 200);
    for round in 0..kills {
        let in_a_save = round % 4 != 0;
        // "Between two saves" means after at least one.
        let enough = random.random_range(u64::from(!in_a_save)..4);
        let pause = if in_a_save { 0 } else { enough };
        let numbers = [seen, pause].map(|number: u64| number.to_string());
        let words = [kind.name(), place.path.to_str().expect("UTF-8"), &numbers[0], &numbers[1]];
        let mut crawl =
            again("crashes::the_crawl", &words).stdout(Stdio::piped()).spawn().expect("itself");
        let mut lines = BufReader::new(crawl.stdout.take().expect("a pipe")).lines();
        let (mut saving, mut done, mut since) = (None, 0, Instant::now());
        let mut heard = (0, false, took);
        let mut hear = |line: String| {
            match line.split_once(' ') {
                Some(("saving", end)) => {
                    (saving, since) = (Some(end.parse().expect("a number")), Instant::now());
                }
                _ if line == "saved" => {
                    seen = saving.take().expect("a save that was announced");
                    (done, took) = (done + 1, since.elapsed());
                }
                _ => {}
            }
            (done, saving.is_some(), took)
        };
        while heard.0 < enough || heard.1 != in_a_save {
            heard = hear(lines.next().expect("it has ended by itself").expect("a pipe"));
        }
        let wait = if in_a_save { heard.2 } else { Duration::from_millis(1) };
        thread::sleep(wait.mul_f64(random.random_range(0.0..1.0)));
        crawl.kill().expect("it lives");
        crawl.wait().expect("it was killed");
        for line in lines {
            heard = hear(line.expect("a pipe"));
        }
        saves += heard.0;
        let is_left = place.at(".seen.koel-saving").exists();
        during += u64::from(heard.1);
        unfinished += u64::from(heard.1 && is_left);
        between += u64::from(!heard.1);
        if place.path.exists() {
            let filter = Saved::load(&place.path).expect("a whole file");
            assert!((0..seen).all(|n| filter.contains(&url(n))), "round {round}: one is new again");
        } else {
            assert_eq!((heard.0, seen), (0, 0));
        }
    }
    println!(
        "{}: {kills} kills, {during} of them during a save ({unfinished} of these left an \
         unfinished file) and {between} between two saves; \
         {saves} completed saves, {seen} addresses seen",
        kind.name()
    );
    assert!(during >= kills / 4 && unfinished >= kills / 8 && between >= kills / 8);
    assert!(saves >= kills / 2 && seen >= MORE * saves);

    let filter = Saved::load(&place.path).expect("a whole file");
    filter.save(&place.path).expect("nothing is in the way");
    assert_eq!(place.names(), ["seen"]);
}

#[test]
fn a_saved_item_is_never_new_again_in_a_fixed_filter() {
    kill_and_go_on(Fixed);
}

#[test]
fn a_saved_item_is_never_new_again_in_a_growing_filter() {
    kill_and_go_on(Growing);
}

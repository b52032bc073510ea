//! All figures that a page shows, one bench after the other, each in a process of its own.
//!
//! Some benches are in Python, or run the command. They are left out, by name, if what they need is not there.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::median;
use crate::kit::machine::{about, all_cores, load, timed};
use std::hint::black_box;
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A bench, and about how many minutes it takes on two cores with 24 GiB of memory.
struct Part {
    name: &'static str,
    minutes: u64,
    /// The folder of its committed figures.
    results: &'static str,
    /// What it needs beside this program, and the shell's test of that.
    needs: [&'static str; 2],
    /// The shell's command.
    command: &'static str,
}

/// A bench of this program.
const fn own(name: &'static str, minutes: u64) -> Part {
    let command = r#""$BENCH" $NAME --out "$OUT" $TEST"#;
    Part { name, minutes, results: "benches/results", needs: ["", "true"], command }
}

/// A bench of this program that measures a disk.
const fn disk(name: &'static str, minutes: u64) -> Part {
    let command = r#""$BENCH" $NAME --out "$OUT" --folder "$DISK" $TEST"#;
    Part { command, ..own(name, minutes) }
}

/// The command beside other tools.
const fn tools(name: &'static str, minutes: u64, command: &'static str) -> Part {
    let needs = [
        "mawk and time (Debian: apt install mawk time)",
        "command -v mawk && test -x /usr/bin/time",
    ];
    Part { name, minutes, results: "benches/dedup", needs, command }
}

const PARTS: [Part; 15] = [
    // Five repetitions at 2 MiB, and three at 32 MiB (1.5 minutes each) and at 128 MiB (5 minutes each).
    own("peers", 22),
    own("growth", 9),
    own("windows", 6),
    disk("durable", 10),
    disk("snapshots", 5),
    disk("waits", 4),
    own("loads", 3),
    own("dropped", 1),
    Part {
        name: "hints",
        minutes: 8,
        results: "benches/results",
        needs: ["Linux and Python 3", r#"test "$(uname)" = Linux && command -v python3"#],
        command: r#"benches/hints --out "$OUT" $QUICK"#,
    },
    tools("run", 5, r#"benches/dedup/run --out "$OUT" $QUICK"#),
    tools("files", 4, r#"benches/dedup/files --out "$OUT" $QUICK"#),
    tools("alone", 4, r#"benches/dedup/alone --out "$OUT" $QUICK"#),
    Part {
        name: "wheel",
        minutes: 6,
        results: "python/benches/results",
        needs: [
            "KOEL_PYTHON, a Python with pykoel and python/benches/requirements.txt",
            r#""$KOEL_PYTHON" -c 'import pykoel, scrapy'"#,
        ],
        command: r#""$KOEL_PYTHON" python/benches/figures.py --out "$OUT" $QUICK"#,
    },
    Part {
        name: "batches",
        minutes: 5,
        results: "python/benches/results",
        needs: [
            "KOEL_PYTHON, a Python with pykoel, Ray and redis-py, and KOEL_SERVERS, which redis/get-servers prints",
            r#""$KOEL_PYTHON" -c 'import pykoel, ray, redis' && test -x "$KOEL_SERVERS/redis-server""#,
        ],
        command: r#"cargo build --locked --release -q -p koel-redis && "$KOEL_PYTHON" python/benches/batches.py \
            --redis "$KOEL_SERVERS" --module target/release/libkoel_redis.so --out "$OUT" $QUICK"#,
    },
    Part {
        name: "module",
        minutes: 9,
        results: "redis/bench/results",
        needs: [
            "KOEL_SERVERS, which redis/get-servers prints",
            r#"test -x "$KOEL_SERVERS/redis-benchmark""#,
        ],
        command: r#"cargo build --locked --release -q -p koel-redis && redis/bench/run.py --servers "$KOEL_SERVERS" \
            --module target/release/libkoel_redis.so ${KOEL_REDISBLOOM:+--bloom "$KOEL_REDISBLOOM"} --out "$OUT" $QUICK"#,
    },
];

impl Part {
    /// Returns the shell's command, in the root of the repository.
    fn shell(&self, command: &str, [out, folder]: [&Path; 2], test: bool) -> Result<Command> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        shell
            .env("BENCH", std::env::current_exe()?)
            .env("NAME", self.name)
            .env("OUT", out)
            .env("DISK", folder);
        shell.env("TEST", if test { "--test" } else { "" });
        shell.env("QUICK", if test { "--quick" } else { "" });
        // When and where this was is said once, of all of them.
        shell.env("KOEL_BENCH_RUN", about());
        Ok(shell)
    }
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let test = arguments.test;
    let (out, busy) = (arguments.value("--out")?.map(PathBuf::from), arguments.flag("--busy"));
    let folder = absolute(arguments.value("--folder")?.unwrap_or(".".into()))?;
    arguments.end()?;
    let usual = match test {
        true => std::env::temp_dir().join("koel-bench"),
        false => concat!(env!("CARGO_MANIFEST_DIR"), "/..").into(),
    };
    let out = absolute(out.unwrap_or(usual))?;
    while let Some(noise) = noise() {
        println!("The machine is not quiet: {noise}.");
        if busy || test {
            break;
        }
        println!("This looks again in a minute. With --busy, it goes on.");
        sleep(Duration::from_secs(60));
    }

    println!("{}", about());
    let mut parts = Vec::new();
    for part in &PARTS {
        let [needs, is_there] = part.needs;
        let mut ask = part.shell(is_there, [&out, &folder], test)?;
        if ask.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
            println!("  {:10} {}", part.name, time(part.minutes));
            parts.push(part);
        } else {
            println!("  {:10} left out: it needs {needs}", part.name);
        }
    }
    println!("  {:10} {}", "all", time(parts.iter().map(|part| part.minutes).sum()));

    let mut failed = Vec::new();
    for part in parts {
        println!("\n{}", part.name);
        let start = Instant::now();
        let out = out.join(part.results);
        if !part.shell(part.command, [&out, &folder], test)?.status()?.success() {
            failed.push(part.name);
        }
        println!("{} took {}", part.name, time(start.elapsed().as_secs().div_ceil(60)));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// The words through which pointers are chased: 64 MiB, so that each is out of the caches.
const WORDS: usize = 1 << 23;

/// Returns the place of the next word. All words are one cycle: the full period of a generator of random numbers.
fn next(place: usize) -> usize {
    (place.wrapping_mul(0x5851_F42D) + 0x1405_7B7F) % WORDS
}

/// Returns how other work is noticed, or `None` if the machine is quiet: hardly a thread wanted to run in the last
/// minute, two threads are as fast as one, in their caches and out of them, and one is as fast at any moment. (Of a
/// virtual machine, what others do on its host shows in the last alone.)
fn noise() -> Option<String> {
    let load = load()[0];
    if load > 0.5 {
        return Some(format!("the load average is {load}"));
    }
    if !all_cores(2, 9) {
        return Some("an empty loop takes longer on two threads than on one".into());
    }
    let words: Vec<usize> = (0..WORDS).map(next).collect();
    let chase = |thread: u64| {
        let first = (thread as usize + 1) * 1_234_567 % WORDS;
        black_box((0..1 << 19).fold(first, |place, _: u32| words[place]));
    };
    let time = |threads| median((0..9).map(|_| timed(threads, chase).0.as_secs_f64()));
    let ratio = time(2) / time(1);
    if ratio > 1.1 {
        let what = "times as long on two threads as on one";
        return Some(format!("a chase of pointers takes {ratio:.2} {what}"));
    }
    let mut times = [(); 9].map(|()| {
        sleep(Duration::from_millis(500));
        timed(1, chase).0.as_secs_f64()
    });
    times.sort_by(f64::total_cmp);
    // But for the fastest and the slowest.
    let swing = times[7] / times[1];
    (swing > 1.2).then(|| {
        format!("a chase of pointers takes {swing:.2} times as long at one moment as at another")
    })
}

fn time(minutes: u64) -> String {
    match minutes {
        0..60 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_goes_through_all_words() {
        let first_again = std::iter::successors(Some(next(0)), |place| Some(next(*place)));
        assert_eq!(first_again.take_while(|place| *place != 0).count(), WORDS - 1);
    }
}

//! A crawler of several processes, that share what they have seen by a cluster.
//!
//! ```sh
//! cargo run -p koel-redis --example crawl -- --cluster 127.0.0.1:7000,127.0.0.1:7001 --workers 3
//! ```
//!
//! The web is one site, served here over HTTP. Each worker is a process with a frontier of its own, seeded with
//! a page of its own; of the links that it finds, those that nobody had seen go into its frontier. In the end
//! the site tells which pages were fetched twice, and which were missed.

mod seen;
mod web;

use seen::{Options, Seen};
use std::collections::{BTreeSet, VecDeque};
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::{Duration, Instant, UNIX_EPOCH};
use web::{Browser, Site};

/// A worker asks about the links of this many pages at once.
const BATCH: usize = 20;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let done = option("--worker").and_then(|worker| match worker {
        Some(worker) => work(worker),
        None => crawl(),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the site, has workers crawl it, and tells what became of it.
fn crawl() -> Result<()> {
    let workers = option("--workers")?.unwrap_or(3);
    let pages = option("--pages")?.unwrap_or(10_000);
    let delay = option("--delay-ms")?.unwrap_or(1);
    // Sets of other crawls may still be there.
    let name = format!("seen-{}", UNIX_EPOCH.elapsed()?.as_millis());
    let site = Site::serve(pages, Duration::from_millis(delay))?;
    let start = Instant::now();
    let mut processes = Vec::new();
    for worker in 0..workers {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args().skip(1));
        command.args(["--worker", &worker.to_string(), "--site", &site.address, "--set", &name]);
        processes.push(command.spawn()?);
    }
    let mut failed = 0;
    for mut process in processes {
        failed += usize::from(!process.wait()?.success());
    }
    let fetched = site.fetched();
    let [pages, missed, twice] = [
        fetched.iter().filter(|times| **times > 0).count(),
        fetched.iter().filter(|times| **times == 0).count(),
        fetched.iter().filter(|times| **times > 1).count(),
    ];
    let time = start.elapsed().as_secs_f64();
    println!("{pages} pages in {time:.1} s, {twice} of them twice; {missed} missed");
    if failed == 0 && missed == 0 { Ok(()) } else { Err("not all was crawled".into()) }
}

#[tokio::main(flavor = "current_thread")]
async fn work(worker: usize) -> Result<()> {
    let nodes: String = option("--cluster")?.ok_or("--cluster host:port,… is missing")?;
    let nodes = nodes.split(',').map(|node| format!("redis://{node}")).collect();
    let site: String = option("--site")?.ok_or("a worker needs a site")?;
    let mut options = Options::default();
    options.name = option("--set")?.unwrap_or(options.name);
    options.partitions = option("--partitions")?.unwrap_or(options.partitions);
    // A page that the set confuses with another is missed. Here, that would look like a fault.
    options.error_rate = 1e-7;

    let mut seen = Seen::open(nodes, options).await?;
    let mut browser = Browser::open(&site).await?;
    let mut frontier = VecDeque::new();
    let mut links = vec![browser.url(worker)];
    loop {
        let answers = match seen.insert_new(&links).await {
            Ok(answers) => answers,
            Err(error) => {
                // Nobody will be told of these again, so a crawler that is to go on later would write them down.
                let new = error.answers.iter().filter(|answer| **answer == Some(true)).count();
                eprintln!("{} pages were not fetched yet", new + frontier.len());
                return Err(error.into());
            }
        };
        let new = links.into_iter().zip(answers).filter(|(_, new)| *new);
        frontier.extend(new.map(|(link, _)| link));
        if frontier.is_empty() {
            return Ok(());
        }
        let mut found = BTreeSet::new();
        for url in frontier.drain(..BATCH.min(frontier.len())) {
            found.extend(browser.fetch(&url).await?);
        }
        links = found.into_iter().collect();
    }
}

/// The value that follows a name among the arguments.
fn option<T: FromStr<Err: std::error::Error + 'static>>(name: &str) -> Result<Option<T>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    Ok(arguments.nth(1).map(|value| value.parse()).transpose()?)
}

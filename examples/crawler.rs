//! A web crawler whose workers share one filter, so that each page is fetched exactly once. If it is killed, it goes on
//! where it was.
//! (The site is made up: [`Site::get`] answers as a site would, a millisecond after it was asked.)
//!
//! Kill it in the middle of a large site, and run it again with the same folder:
//!
//! ```text
//! cargo run --release --example crawler 8 200000 crawl
//! ```
//!
//! # Why nothing is lost, and nothing done twice
//!
//! * `seen` is a filter in memory. When several workers find a link to the same page, `insert_if_absent` returns `true`
//!   to exactly one of them.
//! * `frontier` is a file with a line for each URL. That worker appends the URL to it, and queues it.
//! * `done` is a filter that survives its process. A page is inserted once its links are in the frontier.
//!
//! At the start, all URLs of the frontier are seen, and those that are not done are queued. So a kill finds each URL in
//! one of three states:
//!
//! 1. It is not in the frontier. The page of the worker that was to append it is not done: it is fetched again, and the
//!    URL is found again.
//! 2. It is in the frontier and not done. It is queued again. If it was being fetched, it is fetched a second time.
//! 3. It is done, and so its links are in the frontier. It is never fetched again.
//!
//! What was written to a file stays when the process is killed. When the power fails, the last lines of the frontier
//! may be lost. A crawler that has to survive that syncs the frontier before it marks a page as done.

use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: crawler [WORKERS] [PAGES] [FOLDER]

  WORKERS  number of threads that fetch pages, 1 to 100 (default 8)
  PAGES    number of pages of the site, 1 to 1000000 (default 5000)
  FOLDER   where the crawl is kept, so that it can go on after a kill (default: a temporary one)";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize, most: usize| match args.get(index) {
        None => Some(default),
        Some(arg) => arg.parse().ok().filter(|number| (1..=most).contains(number)),
    };
    let (Some(workers), Some(pages), 0..=3) =
        (number(0, 8, 100), number(1, 5_000, 1_000_000), args.len())
    else {
        return Err(USAGE.into());
    };
    let temporary = tempfile::tempdir()?;
    let folder = args.get(2).map_or(temporary.path(), Path::new);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;

    let crawl = Crawl::open(folder, pages)?;
    let site = Site { pages, log: Log::open(folder, "served")?.0 };
    site.log.append("start")?;
    println!("{BASE}, {workers} workers, {} of {pages} pages finished\n", crawl.done.len());
    let start = Instant::now();
    let fetched: Result<usize> = thread::scope(|scope| {
        let (crawl, site) = (&crawl, &site);
        let workers = (0..workers).map(|worker| scope.spawn(move || crawl.work(site, worker)));
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().expect("it does not panic")).sum()
    });
    println!("{} pages fetched in {:.2} s\n", fetched?, start.elapsed().as_secs_f64());

    let (_, log) = Log::open(folder, "served")?;
    let mut times: HashMap<&str, usize> = HashMap::new();
    for (_, page) in log.iter().filter_map(|line| line.split_once(' ')) {
        *times.entry(page).or_default() += 1;
    }
    let again = times.values().filter(|&&times| times > 1).count();
    println!("the site's own count, of all runs together");
    println!("  {:8} pages served once", times.len() - again);
    println!("  {again:8} pages served again, since a kill had found them unfinished");
    println!("  {:8} pages missed, by false positives\n", pages.saturating_sub(times.len()));
    println!("the filter of what was seen:\n{}", crawl.seen.stats());
    Ok(crawl.done.close()?) // so its file is complete without a journal
}

/// What is known of the site, in memory and in the folder.
struct Crawl {
    seen: ConcurrentCuckooFilter,
    frontier: Log,
    done: DurableFilter,
    queue: Queue,
}

impl Crawl {
    /// Begins a crawl, or goes on with the one that is in the folder.
    fn open(folder: &Path, pages: usize) -> Result<Crawl> {
        // A false positive means that a page is taken for one that was seen, and is never fetched. At this rate that
        // practically never happens. At the default rate, one crawl of 5000 pages in four would miss a page.
        let filter = ConcurrentCuckooFilter::builder().capacity(pages).growing();
        let filter = filter.false_positive_rate(1e-8);
        let seen = filter.clone().build()?;
        let filter = filter.hasher(StableHash::random());
        let done = DurableFilter::open(folder.join("done.koel"), filter)?;
        let (frontier, urls) = Log::open(folder, "frontier")?;
        let queue = Queue::default();
        for url in urls {
            seen.insert_if_absent(&url)?;
            if !done.contains(&url) {
                queue.push(url);
            }
        }
        let crawl = Crawl { seen, frontier, done, queue };
        crawl.offer(&format!("{BASE}0"))?;
        Ok(crawl)
    }

    /// Queues the URL unless it was queued before. If several workers offer the same URL at once, one of them queues it.
    fn offer(&self, url: &str) -> Result<()> {
        if self.seen.insert_if_absent(url)? {
            self.frontier.append(url)?;
            self.queue.push(url.to_owned());
        }
        Ok(())
    }

    /// Fetches pages and follows their links until the queue has no more of them. Returns the number of pages.
    fn work(&self, site: &Site, worker: usize) -> Result<usize> {
        let mut pages = 0;
        while let Some(job) = self.queue.next() {
            for link in site.get(worker, &job.url)? {
                // Links to several places of a page are links to one page.
                self.offer(link.split('#').next().unwrap_or_default())?;
            }
            // All of its links were offered: it is never needed again.
            self.done.insert(&job.url)?;
            pages += 1;
        }
        Ok(pages)
    }
}

/// A text file that only grows.
struct Log(File);

impl Log {
    /// Opens the file, and returns its lines.
    fn open(folder: &Path, name: &str) -> Result<(Log, Vec<String>)> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(folder.join(name));
        let mut file = file?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A kill may have cut the last line off.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        Ok((Log(file), text[..whole].lines().map(str::to_owned).collect()))
    }

    /// Appends a line, which is in the file when this returns, even if the process is killed then.
    fn append(&self, line: &str) -> Result<()> {
        Ok((&self.0).write_all(format!("{line}\n").as_bytes())?)
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// URLs to fetch, and the number of [`Job`]s that exist, because their pages may lead to more URLs.
#[derive(Default)]
struct State {
    urls: VecDeque<String>,
    busy: usize,
}

/// A URL that is being fetched. Dropping it marks the fetch as finished.
struct Job<'a> {
    url: String,
    queue: &'a Queue,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn push(&self, url: String) {
        self.state().urls.push_back(url);
        self.changed.notify_one();
    }

    /// Waits for the next URL. Returns `None` if the queue is empty and no fetch is in progress, so that no URL can
    /// follow.
    fn next(&self) -> Option<Job<'_>> {
        let waits = |state: &mut State| state.urls.is_empty() && state.busy > 0;
        let mut state = self.changed.wait_while(self.state(), waits).ok()?;
        let url = state.urls.pop_front()?;
        state.busy += 1;
        Some(Job { url, queue: self })
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.queue.state().busy -= 1;
        self.queue.changed.notify_all();
    }
}

const BASE: &str = "https://site.example/articles/";

/// A made-up site. It is the same in every run.
struct Site {
    pages: usize,
    /// A line for each start, and for each page that is served. At the end the crawler counts them.
    log: Log,
}

impl Site {
    /// Returns the links of a page.
    fn get(&self, worker: usize, url: &str) -> Result<Vec<String>> {
        thread::sleep(Duration::from_millis(1));
        let page: usize = url.strip_prefix(BASE).ok_or("another site")?.parse()?;
        self.log.append(&format!("worker-{worker} {page}"))?;
        // A tree, so that every page can be reached, and links across it.
        let below = (4 * page + 1..=4 * page + 4).filter(|&below| below < self.pages);
        let across = (0..12).map(|link| scatter(12 * page + link) % self.pages);
        let history = across.clone().map(|page| format!("{BASE}{page}#history"));
        Ok(below.chain(across).map(|page| format!("{BASE}{page}")).chain(history).collect())
    }
}

/// Maps each number to a pseudo-random one, always the same.
fn scatter(number: usize) -> usize {
    let z = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)) as usize >> 1
}

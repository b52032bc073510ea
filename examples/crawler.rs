//! A web crawler whose workers share one filter, so that each page is fetched exactly once. If it is killed, it goes on
//! where it was.
//!
//! The example serves a made-up site on the loopback interface and crawls it over real HTTP.
//!
//! ```text
//! cargo run --release --example crawler [WORKERS] [PAGES] [FOLDER]
//! ```
//!
//! Kill it in the middle of a large site, and run it again with the same folder:
//!
//! ```text
//! cargo run --release --example crawler 8 1000000 crawl
//! ```
//!
//! Read [`Crawl`] and [`Worker`] to see how koel is used. The rest of the file is the crawler's queue, its HTTP client,
//! and the site.
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
//!
//! The site keeps a log, as sites do. At the end the crawler reads there how often each page was served, by all runs
//! together, so you can check that none was fetched again after it was finished.

use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
use std::collections::{HashMap, HashSet, VecDeque};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: crawler [WORKERS] [PAGES] [FOLDER]

  WORKERS  number of threads that fetch pages, 1 to 100 (default 8)
  PAGES    number of pages of the site, 1 to 1000000 (default 5000)
  FOLDER   where the crawl is kept, so that it can go on after a kill (default: a temporary one)";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    start().unwrap_or_else(|error| {
        eprintln!("crawler: {error}");
        ExitCode::FAILURE
    })
}

fn start() -> Result<ExitCode> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let number = |index: usize, default: usize, most: usize| match args.get(index) {
        None => Some(default),
        Some(arg) => arg.to_str()?.parse().ok().filter(|n| (1..=most).contains(n)),
    };
    let (Some(workers), Some(pages), 0..=3) =
        (number(0, 8, 100), number(1, 5_000, 1_000_000), args.len())
    else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let temporary = tempfile::tempdir()?;
    let folder = args.get(2).map_or(temporary.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;

    let crawl = Arc::new(Crawl::open(&folder, pages)?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let site = Arc::new(Site::open(&folder, pages)?);
    thread::spawn(move || serve(&listener, &site));

    println!("site: {BASE}/, pages: {pages}, workers: {workers}");
    println!("URLs that other runs have finished: {}\n", crawl.done.len());
    let start = Instant::now();
    let tally = run(&crawl, workers, address)?;
    report(&folder, pages, &crawl, &tally, start.elapsed())
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
        // practically never happens. The default rate takes half the memory, and about one crawl of 5000 pages in four
        // would miss a page.
        let filter = ConcurrentCuckooFilter::builder().capacity(pages).growing();
        let filter = filter.false_positive_rate(1e-8);
        let seen = filter.clone().build()?;
        let done =
            DurableFilter::open(folder.join("done.koel"), filter.hasher(StableHash::random()))?;

        let (frontier, urls) = Log::open(&folder.join("frontier"))?;
        let queue = Queue::default();
        for url in urls {
            seen.insert_if_absent(&url)?;
            if !done.contains(&url) {
                queue.push(url);
            }
        }
        let crawl = Crawl { seen, frontier, done, queue };
        crawl.offer(&format!("{BASE}/"))?;
        Ok(crawl)
    }

    /// Queues the URL unless it was queued before. Returns `true` if it was new.
    ///
    /// If several workers offer the same URL at once, exactly one of them queues it.
    fn offer(&self, url: &str) -> Result<bool> {
        let new = self.seen.insert_if_absent(url)?;
        if new {
            self.frontier.append(url)?;
            self.queue.push(url.to_owned());
        }
        Ok(new)
    }

    /// Notes that a page is never needed again. All of its links were offered.
    fn finish(&self, url: &str) -> Result<()> {
        Ok(self.done.insert(url)?)
    }
}

/// Fetches pages until none is left to fetch.
fn run(crawl: &Arc<Crawl>, workers: usize, address: SocketAddr) -> Result<Tally> {
    let new_worker = |number| Worker {
        crawl: Arc::clone(crawl),
        client: Client { name: format!("worker-{number}"), address, connection: None },
        tally: Tally::default(),
    };
    let workers = (0..workers).map(new_worker);
    let threads: Vec<_> = workers.map(|worker| thread::spawn(move || worker.run())).collect();
    let mut total = Tally::default();
    for thread in threads {
        total.add(&thread.join().expect("a worker does not panic")?);
    }
    Ok(total)
}

/// A thread that fetches pages and follows their links.
struct Worker {
    crawl: Arc<Crawl>,
    client: Client,
    tally: Tally,
}

impl Worker {
    /// Fetches pages until the queue has no more of them.
    fn run(mut self) -> Result<Tally> {
        let crawl = Arc::clone(&self.crawl);
        while let Some(job) = crawl.queue.next() {
            let (status, body) = self.client.get(&job.url[BASE.len()..])?;
            match status {
                200 => {
                    self.tally.fetched += 1;
                    self.follow_links(&body)?;
                }
                404 => self.tally.dead += 1,
                503 => {
                    // It is in the frontier already. A crawler of real sites would also wait before it tries again, and
                    // give up after some attempts.
                    self.tally.retries += 1;
                    crawl.queue.push(job.url.clone());
                    continue;
                }
                _ => return Err(format!("{}: unexpected status {status}", job.url).into()),
            }
            crawl.finish(&job.url)?;
        }
        Ok(self.tally)
    }

    fn follow_links(&mut self, html: &str) -> Result<()> {
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            self.tally.links += 1;
            match resolve(link) {
                Some(url) if self.crawl.offer(&url)? => {}
                Some(_) => self.tally.duplicates += 1,
                None => self.tally.external += 1,
            }
        }
        Ok(())
    }
}

/// Normalises a link: links to the same page get the same URL. Returns `None` if it leads to
/// another site.
fn resolve(link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default();
    let path = link.strip_prefix(BASE).unwrap_or(link);
    (path.starts_with('/') && !path.starts_with("//")).then(|| format!("{BASE}{path}"))
}

/// A text file that only grows.
struct Log(File);

impl Log {
    /// Opens the file, and returns its lines.
    fn open(path: &Path) -> Result<(Log, Vec<String>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
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

/// A queue of URLs to fetch. It also counts the URLs that are being fetched, because their pages
/// may lead to more.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    urls: VecDeque<String>,
    /// The number of [`Job`]s that exist.
    busy: usize,
}

/// A URL that is being fetched. Dropping it marks the fetch as finished.
struct Job<'a> {
    url: String,
    queue: &'a Queue,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn push(&self, url: String) {
        self.state().urls.push_back(url);
        self.changed.notify_one();
    }

    /// Waits for the next URL. Returns `None` if the queue is empty and no fetch is in progress, so
    /// that no URL can follow.
    fn next(&self) -> Option<Job<'_>> {
        let waits = |state: &mut QueueState| state.urls.is_empty() && state.busy > 0;
        let mut state = self.changed.wait_while(self.state(), waits).ok()?;
        let url = state.urls.pop_front()?;
        state.busy += 1;
        Some(Job { url, queue: self })
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.queue.changed.notify_all();
        }
    }
}

/// What the workers have counted.
#[derive(Default)]
struct Tally {
    fetched: usize,
    links: usize,
    duplicates: usize,
    external: usize,
    retries: usize,
    dead: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.fetched += other.fetched;
        self.links += other.links;
        self.duplicates += other.duplicates;
        self.external += other.external;
        self.retries += other.retries;
        self.dead += other.dead;
    }
}

/// Prints the results. Returns a failure if a page was served again after it was finished.
fn report(
    folder: &Path,
    pages: usize,
    crawl: &Crawl,
    tally: &Tally,
    took: Duration,
) -> Result<ExitCode> {
    let row = |label, count: usize, note: &str| {
        println!("{}", format!("  {label:26}{count:>8}  {note}").trim_end());
    };
    let speed = tally.fetched as f64 / took.as_secs_f64();
    println!("crawled in {:.2} s", took.as_secs_f64());
    row("pages fetched", tally.fetched, &format!("{speed:.0} a second"));
    row("links found", tally.links, "");
    row("duplicates turned away", tally.duplicates, "");
    row("links to other sites", tally.external, "not followed");
    row("dead links", tally.dead, "404");
    row("retries", tally.retries, "503, queued again");

    let (_, log) = Log::open(&folder.join("served"))?;
    let served = Served::read(&log);
    println!("\nthe server's own count of pages, in all runs");
    row("served exactly once", served.pages - served.again, "");
    row("served once more", served.again, "a kill found them unfinished");
    row("served when finished", served.finished, "");
    row("missed (false positives)", pages.saturating_sub(served.pages), "");

    let urls = crawl.seen.len();
    let url_bytes = fs::metadata(folder.join("frontier"))?.len() as usize - urls;
    let exact = (url_bytes + urls * (size_of::<String>() + 1) * 8 / 7) as f64;
    let ratio = exact / crawl.seen.size_in_bytes() as f64;
    println!(
        "\nthe filter of what was seen\n  {}",
        crawl.seen.stats().to_string().replace('\n', "\n  ")
    );
    println!(
        "  estimate for a HashSet<String> of the same URLs: {:.1} KiB, {ratio:.1} times as much",
        exact / 1_024.0
    );
    if served.finished > 0 {
        eprintln!("\ncrawler: {} pages were served again when they were finished", served.finished);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the log of the site tells.
#[derive(Default)]
struct Served {
    /// Different pages.
    pages: usize,
    /// Pages that were served more than once.
    again: usize,
    /// How often a page was served that a worker had finished.
    finished: usize,
}

impl Served {
    /// A worker that asks for a page has finished the one before, unless it is a worker of another run.
    fn read(log: &[String]) -> Served {
        let mut last = HashMap::new();
        let mut times: HashMap<&str, usize> = HashMap::new();
        let mut finished = HashSet::new();
        let mut served = Served::default();
        for line in log {
            let Some((worker, page)) = line.split_once(' ') else {
                last.clear(); // a start
                continue;
            };
            served.finished += usize::from(finished.contains(page));
            *times.entry(page).or_default() += 1;
            finished.extend(last.insert(worker, page));
        }
        served.pages = times.len();
        served.again = times.values().filter(|&&times| times > 1).count();
        served
    }
}

/// An HTTP client for one host. It reuses its connection until the host closes it.
struct Client {
    /// What the site knows it by.
    name: String,
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Fetches a page. Returns the status and the body.
    fn get(&mut self, path: &str) -> Result<(u16, String)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(TcpStream::connect(self.address)?),
        };
        let name = &self.name;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {name}\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes())?;
        let head = read_head(&mut connection)?;
        let status = head.first().and_then(|line| line.split(' ').nth(1)).ok_or("no status")?;
        let length = field(&head, "Content-Length").ok_or("no Content-Length")?;
        let mut body = vec![0; length.parse()?];
        connection.read_exact(&mut body)?;
        if !closes(&head) {
            self.connection = Some(connection);
        }
        Ok((status.parse()?, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// Reads the lines of an HTTP request or response up to the empty line. Returns no lines if the
/// peer has closed the connection.
fn read_head(connection: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
    connection.lines().take_while(|line| !matches!(line.as_deref(), Ok(""))).collect()
}

/// Returns the value of a header field.
fn field<'a>(head: &'a [String], wanted: &str) -> Option<&'a str> {
    let mut fields = head.iter().skip(1).filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

/// Whether the peer closes the connection after this message.
fn closes(head: &[String]) -> bool {
    field(head, "Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// The site's name. It is served here, whatever its name says.
const HOST: &str = "site.example";
const BASE: &str = "http://site.example";

/// The number of URLs that the site links to but does not have.
const DEAD_LINKS: usize = 25;

/// A made-up site. It is the same in every run.
struct Site {
    pages: usize,
    /// A line for each start, and for each page that is served.
    log: Log,
    /// One page in 500 fails at its first request.
    failed: Mutex<HashSet<usize>>,
}

impl Site {
    fn open(folder: &Path, pages: usize) -> Result<Site> {
        let (log, _) = Log::open(&folder.join("served"))?;
        log.append("start")?;
        Ok(Site { pages, log, failed: Mutex::default() })
    }

    fn path(page: usize) -> String {
        if page == 0 { "/".to_owned() } else { format!("/articles/{page}") }
    }

    /// Answers a request. Returns the status and the body.
    fn answer(&self, path: &str, client: &str) -> Result<(&'static str, String)> {
        let number = path.strip_prefix("/articles/").unwrap_or("0").parse().ok();
        let page = number.filter(|&page| Site::path(page) == path && page < self.pages);
        let Some(page) = page else { return Ok(("404 Not Found", "not here\n".to_owned())) };
        if page % 500 == 250 && self.failed.lock().expect("no thread panics").insert(page) {
            return Ok(("503 Service Unavailable", "not now\n".to_owned()));
        }
        self.log.append(&format!("{client} {path}"))?;
        Ok(("200 OK", self.html(page)))
    }

    fn html(&self, page: usize) -> String {
        let pages = self.pages;
        let mut links = vec!["/".to_owned()];
        // A tree, so that every page can be reached.
        links.extend((4 * page + 1..=4 * page + 4).filter(|&below| below < pages).map(Site::path));
        // Links across the tree, written in four ways.
        for i in 0..12 {
            let host = if i % 2 == 0 { "" } else { BASE };
            let path = Site::path(scatter(12 * page + i) % pages);
            let fragment = if i % 4 < 2 { "" } else { "#history" };
            links.push(format!("{host}{path}{fragment}"));
        }
        // Links to another site, and dead links.
        if page.is_multiple_of(3) {
            links.push(format!("http://elsewhere.example/{page}"));
        }
        if page.is_multiple_of(20) {
            links.push(format!("/gone/{}", page / 20 % DEAD_LINKS));
        }
        let items: String = links
            .iter()
            .map(|link| format!("<li><a href=\"{link}\">see also</a></li>\n"))
            .collect();
        format!("<!doctype html>\n<title>Article {page}</title>\n<ul>\n{items}</ul>\n")
    }
}

/// Maps each number to a pseudo-random one, always the same.
fn scatter(number: usize) -> usize {
    let z = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)) as usize >> 1
}

/// Serves the site until the process ends. Each connection has a thread of its own.
fn serve(listener: &TcpListener, site: &Arc<Site>) {
    for stream in listener.incoming() {
        let site = Arc::clone(site);
        thread::spawn(move || {
            if let Err(error) =
                stream.map_err(Into::into).and_then(|stream| converse(stream, &site))
            {
                eprintln!("server: {error}");
            }
        });
    }
}

/// Answers the requests of one connection. Like many servers, it closes the connection after 100
/// requests.
fn converse(stream: TcpStream, site: &Site) -> Result<()> {
    let mut connection = BufReader::new(stream);
    for left in (0..100).rev() {
        let head = read_head(&mut connection)?;
        let Some(first) = head.first() else { break };
        let has_body =
            field(&head, "Content-Length").or(field(&head, "Transfer-Encoding")).is_some();
        let answer = match first.split(' ').collect::<Vec<_>>()[..] {
            ["GET", path, "HTTP/1.1"] if !has_body => {
                Some(site.answer(path, field(&head, "User-Agent").unwrap_or("somebody"))?)
            }
            _ => None,
        };
        let stays = left > 0 && answer.is_some() && !closes(&head);
        let (status, body) = answer.unwrap_or(("400 Bad Request", String::new()));
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n{}\r\n{body}",
            body.len(),
            if stays { "" } else { "Connection: close\r\n" },
        );
        connection.get_mut().write_all(response.as_bytes())?;
        if !stays {
            break;
        }
    }
    Ok(())
}

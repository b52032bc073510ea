//! A web crawler whose workers share one filter, so that each page is fetched exactly once.
//!
//! The example serves a made-up site on the loopback interface and crawls it over real HTTP.
//!
//! Read [`main`] and [`Worker`] to see how koel is used. When several workers find a link to the
//! same page, `insert_if_absent` returns `true` to exactly one of them, which queues the page. A
//! page that could not be fetched is removed from the filter and offered again. The rest of the
//! file is the crawler's queue, its HTTP client, and the site.
//!
//! At the end the crawler prints how often the server has served each page, so you can check that
//! none was fetched twice.
//!
//! ```text
//! cargo run --release --example crawler [WORKERS] [PAGES]
//! ```

use koel::ConcurrentCuckooFilter;
use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: crawler [WORKERS] [PAGES]

  WORKERS  number of threads that fetch pages, 1 to 100 (default 8)
  PAGES    number of pages of the site, 1 to 1000000 (default 5000)";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<ExitCode> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.iter().any(|arg| arg == "-h" || arg == "--help") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let number = |index: usize, default: usize, most: usize| match args.get(index) {
        None => Some(default),
        Some(arg) => arg.to_str()?.parse().ok().filter(|n| (1..=most).contains(n)),
    };
    let (Some(workers), Some(pages), 0..=2) =
        (number(0, 8, 100), number(1, 5_000, 1_000_000), args.len())
    else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let site = Arc::new(Site::new(listener.local_addr()?, pages));
    let served = Arc::clone(&site);
    thread::spawn(move || serve(&listener, &served));

    // The capacity is the number of different URLs, so all of them fit.
    //
    // A false positive means that a page is taken for one that was seen, and is never fetched. At
    // this rate that practically never happens. The default rate takes half the memory, and about
    // one crawl of 5000 pages in four would miss a page.
    let seen = ConcurrentCuckooFilter::builder()
        .capacity(pages + DEAD_LINKS)
        .false_positive_rate(1e-8)
        .build()?;
    let seen = Arc::new(seen);

    println!("site: {}/, pages: {pages}, workers: {workers}\n", site.base);
    let start = Instant::now();
    let tally = crawl(&site, workers, &seen)?;
    Ok(report(&site, &seen, &tally, start.elapsed()))
}

/// Crawls the site from its front page until no page is left to fetch.
fn crawl(site: &Site, workers: usize, seen: &Arc<ConcurrentCuckooFilter>) -> Result<Tally> {
    let frontier = Arc::new(Frontier::default());
    let new_worker = |_| Worker {
        seen: Arc::clone(seen),
        frontier: Arc::clone(&frontier),
        client: Client { address: site.address, connection: None },
        base: site.base.clone(),
        tally: Tally::default(),
    };
    let workers: Vec<_> = (0..workers).map(new_worker).collect();
    workers[0].offer(&format!("{}/", site.base))?;
    let threads: Vec<_> =
        workers.into_iter().map(|worker| thread::spawn(move || worker.run())).collect();
    let mut total = Tally::default();
    for thread in threads {
        total.add(&thread.join().expect("a worker does not panic")?);
    }
    Ok(total)
}

/// A thread that fetches pages and follows their links.
struct Worker {
    seen: Arc<ConcurrentCuckooFilter>,
    frontier: Arc<Frontier>,
    client: Client,
    base: String,
    tally: Tally,
}

impl Worker {
    /// Queues the URL unless it was queued before. Returns `true` if it was new.
    ///
    /// If several workers offer the same URL at once, exactly one of them queues it.
    fn offer(&self, url: &str) -> Result<bool> {
        let new = self.seen.insert_if_absent(url)?;
        if new {
            self.frontier.push(url.to_owned());
        }
        Ok(new)
    }

    /// Forgets a URL that could not be fetched, and offers it again.
    ///
    /// Only an item that was inserted may be removed. This URL came from the frontier, so an
    /// `insert_if_absent` returned `true` for it, and this `remove` undoes that insert. After the
    /// removal, the first worker to offer the URL queues it. That may be another worker, which has
    /// just found a link to it. A crawler of real sites would also wait before it retries, and
    /// give up after some attempts.
    fn retry(&self, url: &str) -> Result<()> {
        self.seen.remove(url);
        self.offer(url)?;
        Ok(())
    }

    /// Fetches pages until the frontier has no more of them.
    fn run(mut self) -> Result<Tally> {
        let frontier = Arc::clone(&self.frontier);
        while let Some(job) = frontier.next() {
            let (status, body) = self.client.get(&job.url[self.base.len()..])?;
            match status {
                200 => {
                    self.tally.fetched += 1;
                    self.follow_links(&body)?;
                }
                404 => self.tally.dead += 1,
                503 => {
                    self.tally.retries += 1;
                    self.retry(&job.url)?;
                    continue;
                }
                _ => return Err(format!("{}: unexpected status {status}", job.url).into()),
            }
            self.tally.url_bytes += job.url.len();
        }
        Ok(self.tally)
    }

    fn follow_links(&mut self, html: &str) -> Result<()> {
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            self.tally.links += 1;
            match resolve(&self.base, link) {
                Some(url) if self.offer(&url)? => {}
                Some(_) => self.tally.duplicates += 1,
                None => self.tally.external += 1,
            }
        }
        Ok(())
    }
}

/// Normalises a link: links to the same page get the same URL. Returns `None` if it leads to
/// another site.
fn resolve(base: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default();
    let path = link.strip_prefix(base).unwrap_or(link);
    (path.starts_with('/') && !path.starts_with("//")).then(|| format!("{base}{path}"))
}

/// A queue of URLs to fetch. It also counts the URLs that are being fetched, because their pages
/// may lead to more.
#[derive(Default)]
struct Frontier {
    state: Mutex<FrontierState>,
    changed: Condvar,
}

#[derive(Default)]
struct FrontierState {
    urls: VecDeque<String>,
    /// The number of [`Job`]s that exist.
    busy: usize,
}

/// A URL that is being fetched. Dropping it marks the fetch as finished.
struct Job<'a> {
    url: String,
    frontier: &'a Frontier,
}

impl Frontier {
    fn state(&self) -> MutexGuard<'_, FrontierState> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn push(&self, url: String) {
        self.state().urls.push_back(url);
        self.changed.notify_one();
    }

    /// Waits for the next URL. Returns `None` if the queue is empty and no fetch is in progress, so
    /// that no URL can follow.
    fn next(&self) -> Option<Job<'_>> {
        let waits = |state: &mut FrontierState| state.urls.is_empty() && state.busy > 0;
        let mut state = self.changed.wait_while(self.state(), waits).ok()?;
        let url = state.urls.pop_front()?;
        state.busy += 1;
        Some(Job { url, frontier: self })
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut state = self.frontier.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.frontier.changed.notify_all();
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
    url_bytes: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.fetched += other.fetched;
        self.links += other.links;
        self.duplicates += other.duplicates;
        self.external += other.external;
        self.retries += other.retries;
        self.dead += other.dead;
        self.url_bytes += other.url_bytes;
    }
}

/// Prints the results. Returns a failure if a page was served more than once.
fn report(site: &Site, seen: &ConcurrentCuckooFilter, tally: &Tally, took: Duration) -> ExitCode {
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
    row("retries", tally.retries, "503, removed from the filter and offered again");

    let served = |wanted: fn(i32) -> bool| {
        site.served.iter().filter(|times| wanted(times.load(Relaxed))).count()
    };
    let repeated = served(|times| times > 1);
    println!("\nthe server's own count of pages");
    row("served exactly once", served(|times| times == 1), "");
    row("served more than once", repeated, "");
    row("missed (false positives)", served(|times| times < 1), "");

    let urls = tally.fetched + tally.dead;
    let exact = (tally.url_bytes + urls * (size_of::<String>() + 1) * 8 / 7) as f64;
    let ratio = exact / seen.size_in_bytes() as f64;
    println!("\nthe filter\n  {}", seen.stats().to_string().replace('\n', "\n  "));
    println!(
        "  estimate for a HashSet<String> of the same URLs: {:.1} KiB, {ratio:.1} times as much",
        exact / 1_024.0
    );
    if repeated > 0 {
        eprintln!("\ncrawler: {repeated} pages were served more than once");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// An HTTP client for one host. It reuses its connection until the host closes it.
struct Client {
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
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
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

/// The number of URLs that the site links to but does not have.
const DEAD_LINKS: usize = 25;

/// A made-up site. It is the same in every run.
struct Site {
    address: SocketAddr,
    base: String,
    /// How often each page was served. One page in 500 starts at -1: its first request fails.
    served: Vec<AtomicI32>,
}

impl Site {
    fn new(address: SocketAddr, pages: usize) -> Site {
        let first = |page| AtomicI32::new(if page % 500 == 250 { -1 } else { 0 });
        Site { address, base: format!("http://{address}"), served: (0..pages).map(first).collect() }
    }

    fn path(page: usize) -> String {
        if page == 0 { "/".to_owned() } else { format!("/articles/{page}") }
    }

    /// Answers a request. Returns the status and the body.
    fn answer(&self, path: &str) -> (&'static str, String) {
        let number = path.strip_prefix("/articles/").unwrap_or("0").parse().ok();
        let page = number.filter(|&page| Site::path(page) == path && page < self.served.len());
        let Some(page) = page else { return ("404 Not Found", "not here\n".to_owned()) };
        if self.served[page].fetch_add(1, Relaxed) < 0 {
            return ("503 Service Unavailable", "not now\n".to_owned());
        }
        ("200 OK", self.html(page))
    }

    fn html(&self, page: usize) -> String {
        let pages = self.served.len();
        let mut links = vec!["/".to_owned()];
        // A tree, so that every page can be reached.
        links.extend((4 * page + 1..=4 * page + 4).filter(|&below| below < pages).map(Site::path));
        // Links across the tree, written in four ways.
        for i in 0..12 {
            let host = if i % 2 == 0 { "" } else { &self.base };
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
            if let Err(error) = stream.and_then(|stream| converse(stream, &site)) {
                eprintln!("server: {error}");
            }
        });
    }
}

/// Answers the requests of one connection. Like many servers, it closes the connection after 100
/// requests.
fn converse(stream: TcpStream, site: &Site) -> io::Result<()> {
    let mut connection = BufReader::new(stream);
    for left in (0..100).rev() {
        let head = read_head(&mut connection)?;
        let Some(first) = head.first() else { break };
        let has_body =
            field(&head, "Content-Length").or(field(&head, "Transfer-Encoding")).is_some();
        let answer = match first.split(' ').collect::<Vec<_>>()[..] {
            ["GET", path, "HTTP/1.1"] if !has_body => Some(site.answer(path)),
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

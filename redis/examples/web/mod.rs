//! A web of one site, and a browser for it: as much of HTTP as the crawler needs.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// A site, that counts how often each of its pages was fetched.
pub struct Site {
    pub address: String,
    fetched: Arc<Vec<AtomicUsize>>,
}

impl Site {
    /// Serves this many pages on loopback. Each takes a while, as pages do.
    pub fn serve(pages: usize, delay: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let fetched: Arc<Vec<_>> = Arc::new((0..pages).map(|_| AtomicUsize::new(0)).collect());
        let site = Site { address, fetched: fetched.clone() };
        let total = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (fetched, total) = (fetched.clone(), total.clone());
                // It ends with its connection.
                thread::spawn(move || serve(stream, &fetched, &total, delay));
            }
        });
        Ok(site)
    }

    /// How often each page was fetched.
    pub fn fetched(&self) -> Vec<usize> {
        self.fetched.iter().map(|times| times.load(Ordering::Relaxed)).collect()
    }
}

fn serve(
    stream: TcpStream,
    fetched: &[AtomicUsize],
    total: &AtomicUsize,
    delay: Duration,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut stream = stream;
    while let Some(request) = lines.next().transpose()? {
        // The headers say nothing that matters here.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let page = request.strip_prefix("GET /").and_then(|rest| rest.split(' ').next());
        let page = page.and_then(|page| page.parse().ok()).filter(|page| *page < fetched.len());
        let (status, body) = match page {
            Some(page) => ("200 OK", html(page, fetched.len())),
            None => ("404 Not Found", String::new()),
        };
        thread::sleep(delay);
        if let Some(page) = page {
            fetched[page].fetch_add(1, Ordering::Relaxed);
            let total = total.fetch_add(1, Ordering::Relaxed) + 1;
            if total.is_multiple_of(1_000) {
                println!("{total} pages");
            }
        }
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}")?;
    }
    Ok(())
}

/// A page with links to ten others. Two of them make a tree, so that each page can be reached from the first.
fn html(page: usize, pages: usize) -> String {
    let tree = [2 * page + 1, 2 * page + 2].into_iter().filter(|page| *page < pages);
    let others = (0..8).map(|link| (page * 8 + link).wrapping_mul(0x9e37_79b1) % pages);
    tree.chain(others).map(|link| format!("<a href=\"/{link}\">{link}</a>\n")).collect()
}

/// A connection to a site.
pub struct Browser {
    site: String,
    stream: tokio::io::BufStream<tokio::net::TcpStream>,
}

impl Browser {
    pub async fn open(site: &str) -> std::io::Result<Self> {
        let stream = tokio::net::TcpStream::connect(site).await?;
        stream.set_nodelay(true)?;
        Ok(Browser { site: site.into(), stream: tokio::io::BufStream::new(stream) })
    }

    /// The address of a page.
    pub fn url(&self, page: usize) -> String {
        format!("http://{}/{page}", self.site)
    }

    /// The links of a page.
    pub async fn fetch(&mut self, url: &str) -> std::io::Result<Vec<String>> {
        let site = format!("http://{}", self.site);
        let path = url.strip_prefix(&site).ok_or(std::io::ErrorKind::InvalidInput)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.site);
        self.stream.write_all(request.as_bytes()).await?;
        self.stream.flush().await?;
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().map_err(|_| std::io::ErrorKind::InvalidData)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let links = body.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        Ok(links.map(|(path, _)| format!("{site}{path}")).collect())
    }
}

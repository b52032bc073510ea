//! A synthetic crawl: URLs of about 70 bytes, half of them repeated. The same number of lines
//! always gives the same crawl.
//!
//! The URL of a page depends only on its number, so no page has to be remembered.

use crate::random::{mix, scaled};
use std::io::{self, Read};

pub struct Crawl {
    lines_left: u64,
    /// The number of distinct pages so far.
    pages: u64,
    random: u64,
    /// Lines that were generated; those before `start` have been read.
    made: Vec<u8>,
    start: usize,
}

impl Crawl {
    pub fn new(lines: u64) -> Self {
        Crawl { lines_left: lines, pages: 0, random: 0, made: Vec::new(), start: 0 }
    }

    fn random(&mut self) -> u64 {
        self.random += 1;
        mix(self.random)
    }

    /// Generates the next line: a new page or an earlier one, with equal probability.
    fn add_line(&mut self) {
        let random = self.random();
        let page = if self.pages == 0 || random.is_multiple_of(2) {
            self.pages += 1;
            self.pages - 1
        } else {
            scaled(random.rotate_left(32), self.pages)
        };
        write_page(page, &mut self.made);
        self.made.push(b'\n');
    }
}

impl Read for Crawl {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.start == self.made.len() {
            self.made.clear();
            self.start = 0;
            while self.lines_left > 0 && self.made.len() < 1 << 16 {
                self.add_line();
                self.lines_left -= 1;
            }
        }
        let length = into.len().min(self.made.len() - self.start);
        into[..length].copy_from_slice(&self.made[self.start..self.start + length]);
        self.start += length;
        Ok(length)
    }
}

const TOPICS: [&str; 16] = [
    "archive",
    "articles",
    "blog",
    "catalogue",
    "community",
    "docs",
    "events",
    "forum",
    "gallery",
    "help",
    "library",
    "news",
    "products",
    "research",
    "reviews",
    "stories",
];

const WORDS: [&str; 32] = [
    "amber", "birch", "canal", "delta", "ember", "fjord", "grove", "harbour", "island", "juniper",
    "kestrel", "lantern", "meadow", "nightjar", "orchard", "pebble", "quarry", "river", "saffron",
    "thicket", "upland", "valley", "willow", "yarrow", "zephyr", "bramble", "cobalt", "dune",
    "falcon", "glacier", "heron", "moss",
];

/// Appends the URL of a page. It contains the number of the page, so no two pages share a URL.
fn write_page(page: u64, line: &mut Vec<u8>) {
    let random = mix(!page);
    let pick =
        |words: &[&'static str], byte: u32| words[(random >> (8 * byte)) as usize % words.len()];
    line.extend(b"https://");
    line.extend(pick(&WORDS, 0).as_bytes());
    line.push(b'-');
    line.extend(pick(&WORDS, 1).as_bytes());
    line.extend(b".example/");
    line.extend(pick(&TOPICS, 2).as_bytes());
    line.push(b'/');
    line.extend(pick(&WORDS, 3).as_bytes());
    line.push(b'-');
    line.extend(pick(&WORDS, 4).as_bytes());
    line.push(b'/');
    write_number(page, line);
    if random >> 40 & 1 == 0 {
        line.extend(b"?page=");
        write_number(random >> 48 & 0xFF, line);
        line.extend(b"&sort=date");
    }
}

fn write_number(mut number: u64, line: &mut Vec<u8>) {
    let start = line.len();
    loop {
        line.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn half_of_the_lines_are_repeated() {
        let mut text = String::new();
        Crawl::new(100_000).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let different: HashSet<&str> = lines.iter().copied().collect();
        assert_eq!(lines.len(), 100_000);
        assert!((49_000..51_000).contains(&different.len()), "{}", different.len());
        assert!((62..72).contains(&(text.len() / lines.len())), "{}", text.len() / lines.len());
    }

    #[test]
    fn a_crawl_is_always_the_same() {
        let mut text = String::new();
        Crawl::new(3).read_to_string(&mut text).unwrap();
        let urls = [
            "https://amber-heron.example/docs/zephyr-grove/0",
            "https://upland-bramble.example/help/saffron-island/1?page=188&sort=date",
            "https://upland-bramble.example/help/saffron-island/1?page=188&sort=date",
        ];
        assert!(text.lines().eq(urls), "{text}");
    }
}

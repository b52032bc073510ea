//! `koel sample`: writes a synthetic crawl, URLs of about 70 bytes, half of them repeated. The same number of lines
//! always gives the same crawl.
//!
//! The URL of a page depends only on its number, so no page has to be remembered.

use crate::failure::Failure;
use crate::lines::output::Sink;
use std::io::Write;
use std::sync::LazyLock;

/// Writes a crawl to standard output.
pub fn write(lines: u64) -> Result<(), Failure> {
    let output = Sink::standard(&[], None)?;
    let (mut text, mut pages) = (Vec::new(), 0);
    for line in 1..=lines {
        add_line(line, &mut pages, &mut text);
        if text.len() < 1 << 16 && line < lines {
            continue;
        }
        if !output.print(&text)? {
            break;
        }
        text.clear();
    }
    Ok(())
}

/// Appends a line: a new page or one of the earlier ones, with equal probability.
fn add_line(line: u64, pages: &mut u64, text: &mut Vec<u8>) {
    let random = mix(line);
    let page = if *pages == 0 || random.is_multiple_of(2) {
        *pages += 1;
        *pages - 1
    } else {
        scaled(random.rotate_left(32), *pages)
    };
    write_page(page, text);
}

/// Mixes the bits of a number with the finalizer of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Maps a random number to `0..below`, almost uniformly.
fn scaled(random: u64, below: u64) -> u64 {
    ((u128::from(random) * u128::from(below)) >> 64) as u64
}

type Words = LazyLock<Vec<&'static str>>;

static TOPICS: Words = LazyLock::new(|| {
    "archive articles blog catalogue community docs events forum gallery help library news products \
     research reviews stories"
        .split(' ')
        .collect()
});

static WORDS: Words = LazyLock::new(|| {
    "amber birch canal delta ember fjord grove harbour island juniper kestrel lantern meadow nightjar \
     orchard pebble quarry river saffron thicket upland valley willow yarrow zephyr bramble cobalt \
     dune falcon glacier heron moss"
        .split(' ')
        .collect()
});

/// Appends the URL of a page. It contains the number of the page, so no two pages share a URL.
fn write_page(page: u64, text: &mut Vec<u8>) {
    let random = mix(!page);
    let pick = |words: &Words, byte: u32| words[(random >> (8 * byte)) as usize % words.len()];
    let [one, two, three, four] = [0, 1, 3, 4].map(|byte| pick(&WORDS, byte));
    let topic = pick(&TOPICS, 2);
    // Memory takes any text.
    let _ = write!(text, "https://{one}-{two}.example/{topic}/{three}-{four}/{page}");
    if random >> 40 & 1 == 0 {
        let _ = write!(text, "?page={}&sort=date", random >> 48 & 0xFF);
    }
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn crawl(lines: u64) -> String {
        let (mut text, mut pages) = (Vec::new(), 0);
        (1..=lines).for_each(|line| add_line(line, &mut pages, &mut text));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn half_of_the_lines_are_repeated() {
        let text = crawl(100_000);
        let lines: Vec<&str> = text.lines().collect();
        let different: HashSet<&str> = lines.iter().copied().collect();
        assert_eq!(lines.len(), 100_000);
        assert!((49_000..51_000).contains(&different.len()), "{}", different.len());
        assert!((62..72).contains(&(text.len() / lines.len())), "{}", text.len() / lines.len());
    }

    #[test]
    fn a_crawl_is_always_the_same() {
        let urls = [
            "https://amber-heron.example/docs/zephyr-grove/0",
            "https://upland-bramble.example/help/saffron-island/1?page=188&sort=date",
            "https://upland-bramble.example/help/saffron-island/1?page=188&sort=date",
        ];
        assert!(crawl(3).lines().eq(urls));
    }
}

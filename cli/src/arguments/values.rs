//! Values of options, parsed from text: numbers, sizes, rates and times. An error completes the sentence of clap,
//! "invalid value for this option".

use serde::{Deserialize, Serialize};
use std::mem;
use std::str::FromStr;

/// A whole number: 1000000, 1_000_000, 1M, 1e6. Unlike those of [`memory`], its units are powers of a thousand.
pub fn number(text: &str) -> Result<u64, String> {
    const K: u64 = 1_000;
    let text = text.replace('_', "").to_ascii_uppercase();
    let scaled = match text.split_once('E') {
        Some((digits, zeros)) => {
            let unit = zeros.parse().ok().and_then(|zeros| 10_u64.checked_pow(zeros));
            unit.and_then(|unit| times(digits, unit))
        }
        None => {
            in_units(&text, &[("K", K), ("M", K * K), ("G", K * K * K), ("T", K.pow(4)), ("", 1)])
        }
    };
    scaled.ok_or("it must be a whole number, such as 1000000, 1_000_000, 1M or 1e6".into())
}

/// Returns a number of the first of the units that the text ends with.
fn in_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let found = |(unit, scale): &(&str, u64)| Some((text.strip_suffix(unit)?, *scale));
    units.iter().find_map(found).and_then(|(digits, scale)| times(digits, scale))
}

fn times(digits: &str, unit: u64) -> Option<u64> {
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The same, and more than zero.
pub fn positive(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err(String::from("it must be more than 0")),
        number => Ok(number),
    }
}

/// Any value of the standard library that is in order.
fn parsed<T: FromStr>(
    text: &str,
    is_valid: impl FnOnce(&T) -> bool,
    what: &str,
) -> Result<T, String> {
    text.parse().ok().filter(is_valid).ok_or_else(|| format!("it must be {what}"))
}

/// The number of a field, from 1.
pub fn field(text: &str) -> Result<usize, String> {
    parsed(text, |field| *field > 0, "a number from 1; 1 is the first field")
}

pub fn threads(text: &str) -> Result<usize, String> {
    parsed(text, |threads| (1..=256).contains(threads), "a number from 1 to 256")
}

pub fn seed(text: &str) -> Result<u64, String> {
    parsed(text, |_| true, "a number from 0 to 18446744073709551615")
}

pub fn rate(text: &str) -> Result<f64, String> {
    let what = "more than 2e-8 and less than 1, such as 1e-6 or 0.0001";
    parsed(text, |rate| (2e-8..1.0).contains(rate), what)
}

pub fn seconds(text: &str) -> Result<f64, String> {
    let is_valid = |seconds: &f64| (0.0..=1e9).contains(seconds);
    parsed(text, is_valid, "a number of seconds, from 0 to 1e9")
}

/// The way to a field of a JSON object: its name, after the names of the objects that it is in.
///
/// It lives as long as the process, so that it is copied like the other rules for lines.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct JsonPath(&'static [String]);

impl JsonPath {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        let (mut name, mut letters) = (String::new(), text.chars());
        while let Some(letter) = letters.next() {
            match letter {
                '.' => names.push(mem::take(&mut name)),
                '\\' => match letters.next() {
                    Some(letter @ ('.' | '\\')) => name.push(letter),
                    _ => return Err("\\. is a dot in a name, and \\\\ a backslash".into()),
                },
                letter => name.push(letter),
            }
        }
        names.push(name);
        if names.iter().any(String::is_empty) {
            return Err(
                "it must be a name, or names with dots between them, such as meta.url".into()
            );
        }
        Ok(names.into())
    }

    /// Its names, the outermost first.
    pub fn names(self) -> &'static [String] {
        self.0
    }
}

/// The name of a field of the record itself.
pub fn name(text: &str) -> Result<JsonPath, String> {
    let path = JsonPath::parse(text)?;
    let is_one = path.names().len() == 1;
    is_one.then_some(path).ok_or("the field of a record is one name; \\. is a dot in it".into())
}

impl From<Vec<String>> for JsonPath {
    fn from(names: Vec<String>) -> Self {
        JsonPath(names.leak())
    }
}

impl From<JsonPath> for Vec<String> {
    fn from(path: JsonPath) -> Self {
        path.0.to_vec()
    }
}

/// One byte, perhaps as an escape, because a shell does not pass on every byte easily.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        b"\\n" => Ok(b'\n'),
        b"\\0" => Ok(0),
        b"\\\\" => Ok(b'\\'),
        [byte] => Ok(*byte),
        _ => Err(String::from("it must be one byte, such as , or ; or \\t for a tab")),
    }
}

/// Smallest memory limit, in bytes. It is about twice the size with which a filter of the default capacity begins, at
/// any rate.
pub const LEAST_MEMORY: u64 = 256 << 10;

/// Bytes for the lines seen: 1000000, 512K, 64M, 64MiB, 2G.
pub fn memory(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let of_bytes = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B'));
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40), ("", 1)];
    // Only after a unit there may be what it is of.
    let units = if of_bytes.is_none() { &units[..] } else { &units[..4] };
    match in_units(of_bytes.unwrap_or(&upper), units) {
        None => Err("it must be a number of bytes, or of K, M or G: 1000000, 512K, 64M, 2G".into()),
        Some(bytes @ LEAST_MEMORY..) => Ok(bytes),
        Some(_) => Err("it must be at least 256K".into()),
    }
}

/// A period in seconds: 30d, 12h, 90m, 45s.
pub fn period(text: &str) -> Result<u64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];
    match in_units(&text.to_ascii_lowercase(), &units) {
        None => Err(
            "it must be a number of seconds, minutes, hours, days or weeks: 45s, 90m, 12h, 30d, 4w"
                .into(),
        ),
        Some(0) => Err("it must be more than 0".into()),
        Some(period @ ..=LONGEST_PERIOD) => Ok(period),
        Some(_) => Err("it must be at most 36500d".into()),
    }
}

/// A hundred years.
const LONGEST_PERIOD: u64 = 36_500 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    /// Checks what texts are, and that others are refused.
    #[track_caller]
    fn check<T: Debug + PartialEq>(
        parse: fn(&str) -> Result<T, String>,
        good: &[(&str, T)],
        bad: &[&str],
    ) {
        for (text, value) in good {
            assert_eq!(parse(text).as_ref(), Ok(value), "{text}");
        }
        bad.iter().for_each(|text| assert!(parse(text).is_err(), "{text}"));
    }

    #[test]
    #[rustfmt::skip]
    fn values_have_units_and_limits() {
        check(
            memory,
            &[("1000000", 1_000_000), ("256K", LEAST_MEMORY), ("1024k", 1 << 20), ("64M", 64 << 20), ("64MiB", 64 << 20),
              ("64mb", 64 << 20), ("2G", 2 << 30)],
            &["", "0", "K", "-1", "1.5G", "1X", "12B34", "99999999999T", "iB", "200", "100000", "255K", "x", "64MBBB",
              "64MI", "64MIIB", "64MiBiB", "1000000B", "MB"],
        );
        check(
            period,
            &[("45s", 45), ("90m", 5_400), ("12h", 43_200), ("30d", 2_592_000), ("1W", 604_800),
              ("36500d", LONGEST_PERIOD)],
            &["", "d", "30", "0h", "-1d", "1.5h", "1y", "36501d", "30 d", "1\u{e4}", "99999999999999w"],
        );
        check(
            number,
            &[("0", 0), ("1_000", 1_000), ("1e6", 1_000_000), ("25E3", 25_000), ("5k", 5_000), ("1M", 1_000_000),
              ("2G", 2_000_000_000)],
            &["", "e6", "1e", "1.5e3", "-1", "1e-6", "1e20", "M", "1MB", "1.5M", "99999999T", "99999999999999999999"],
        );
        check(
            delimiter,
            &[(",", b','), (" ", b' '), ("\\t", b'\t'), ("\\", b'\\'), ("\\\\", b'\\'), ("\\0", 0)],
            &["", "ab", "\\x", "\\tt", "\u{e4}"],
        );
        check(
            |text| JsonPath::parse(text).map(|path| path.names().join(" ")),
            &[("url", "url".into()), ("a.b", "a b".into()), ("a\\.b\\\\.c d", "a.b\\ c d".into())],
            &["", ".", ".a", "a.", "a..b", "a\\", "a\\b"],
        );
        check(rate, &[("1e-6", 1e-6)], &["0", "1", "-0.1", "NaN", "inf", "1e-300", "a"]);
    }
}

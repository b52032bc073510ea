//! Values of options, parsed from text: numbers, sizes, rates and times. An error completes the sentence of clap, "invalid
//! value for this option".

/// A whole number: 1000000, 1_000_000, 1M, 1e6. Unlike those of a [`size`], its units are powers of a thousand.
pub fn number(text: &str) -> Result<u64, String> {
    let bad = || String::from("it must be a whole number, such as 1000000, 1_000_000, 1M or 1e6");
    let text = text.replace('_', "").to_ascii_uppercase();
    let zeros = ["K", "M", "G", "T"].iter().position(|unit| text.ends_with(unit));
    if let Some(unit) = zeros {
        let digits: u64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
        return digits.checked_mul(1_000_u64.pow(unit as u32 + 1)).ok_or_else(bad);
    }
    match text.split_once('E') {
        None => text.parse().map_err(|_| bad()),
        Some((digits, zeros)) => {
            let zeros = zeros.parse().ok().and_then(|zeros| 10_u64.checked_pow(zeros));
            let digits: Option<u64> = digits.parse().ok();
            digits.zip(zeros).and_then(|(digits, zeros)| digits.checked_mul(zeros)).ok_or_else(bad)
        }
    }
}

/// The same, and more than zero.
pub fn positive(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err(String::from("it must be more than 0")),
        number => Ok(number),
    }
}

/// The number of a field, from 1.
pub fn field(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(field @ 1..) => Ok(field),
        _ => Err(String::from("it must be a number from 1; 1 is the first field")),
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

/// Smallest memory limit, in bytes. It is about twice the size with which a filter of the default capacity begins, at any
/// rate.
pub const LEAST_MEMORY: u64 = 256 << 10;

/// Bytes for the lines seen.
pub fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes @ LEAST_MEMORY.. => Ok(bytes),
        _ => Err(String::from("it must be at least 256K")),
    }
}

pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err(String::from("it must be a number from 1 to 256")),
    }
}

/// Bytes: 65536, 64K, 64M, 64G.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || String::from("it must be a number of bytes, or of K, M or G: 65536, 64K, 1M, 2G");
    let upper = text.to_ascii_uppercase();
    let digits = upper.trim_end_matches('B').trim_end_matches('I');
    let (digits, unit) = match digits.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, &digits[number.len()..]),
        None if digits.len() == upper.len() => (digits, ""),
        None => return Err(bad()),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => 0,
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(bad)?;
    if bytes == 0 {
        Err(String::from("it must be a number of bytes, and more than 0"))
    } else {
        Ok(bytes)
    }
}

pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| String::from("it must be a number from 0 to 18446744073709551615"))
}

pub fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (2e-8..1.0).contains(&rate) => Ok(rate),
        _ => Err(String::from("it must be more than 2e-8 and less than 1, such as 1e-6 or 0.0001")),
    }
}

pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err(String::from("it must be a number of seconds, from 0 to 1e9")),
    }
}

/// A period in seconds: 30d, 12h, 90m, 45s.
pub fn period(text: &str) -> Result<u64, String> {
    let bad = || {
        String::from(
            "it must be a number of seconds, minutes, hours, days or weeks: 45s, 90m, 12h, 30d, 4w",
        )
    };
    let unit = text.chars().next_back().ok_or_else(bad)?;
    let seconds = match unit.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(bad()),
    };
    let units: u64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    match units.checked_mul(seconds) {
        Some(0) => Err(String::from("it must be more than 0")),
        Some(period @ ..=LONGEST_PERIOD) => Ok(period),
        _ => Err(String::from("it must be at most 36500d")),
    }
}

/// A hundred years.
const LONGEST_PERIOD: u64 = 36_500 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("65536", 65_536),
            ("1K", 1_024),
            ("1k", 1_024),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("2G", 2 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "K", "-1", "1.5G", "1X", "12B34", "99999999999T", "iB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn memory_is_enough_to_begin_with() {
        assert_eq!(memory("256K"), Ok(LEAST_MEMORY));
        for text in ["200", "100000", "255K", "x"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn periods_have_units() {
        for (text, seconds) in
            [("45s", 45), ("90m", 5_400), ("12h", 43_200), ("30d", 2_592_000), ("1W", 604_800)]
        {
            assert_eq!(period(text), Ok(seconds), "{text}");
        }
        assert_eq!(period("36500d"), Ok(LONGEST_PERIOD));
        for text in [
            "",
            "d",
            "30",
            "0h",
            "-1d",
            "1.5h",
            "1y",
            "36501d",
            "30 d",
            "1\u{e4}",
            "99999999999999w",
        ] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_whole() {
        for (text, value) in [
            ("0", 0),
            ("1_000", 1_000),
            ("1e6", 1_000_000),
            ("25E3", 25_000),
            ("5k", 5_000),
            ("1M", 1_000_000),
            ("2G", 2_000_000_000),
        ] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        let bad = ["", "e6", "1e", "1.5e3", "-1", "1e-6", "1e20", "M", "1MB", "1.5M", "99999999T"];
        for text in bad.into_iter().chain(["99999999999999999999"]) {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_delimiter_is_one_byte() {
        for (text, byte) in
            [(",", b','), (" ", b' '), ("\\t", b'\t'), ("\\", b'\\'), ("\\\\", b'\\'), ("\\0", 0)]
        {
            assert_eq!(delimiter(text), Ok(byte), "{text}");
        }
        for text in ["", "ab", "\\x", "\\tt", "\u{e4}"] {
            assert!(delimiter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_chances() {
        assert_eq!(rate("1e-6"), Ok(1e-6));
        for text in ["0", "1", "-0.1", "NaN", "inf", "1e-300", "a"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}

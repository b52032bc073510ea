//! Finds one field of a line of JSON, without building a tree.
//!
//! The scan reads a line from its beginning to the end of the field, and no further. It steps over the values before
//! the field: over a string by looking for its quote, over an object or array by counting brackets. What is stepped
//! over, and what follows the field, is not checked, so a line may have a field although it is not JSON. A line of JSON
//! that has the field always has it here, also after a byte-order mark.

use memchr::{memchr, memchr2};
use std::ops::Range;

/// Returns the value of a field, a part of either the line or `scratch`, if the line has one.
///
/// `path` leads to the field: all names but the last are those of objects. Of fields with one name, the first counts.
/// The value of a string is its text, decoded; that of anything else is as it stands in the line. A `null` is no value.
#[inline]
pub fn find<'a>(line: &'a [u8], path: &[String], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let mut scan = Scan::of(line);
    for name in path {
        scan.enter(name.as_bytes(), scratch)?;
    }
    let first = scan.peek()?;
    let value = match first {
        b'"' => scan.string()?,
        b'n' => return None,
        _ => scan.value()?,
    };
    // Without this, the beginning of a number would be taken for all of it.
    if !matches!(scan.peek()?, b',' | b'}') {
        return None;
    }
    if first == b'"' { decode(value, scratch) } else { Some(value) }
}

/// Returns where the text of a field is in a line, as it is written there, if the line has the field and it is a
/// string.
pub fn text_in(line: &[u8], path: &[String], scratch: &mut Vec<u8>) -> Option<Range<usize>> {
    let mut scan = Scan::of(line);
    for name in path {
        scan.enter(name.as_bytes(), scratch)?;
    }
    if scan.peek()? != b'"' {
        return None;
    }
    let start = line.len() - scan.0.len() + 1;
    let length = scan.string()?.len();
    matches!(scan.peek()?, b',' | b'}').then(|| start..start + length)
}

/// Returns the length of the first line of a text with escapes, and where the next one begins.
pub fn first_line(text: &[u8]) -> (usize, usize) {
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &text[at..]) {
        at += found;
        match escaped(&text[at..]) {
            Some((0x0A, rest)) => return (at, text.len() - rest.len()),
            Some((_, rest)) => at = text.len() - rest.len(),
            None => break,
        }
    }
    (text.len(), text.len())
}

/// Appends a record to `into`, with a field that is true or false after all others. Fails if the record is no object,
/// or has a field of that name.
pub fn annotate(
    record: &[u8],
    name: &str,
    value: bool,
    into: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let end = record.trim_ascii_end().len();
    let Some(has_name) = Scan::of(record).has(name.as_bytes()) else {
        return Err("this is no JSON object, so it cannot be annotated");
    };
    if has_name {
        return Err("this has the field of --annotate already; use another name");
    }
    into.extend_from_slice(&record[..end - 1]);
    if !into.trim_ascii_end().ends_with(b"{") {
        into.push(b',');
    }
    let name = serde_json::to_string(name).unwrap_or_default();
    into.extend_from_slice(format!("{name}:{value}").as_bytes());
    into.extend_from_slice(&record[end - 1..]);
    Ok(())
}

/// The part of a line that has not been scanned yet. A scan ends with `None` if the line does not have the field, or is
/// not JSON.
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    fn of(line: &'a [u8]) -> Scan<'a> {
        Scan(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line))
    }

    /// Moves into an object, to the value of a field.
    fn enter(&mut self, name: &[u8], scratch: &mut Vec<u8>) -> Option<()> {
        self.expect(b'{')?;
        while !self.is_next(name, scratch)? {
            self.value()?;
            self.expect(b',')?;
        }
        Some(())
    }

    /// Moves to the value of the next field, and returns whether this is its name.
    fn is_next(&mut self, name: &[u8], scratch: &mut Vec<u8>) -> Option<bool> {
        if self.peek()? != b'"' {
            return None;
        }
        let is_it = decode(self.string()?, scratch)? == name;
        self.expect(b':')?;
        Some(is_it)
    }

    /// Returns whether the line, which has to be an object and nothing else, has a field of this name.
    fn has(mut self, name: &[u8]) -> Option<bool> {
        let (mut has_it, mut scratch) = (false, Vec::new());
        self.expect(b'{')?;
        if self.peek()? != b'}' {
            loop {
                has_it |= self.is_next(name, &mut scratch)?;
                self.value()?;
                match self.peek()? {
                    b'}' => break,
                    _ => self.expect(b',')?,
                }
            }
        }
        self.expect(b'}')?;
        self.peek().is_none().then_some(has_it)
    }

    /// Moves behind a string, and returns what is between its quotes.
    #[inline]
    fn string(&mut self) -> Option<&'a [u8]> {
        let text = &self.0[1..];
        let mut end = 0;
        loop {
            end += memchr2(b'"', b'\\', text.get(end..)?)?;
            if text[end] == b'"' {
                break;
            }
            end += 2;
        }
        self.0 = &text[end + 1..];
        Some(&text[..end])
    }

    /// Moves behind a value, and returns it as it stands in the line.
    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.0;
        match first {
            b'"' => _ = self.string()?,
            b'{' | b'[' => self.step_over_nested()?,
            // A number or a word. Words that JSON does not have are taken, because Python writes `NaN`.
            _ => {
                let is_end = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+' | b'-' | b'.');
                let length = start.iter().position(is_end).filter(|length| *length > 0)?;
                self.0 = &start[length..];
            }
        }
        Some(&start[..start.len() - self.0.len()])
    }

    fn step_over_nested(&mut self) -> Option<()> {
        let mut depth = 0_u64;
        loop {
            let is_met = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
            let at = self.0.iter().position(is_met)?;
            let byte = self.0[at];
            self.0 = &self.0[at..];
            if byte == b'"' {
                self.string()?;
                continue;
            }
            self.0 = &self.0[1..];
            depth = if matches!(byte, b'{' | b'[') { depth + 1 } else { depth - 1 };
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Moves behind this byte, which has to be the next one that is not a space.
    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.0 = &self.0[1..])
    }

    /// Moves to the next byte that is not a space, and returns it.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let at = self.0.iter().position(|byte| !is_space(byte))?;
        self.0 = &self.0[at..];
        Some(self.0[0])
    }
}

/// Returns the text of a string with its escapes decoded: all of it, or else in `scratch`. A half of a surrogate pair
/// that is alone gets the three bytes that UTF-8 would have for it, so that different strings stay different.
pub fn decode<'a>(text: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (mut rest, mut next) = (text, memchr(b'\\', text));
    if next.is_none() {
        return Some(text);
    }
    scratch.clear();
    while let Some(at) = next {
        scratch.extend_from_slice(&rest[..at]);
        let mut code;
        (code, rest) = escaped(&rest[at..])?;
        if let (0xD800..0xDC00, Some((low @ 0xDC00..0xE000, after))) = (code, escaped(rest)) {
            code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            rest = after;
        }
        match char::from_u32(code) {
            Some(letter) => {
                scratch.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => scratch.extend([
                0xE0 | (code >> 12) as u8,
                0x80 | (code >> 6 & 0x3F) as u8,
                0x80 | (code & 0x3F) as u8,
            ]),
        }
        next = memchr(b'\\', rest);
    }
    scratch.extend_from_slice(rest);
    Some(scratch)
}

/// Returns the UTF-16 code of the escape that a text begins with, and what follows it.
fn escaped(text: &[u8]) -> Option<(u32, &[u8])> {
    let (letter, rest) = text.strip_prefix(b"\\")?.split_first()?;
    let byte = match letter {
        b'"' | b'\\' | b'/' => *letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let (digits, rest) = rest.split_first_chunk::<4>()?;
            let digit = |code, digit: &u8| Some(code << 4 | char::from(*digit).to_digit(16)?);
            return Some((digits.iter().try_fold(0, digit)?, rest));
        }
        _ => return None,
    };
    Some((u32::from(byte), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Returns a field of a line.
    fn field(line: &[u8], path: &[&str]) -> Option<Vec<u8>> {
        let path: Vec<String> = path.iter().map(|name| name.to_string()).collect();
        find(line, &path, &mut b"left over".to_vec()).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_field_is_found_as_the_table_says() {
        for (line, path, expected) in [
            // Strings are decoded, and so are names.
            (&br#"{"url":"a"}"#[..], &["url"][..], Some(&b"a"[..])),
            (br#" { "x" : 1 , "url" : "a" } "#, &["url"], Some(b"a")),
            (br#"{"\u0075rl":"\u0061\n\/\"\\"}"#, &["url"], Some(b"a\n/\"\\")),
            (br#"{"url":"\ud83d\ude00 \u00e4"}"#, &["url"], Some("\u{1f600} \u{e4}".as_bytes())),
            (br#"{"url":"\ud83d"}"#, &["url"], Some(b"\xED\xA0\xBD")),
            (br#"{"url":"\ud83d\ud83d\ude00x"}"#, &["url"], Some(b"\xED\xA0\xBD\xF0\x9F\x98\x80x")),
            (br#"{"url":"\ud83dx\ude00"}"#, &["url"], Some(b"\xED\xA0\xBDx\xED\xB8\x80")),
            (b"{\"url\":\"\xFF\"}", &["url"], Some(b"\xFF")),
            (br#"{"url":""}"#, &["url"], Some(b"")),
            // Anything else is compared as it stands.
            (br#"{"id":12}"#, &["id"], Some(b"12")),
            (br#"{"id":-1.50e+3 }"#, &["id"], Some(b"-1.50e+3")),
            (br#"{"id":true,"x":1}"#, &["id"], Some(b"true")),
            (br#"{"id":NaN}"#, &["id"], Some(b"NaN")),
            (br#"{"id":[1, "]\"", {}]}"#, &["id"], Some(br#"[1, "]\"", {}]"#)),
            (br#"{"id":{"a": {"b":"\u0061"}}}"#, &["id"], Some(br#"{"a": {"b":"\u0061"}}"#)),
            // Values before it are stepped over.
            (br#"{"a":"\"url\":1,\\","b":[{"url":2}],"c":null,"url":3}"#, &["url"], Some(b"3")),
            // Paths, and names that occur twice.
            (br#"{"b":1,"a":{"x":{"b":2},"b":"3"}}"#, &["a", "b"], Some(b"3")),
            (br#"{"a.b":1}"#, &["a.b"], Some(b"1")),
            (br#"{"a":1,"a":2}"#, &["a"], Some(b"1")),
            (br#"{"a":{"c":1},"a":{"b":2}}"#, &["a", "b"], None),
            (br#"{"a":[{"b":1}]}"#, &["a", "b"], None),
            (br#"{"a":"b"}"#, &["a", "b"], None),
            (b"\xEF\xBB\xBF{\"url\":1}", &["url"], Some(b"1")),
            // No such field.
            (br#"{"url":null}"#, &["url"], None),
            (br#"{"ur":1,"urls":2,"URL":3}"#, &["url"], None),
            (br#"{"a":{"url":1}}"#, &["url"], None),
            (b"{}", &["url"], None),
            (b"", &["url"], None),
            (br#"["url",1]"#, &["url"], None),
            (br#""url":1"#, &["url"], None),
            // No JSON.
            (br#"{"url":12"#, &["url"], None),
            (br#"{"url":"a"#, &["url"], None),
            (br#"{"url":"a""#, &["url"], None),
            (br#"{"url":"a\"#, &["url"], None),
            (br#"{"url":"\x41"}"#, &["url"], None),
            (br#"{"url":"\u00g1"}"#, &["url"], None),
            (br#"{"url":}"#, &["url"], None),
            (br#"{"url":1]"#, &["url"], None),
            (br#"{"url" 1}"#, &["url"], None),
            (br#"{url:1}"#, &["url"], None),
            (br#"{"a":,"url":1}"#, &["url"], None),
            (br#"{"a":1 "url":1}"#, &["url"], None),
            (br#"{"a":[[],"url":1}"#, &["url"], None),
            // What follows is not read.
            (br#"{"url":1,"#, &["url"], Some(b"1")),
        ] {
            let found = field(line, path);
            assert_eq!(found.as_deref(), expected, "{}", line.escape_ascii());
        }
    }

    /// A value, nested a little, with names that are often those of the path.
    fn values() -> impl Strategy<Value = Value> {
        let name = prop_oneof![3 => "[abc]", 1 => "\\PC{0,3}", 1 => "[ab\"\\\\\n\u{0}]{1,3}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // A parser may round numbers of more digits otherwise.
            any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
            Just(Value::from(-1e300)),
            "\\PC*".prop_map(Value::from),
            "[\"\\\\{}\\[\\],:a\n\u{1}\u{1f600}]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let fields = prop::collection::vec((name.clone(), inner.clone()), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Value::from),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Returns a field of a parsed line.
    fn of(mut value: &Value, path: &[&str]) -> Option<Vec<u8>> {
        for name in path {
            value = value.as_object()?.get(*name)?;
        }
        match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone().into_bytes()),
            other => Some(other.to_string().into_bytes()),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_scan_finds_what_a_parser_finds(value in values(), cut in any::<prop::sample::Index>(), byte: u8) {
            let (line, pretty) = (value.to_string(), serde_json::to_string_pretty(&value).unwrap());
            for path in [&["a"][..], &["b"], &["a", "b"], &["c", "a", "b"]] {
                let expected = of(&value, path);
                prop_assert_eq!(&field(line.as_bytes(), path), &expected, "{}", line);
                // Spaces change no text, and nothing else if it is on one line.
                let spaced = field(pretty.as_bytes(), path);
                let again = |text: Option<Vec<u8>>| text.map(|text| {
                    serde_json::from_slice::<Value>(&text).map_or(text, |value| value.to_string().into_bytes())
                });
                prop_assert_eq!(again(spaced), again(expected.clone()), "{}", pretty);
                // A line that is cut off has the field or not, and no other one.
                let end = cut.index(line.len());
                let found = field(&line.as_bytes()[..end], path);
                prop_assert!(found.is_none() || found == expected, "{}", line);
                // A changed line that is still JSON is like any other. The text of a parsed line is shorter if a name
                // occurs twice.
                let mut changed = line.clone().into_bytes();
                changed[end] = byte;
                let found = field(&changed, path);
                if let Ok(value) = serde_json::from_slice::<Value>(&changed)
                    && value.to_string().len() == changed.len()
                {
                    prop_assert_eq!(again(found), again(of(&value, path)), "{}", changed.escape_ascii());
                }
            }
        }
    }
}

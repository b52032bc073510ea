//! Finds one field of a line of JSON, without building a tree.
//!
//! The scan reads a line from its beginning to the end of the field, and no further. It steps over the values before
//! the field: over a string by looking for its quote, over an object or array by counting brackets. What is stepped
//! over, and what follows the field, is not checked, so a line may have a field although it is not JSON. A line of JSON
//! that has the field always has it here.
//!
//! The bytes of a line may come in pieces, because a [long line](crate::lines::long) waits in a file.

use memchr::memchr2;
use std::io::{self, BufRead};

/// Passes the value of a field to `put`, piece by piece, and returns whether the line has one. If not, the pieces count
/// for nothing.
///
/// `path` leads to the field: all names but the last are those of objects. Of fields with one name, the first counts.
/// The value of a string is its text, decoded; that of anything else is as it stands in the line. A `null` is no value.
#[inline]
pub fn find(line: impl BufRead, path: &[String], put: impl FnMut(&[u8])) -> io::Result<bool> {
    match Scan(line).find(path, put) {
        Ok(()) => Ok(true),
        Err(Stop::Missing) => Ok(false),
        Err(Stop::Unreadable(error)) => Err(error),
    }
}

/// Why a scan ends before the end of a field.
enum Stop {
    /// The line does not have the field, or is not JSON.
    Missing,
    Unreadable(io::Error),
}

/// The part of a line that has not been scanned yet.
struct Scan<R>(R);

impl<R: BufRead> Scan<R> {
    fn find(&mut self, path: &[String], put: impl FnMut(&[u8])) -> Result<(), Stop> {
        for name in path {
            self.enter(name.as_bytes())?;
        }
        match self.peek()? {
            b'"' => self.decode(put)?,
            b'n' => return Err(Stop::Missing),
            _ => self.copy(put)?,
        }
        // Without this, the beginning of a number would be taken for all of it.
        if matches!(self.peek()?, b',' | b'}') { Ok(()) } else { Err(Stop::Missing) }
    }

    /// Moves into an object, to the value of a field.
    fn enter(&mut self, name: &[u8]) -> Result<(), Stop> {
        self.expect(b'{')?;
        loop {
            if self.peek()? != b'"' {
                return Err(Stop::Missing);
            }
            let mut rest = Some(name);
            self.decode(|piece| rest = rest.and_then(|rest| rest.strip_prefix(piece)))?;
            self.expect(b':')?;
            if rest == Some(b"") {
                return Ok(());
            }
            self.copy(|_| {})?;
            self.expect(b',')?;
        }
    }

    /// Passes a string to `put`, decoded. A half of a surrogate pair that is alone gets the three bytes that UTF-8
    /// would have for it, so that different strings stay different.
    fn decode(&mut self, mut put: impl FnMut(&[u8])) -> Result<(), Stop> {
        self.0.consume(1);
        let mut high = None;
        loop {
            let (bytes, end) = self.up_to_escape_or_quote()?;
            if let Some(high) = high.take_if(|_| !bytes.is_empty() || end == Some(b'"')) {
                put_code(high, &mut put);
            }
            put(bytes);
            let length = bytes.len() + usize::from(end.is_some());
            self.0.consume(length);
            match end {
                None => continue,
                Some(b'"') => return Ok(()),
                Some(_) => {}
            }
            let code = self.escaped()?;
            match (high.take(), code) {
                (Some(high), 0xDC00..0xE000) => {
                    put_code(0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00), &mut put);
                }
                (before, _) => {
                    if let Some(before) = before {
                        put_code(before, &mut put);
                    }
                    match code {
                        0xD800..0xDC00 => high = Some(code),
                        _ => put_code(code, &mut put),
                    }
                }
            }
        }
    }

    /// Returns the next bytes of a string, at least one or an end, and the escape or quote that ends them.
    #[inline]
    fn up_to_escape_or_quote(&mut self) -> Result<(&[u8], Option<u8>), Stop> {
        let bytes = self.more()?;
        Ok(match memchr2(b'"', b'\\', bytes) {
            Some(end) => (&bytes[..end], Some(bytes[end])),
            None => (bytes, None),
        })
    }

    /// Returns the UTF-16 code of an escape, after its backslash.
    #[inline(never)]
    fn escaped(&mut self) -> Result<u32, Stop> {
        Ok(u32::from(match self.next()? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = char::from(self.next()?).to_digit(16).ok_or(Stop::Missing)?;
                    code = code << 4 | digit;
                }
                return Ok(code);
            }
            _ => return Err(Stop::Missing),
        }))
    }

    /// Passes a value to `put` as it stands in the line.
    fn copy(&mut self, mut put: impl FnMut(&[u8])) -> Result<(), Stop> {
        match self.peek()? {
            b'"' => self.copy_string(&mut put),
            b'{' | b'[' => self.copy_nested(&mut put),
            _ => self.copy_scalar(&mut put),
        }
    }

    fn copy_string(&mut self, put: &mut impl FnMut(&[u8])) -> Result<(), Stop> {
        put(b"\"");
        self.0.consume(1);
        loop {
            let (bytes, end) = self.up_to_escape_or_quote()?;
            put(bytes);
            let length = bytes.len() + usize::from(end.is_some());
            self.0.consume(length);
            match end {
                None => {}
                Some(b'"') => {
                    put(b"\"");
                    return Ok(());
                }
                Some(_) => put(&[b'\\', self.next()?]),
            }
        }
    }

    fn copy_nested(&mut self, put: &mut impl FnMut(&[u8])) -> Result<(), Stop> {
        let mut depth = 0_u64;
        loop {
            let bytes = self.more()?;
            let is_end = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
            let end = bytes.iter().position(is_end);
            let byte = end.map(|end| bytes[end]);
            // A bracket is a part of what is copied here.
            let length = match (end, byte) {
                (Some(end), Some(b'"')) => end,
                (Some(end), _) => end + 1,
                (None, _) => bytes.len(),
            };
            put(&bytes[..length]);
            self.0.consume(length);
            match byte {
                None => {}
                Some(b'"') => self.copy_string(put)?,
                Some(b'{' | b'[') => depth += 1,
                Some(_) => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Passes a number or a word to `put`. Words that JSON does not have are taken, because Python writes `NaN`.
    fn copy_scalar(&mut self, put: &mut impl FnMut(&[u8])) -> Result<(), Stop> {
        let mut is_empty = true;
        loop {
            let bytes = self.more()?;
            let is_end = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+' | b'-' | b'.');
            let end = bytes.iter().position(is_end);
            let length = end.unwrap_or(bytes.len());
            put(&bytes[..length]);
            self.0.consume(length);
            is_empty &= length == 0;
            match end {
                Some(_) if is_empty => return Err(Stop::Missing),
                Some(_) => return Ok(()),
                None => {}
            }
        }
    }

    /// Moves behind this byte, which has to be the next one that is not a space.
    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(Stop::Missing);
        }
        self.0.consume(1);
        Ok(())
    }

    /// Moves to the next byte that is not a space, and returns it.
    #[inline]
    fn peek(&mut self) -> Result<u8, Stop> {
        loop {
            match self.more()?[0] {
                b' ' | b'\t' | b'\r' | b'\n' => self.0.consume(1),
                byte => return Ok(byte),
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Result<u8, Stop> {
        let byte = self.more()?[0];
        self.0.consume(1);
        Ok(byte)
    }

    /// Returns the next bytes of the line, at least one.
    #[inline]
    fn more(&mut self) -> Result<&[u8], Stop> {
        match self.0.fill_buf() {
            Ok([]) => Err(Stop::Missing),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(Stop::Unreadable(error)),
        }
    }
}

/// Passes a character to `put`, or a half of a surrogate pair as if it were one.
#[inline(never)]
fn put_code(code: u32, put: &mut impl FnMut(&[u8])) {
    match char::from_u32(code) {
        Some(letter) => put(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        None => put(&[
            0xE0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::io::BufReader;

    /// Returns a field of a line, which must be the same in whatever pieces the line comes.
    fn field(line: &[u8], path: &[&str]) -> Option<Vec<u8>> {
        let path: Vec<String> = path.iter().map(|name| name.to_string()).collect();
        let read = |line: &mut dyn BufRead| {
            let mut value = Vec::new();
            find(line, &path, |piece| value.extend_from_slice(piece)).unwrap().then_some(value)
        };
        let whole = read(&mut &*line);
        for piece in 1..4 {
            assert_eq!(
                read(&mut BufReader::with_capacity(piece, line)),
                whole,
                "{}",
                line.escape_ascii()
            );
        }
        whole
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

//! The key by which Scrapy compares a URL: what `canonicalize_url` of w3lib makes of it.
//!
//! Scrapy takes two requests for one if this function gives one string for their URLs. The rules
//! are those of w3lib 2.5.0 with its defaults, on Python 3.11. Where w3lib gives a string for the
//! bytes of a line, the key is that string, byte for byte, except as listed below.
//!
//! # Which lines are URLs
//!
//! Absolute URLs of http, https, ftp, ws and wss that have a host. All other lines have no key, and
//! are compared byte by byte: relative URLs, URLs of other schemes, and those that w3lib refuses.
//! A line need not be UTF-8: an invalid byte is escaped, as w3lib does.
//!
//! # Normalisation
//!
//! * Surrounding spaces and control characters, and all tabs, are removed. Before the query, `\`
//!   becomes `/`. The scheme and the host become lower case, and an [international
//!   host](host) becomes Punycode. The port stays, even if it is the default.
//! * In the path, every escape is decoded, except those of `%`, `/`, `;` and `?`. What may not be in
//!   a path is escaped again, and dot segments are removed. Parameters of the last segment, which
//!   begin with a `;`, keep their escapes.
//! * The query is a list of parameters, which are decoded, sorted by name and value, and escaped
//!   again: `+` equals `%20`, and `?b` equals `?b=`. Empty parameters are removed, repeated ones
//!   are kept.
//! * The fragment is removed.
//!
//! Unlike a key by the WHATWG standard, a key may have another key: `%%34%31` becomes `%41`, and
//! that becomes `A`. Each line is normalised once, as in Scrapy.
//!
//! # What differs from w3lib
//!
//! * A URL whose string w3lib itself refuses is no URL, such as one with the host `v1.[a`. Its
//!   string could equal another line that is no URL.
//! * International hosts with characters that Unicode got after the version that Python uses, or
//!   with labels that mix directions of writing. See [`host`].
//! * A port with thousands of zeros before it, which Python refuses.
//!
//! Other versions of w3lib have other rules: 2.3.1 keeps dot segments, separates parameters at a `;`
//! too, and leaves IPv6 addresses as they are. A state stores fingerprints of keys, so these rules
//! are part of its meaning, and those of a later version need a new mode.

mod escapes;
mod host;
#[cfg(test)]
mod tests;

use crate::state::keys::scrapy_key::escapes::{escaped, is_unreserved, push_quoted, unquoted};
use crate::state::keys::url_key::{has_plain_bytes, is_tracking};
use std::borrow::Cow;

/// How URLs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScrapyRules {
    /// Ignores parameters that only track visitors. Scrapy does not.
    pub ignore_tracking: bool,
}

/// The schemes of URLs, and whether the last segment of their paths may have parameters.
const SCHEMES: [(&str, bool); 5] =
    [("http", true), ("https", true), ("ftp", true), ("ws", false), ("wss", false)];

impl ScrapyRules {
    /// Returns the key of a URL, or `None` if the line is not a URL.
    ///
    /// The key is a part of either the line or `scratch`, which is reused from line to line.
    #[inline]
    pub fn key<'a>(self, line: &'a [u8], scratch: &'a mut String) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'#', line).unwrap_or(line.len());
        if self.is_own_key(&line[..end]) {
            return Some(&line[..end]);
        }
        self.parsed(line, scratch)
    }

    /// Returns `true` if a scan of its bytes shows that a line is its own key. In case of doubt,
    /// returns `false`.
    #[inline]
    fn is_own_key(self, line: &[u8]) -> bool {
        let Some(start) = [&b"https://"[..], b"http://"]
            .into_iter()
            .find_map(|scheme| line.starts_with(scheme).then_some(scheme.len()))
        else {
            return false;
        };
        let Some(host) = memchr::memchr(b'/', &line[start..]) else { return false };
        let page = &line[start + host..];
        let end_of_path = memchr::memchr(b'?', page).unwrap_or(page.len());
        let (path, query) = page.split_at(end_of_path);
        host > 0
            && has_plain_bytes(&line[start - 1..], host)
            && memchr::memchr(b';', path).is_none()
            && (query.is_empty() || self.is_own_query(&query[1..]))
    }

    /// Returns `true` if a query is sorted, and all its parameters are as in a key.
    fn is_own_query(self, query: &[u8]) -> bool {
        let mut previous = (&[][..], &[][..]);
        query.split(|&byte| byte == b'&').all(|parameter| {
            let Some(end) = memchr::memchr(b'=', parameter) else { return false };
            let pair = (&parameter[..end], &parameter[end + 1..]);
            let is_after = previous <= pair;
            previous = pair;
            is_after
                && pair.0.iter().chain(pair.1).all(|&byte| is_unreserved(byte))
                && !(self.ignore_tracking && is_tracking(parameter))
        })
    }

    /// Returns the key by way of a parser.
    fn parsed<'a>(self, line: &[u8], key: &'a mut String) -> Option<&'a [u8]> {
        let text = decoded(line);
        let text = text.trim_matches(|c| c <= ' ').replace(['\t', '\n', '\r'], "");
        let (scheme, rest) = text.split_once(':')?;
        let (scheme, has_parameters) =
            SCHEMES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme))?;
        let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.replace('\\', "/");
        let rest = rest.strip_prefix("//")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));

        key.clear();
        key.push_str(scheme);
        key.push_str("://");
        host::push_authority(authority, key)?;
        let last_segment = path.rfind('/').unwrap_or(0);
        let parameters = path[last_segment..].find(';').filter(|_| has_parameters);
        let end = parameters.map_or(path.len(), |at| last_segment + at);
        push_path(&path[..end], key);
        if end + 1 < path.len() {
            push_quoted(&path.as_bytes()[end..], IN_PARAMETERS, key);
        }
        self.push_query(query, key);
        Some(key.as_bytes())
    }

    fn push_query(self, query: &str, key: &mut String) {
        let parameters = query.as_bytes().split(|&byte| byte == b'&');
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = parameters
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| {
                let end = memchr::memchr(b'=', parameter);
                let name = &parameter[..end.unwrap_or(parameter.len())];
                let value = &parameter[end.map_or(parameter.len(), |end| end + 1)..];
                (unquoted_plus(name), unquoted_plus(value))
            })
            .filter(|(name, _)| {
                // A name with a `=` of its own would be taken for a shorter one.
                !(self.ignore_tracking && !name.contains(&b'=') && is_tracking(name))
            })
            .collect();
        pairs.sort_unstable();
        for (before, (name, value)) in pairs.iter().enumerate() {
            key.push(if before == 0 { '?' } else { '&' });
            push_form(name, key);
            key.push('=');
            push_form(value, key);
        }
    }
}

/// Decodes UTF-8, and escapes the bytes that are none.
fn decoded(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        push_quoted(chunk.invalid(), b"", &mut text);
    }
    Cow::Owned(text)
}

/// Appends a path without dot segments. Escapes of delimiters are kept, so that they stay different
/// from delimiters.
fn push_path(path: &str, key: &mut String) {
    let start = key.len();
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = escaped(rest);
        let keeps = matches!(escape, Some(b'%' | b'/' | b';' | b'?'));
        push_quoted(&[escape.unwrap_or(byte)], if keeps { b"" } else { IN_PATH }, key);
        rest = if escape.is_some() { &rest[3..] } else { after };
    }
    if path.is_empty() {
        key.push('/');
    }
    if !key[start..].contains("/.") {
        return;
    }
    let quoted = key.split_off(start);
    let mut segments: Vec<&str> = Vec::new();
    let mut is_open = false;
    for segment in quoted[1..].split('/') {
        is_open = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    for segment in segments {
        key.push('/');
        key.push_str(segment);
    }
    if is_open {
        key.push('/');
    }
}

/// What a path contains unescaped, besides unreserved characters.
const IN_PATH: &[u8] = b"!$&'()*+,;=:/?@[]|%";

/// What parameters of a path contain unescaped.
const IN_PARAMETERS: &[u8] = b"!$&'()*+,;=:/?@%";

/// Decodes a name or a value of a query.
fn unquoted_plus(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    unquoted(&spaced)
}

/// Appends a name or a value of a query.
fn push_form(bytes: &[u8], key: &mut String) {
    for (at, word) in bytes.split(|&byte| byte == b' ').enumerate() {
        if at > 0 {
            key.push('+');
        }
        push_quoted(word, b"", key);
    }
}

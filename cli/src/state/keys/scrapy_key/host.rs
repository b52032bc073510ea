//! What is between `//` and the path of a URL: user, host and port, as w3lib writes them.
//!
//! An international host is encoded by IDNA 2003, as Python's `idna` codec does it: `ß` becomes
//! `ss`. If a label cannot be encoded, w3lib leaves the whole host as it is, and so does this.
//!
//! # What differs from w3lib
//!
//! * Python has the tables of Unicode 14 and, for IDNA, 3.2. Here, the tables are newer. A
//!   character that got its lower case or its decomposition later is mapped here and not there.
//! * IDNA refuses a label that mixes letters of both directions. Here, all letters outside of the
//!   blocks of Hebrew, Arabic, Syriac and Thaana count as written from left to right.

use crate::state::keys::scrapy_key::escapes::{push_quoted, unquoted};
use icu_normalizer::ComposingNormalizerBorrowed;
use std::net::Ipv6Addr;

/// What a user name or password contains unescaped, besides unreserved characters.
const IN_USER: &[u8] = b"!$&'()*+,";

/// The length of the longest label of a host.
const LONGEST_LABEL: usize = 63;

/// Appends user, host and port. Returns `None` if there is no host, or none that w3lib accepts.
pub fn push_authority(authority: &str, key: &mut String) -> Option<()> {
    if !authority.is_ascii() && hides_delimiters(authority) {
        return None;
    }
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let has_brackets = authority.contains('[');
    if has_brackets != authority.contains(']') {
        return None;
    }
    let (host, port) = if has_brackets {
        let inside = place.strip_prefix('[')?;
        let (host, after) = inside.split_once(']').unwrap_or((inside, ""));
        let port = if after.is_empty() { after } else { after.strip_prefix(':')? };
        check_in_brackets(host)?;
        (host, port)
    } else {
        place.split_once(':').unwrap_or((place, ""))
    };
    if let Some(user) = user {
        for (part, text) in user.splitn(2, ':').enumerate() {
            if part > 0 {
                key.push(':');
            }
            push_quoted(&unquoted(text.as_bytes()), IN_USER, key);
        }
        key.push('@');
    }
    push_host(host, key)?;
    if !port.is_empty() {
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let port = port.trim_start_matches('0');
        let port: u16 = if port.is_empty() { 0 } else { port.parse().ok()? };
        key.push_str(&format!(":{port}"));
    }
    Some(())
}

/// Returns `true` if normalisation brings delimiters to light.
fn hides_delimiters(authority: &str) -> bool {
    let bare = authority.replace(['@', ':', '#', '?'], "");
    let normal = normal(&bare);
    normal != bare && normal.contains(['/', '?', '#', '@', ':', '\\'])
}

/// Accepts an IPv6 address, perhaps with a zone, or an address of a version to come.
fn check_in_brackets(host: &str) -> Option<()> {
    let Some(of_version) = host.strip_prefix('v') else { return address(host).map(drop) };
    let (version, address) = of_version.split_once('.')?;
    let is_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_version && !address.is_empty()).then_some(())
}

/// Returns an IPv6 address and its zone.
fn address(text: &str) -> Option<(Ipv6Addr, Option<&str>)> {
    let (address, zone) = match text.split_once('%') {
        Some((_, zone)) if zone.is_empty() || zone.contains('%') => return None,
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    Some((address.parse().ok()?, zone))
}

fn push_host(host: &str, key: &mut String) -> Option<()> {
    let (name, zone) = host.split_at(host.find('%').unwrap_or(host.len()));
    let host = name.to_lowercase() + zone;
    if host.contains(':') {
        let host = host.is_ascii().then(|| host.to_ascii_lowercase())?;
        key.push('[');
        match address(&host) {
            Some((address, zone)) => {
                push_address(address, key);
                key.extend(zone.into_iter().flat_map(|zone| ["%", zone]));
            }
            None => key.push_str(&host),
        }
        key.push(']');
        return Some(());
    }
    let host = match host.is_ascii() {
        true => host.to_ascii_lowercase(),
        false => encoded(&normal(&host)).unwrap_or(host).to_lowercase(),
    };
    // w3lib would read these otherwise, or not at all, if it read the key.
    if host.is_empty() || host.contains(['/', '?', '#', '@', ':', '\\', '[', ']']) {
        return None;
    }
    key.push_str(&host);
    Some(())
}

/// Appends an address. Before Python 3.13, one of IPv4 in IPv6 has no dots.
fn push_address(address: Ipv6Addr, key: &mut String) {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => key.push_str(&format!("::ffff:{high:x}:{low:x}")),
        _ => key.push_str(&address.to_string()),
    }
}

fn normal(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfkc().normalize(text).into_owned()
}

/// Returns a host as IDNA 2003 encodes it, or `None` if it cannot be.
fn encoded(host: &str) -> Option<String> {
    let without_dot = host.strip_suffix(DOTS).unwrap_or(host);
    let mut encoded = String::new();
    for label in without_dot.split(DOTS) {
        if !encoded.is_empty() {
            encoded.push('.');
        }
        let label = encoded_label(label)?;
        if !(1..=LONGEST_LABEL).contains(&label.len()) {
            return None;
        }
        encoded.push_str(&label);
    }
    if without_dot.len() < host.len() {
        encoded.push('.');
    }
    Some(encoded)
}

/// What separates labels.
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

fn encoded_label(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_owned());
    }
    let folded: String = label.chars().filter(|&c| !is_ignored(c)).flat_map(folded).collect();
    let label = normal(&folded);
    let is_right_to_left = label.contains(is_right_to_left);
    if label.contains(is_prohibited)
        || is_right_to_left
            && (label.contains(is_left_to_right)
                || !label.starts_with(self::is_right_to_left)
                || !label.ends_with(self::is_right_to_left))
    {
        return None;
    }
    if label.is_ascii() {
        return Some(label);
    }
    let is_encoded_already = label.starts_with("xn--");
    if is_encoded_already {
        None
    } else {
        Some(format!("xn--{}", idna::punycode::encode_str(&label)?))
    }
}

/// Folds the case of a character in normal form (RFC 3454, B.2).
fn folded(c: char) -> impl Iterator<Item = char> {
    // The first has no partner in upper case, and IDNA 2003 does not know the others.
    let stays = matches!(c, '\u{131}' | '\u{1c80}'..='\u{1c88}');
    let lower = c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    stays.then_some(c).into_iter().chain(lower.filter(move |_| !stays))
}

/// RFC 3454, B.1.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{1806}' | '\u{180b}'..='\u{180d}' | '\u{200b}'..='\u{200d}'
        | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// RFC 3454, C.1.2 to C.9, without what normalisation has replaced.
fn is_prohibited(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{6dd}' | '\u{70f}' | '\u{1680}' | '\u{180e}'
        | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2061}'..='\u{2063}'
        | '\u{206a}'..='\u{206f}' | '\u{2ff0}'..='\u{2ffb}' | '\u{e000}'..='\u{f8ff}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{ffff}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}' | '\u{f0000}'..)
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

/// RFC 3454, D.1, without what normalisation has replaced.
fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{5be}' | '\u{5c0}' | '\u{5c3}' | '\u{5d0}'..='\u{5ea}' | '\u{5f0}'..='\u{5f4}'
        | '\u{61b}' | '\u{61f}' | '\u{621}'..='\u{63a}' | '\u{640}'..='\u{64a}'
        | '\u{66d}'..='\u{66f}' | '\u{671}'..='\u{6d5}' | '\u{6e5}' | '\u{6e6}'
        | '\u{6fa}'..='\u{6fe}' | '\u{700}'..='\u{70d}' | '\u{710}' | '\u{712}'..='\u{72c}'
        | '\u{780}'..='\u{7a5}' | '\u{7b1}' | '\u{fe73}')
}

/// An approximation of RFC 3454, D.2.
fn is_left_to_right(c: char) -> bool {
    c.is_alphabetic() && !matches!(c, '\u{590}'..='\u{8ff}' | '\u{fe73}')
}

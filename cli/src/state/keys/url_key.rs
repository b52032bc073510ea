//! The key by which a URL is compared: the form in which a crawler would request it.
//!
//! Two URLs have the same key if the WHATWG URL standard considers them equal, or if they differ
//! only in their fragments, in the spelling of escapes, or in an empty query. A key is a URL
//! itself, and is its own key. A line that is not a URL is compared byte by byte, and never equals
//! the key of a URL.
//!
//! # Which lines are URLs
//!
//! A URL is what a crawler can request from a host: an absolute URL of http, https, ftp, ws or wss.
//! All other lines have no key:
//!
//! * relative URLs, and URLs without a host, such as `mailto:x@y` and `C:\path`;
//! * file URLs, and URLs of schemes whose hosts the standard does not normalise, such as
//!   `git://host/x`;
//! * lines that are not UTF-8: every invalid byte would decode to the same character, so different
//!   lines would have one key;
//! * hosts longer than a DNS name: IDNA may lengthen them, so that a key might not have a key.
//!
//! # Normalisation
//!
//! * The URL is parsed by the standard: scheme and host become lower case, the host becomes
//!   Punycode, an IP address gets its usual form, a default port and `.` and `..` segments are
//!   removed, `\` becomes `/`, surrounding spaces and inner tabs are removed, and invalid
//!   characters are escaped. A user name and password are kept.
//! * The fragment is removed, and so is the `?` of an empty query, even if the query became empty
//!   because all its parameters were removed.
//! * In path and query, escapes get upper-case digits, and escapes of `A-Z a-z 0-9 - . _ ~` are
//!   decoded (RFC 3986, 6.2.2). No other escape is: `%2F` differs from `/`, and `+` from `%20`. A
//!   `%` that begins no escape is kept, and what follows it never completes an escape: `%%34%31`
//!   differs from `%41`.
//! * With [`sort_query`](UrlRules::sort_query) or [`ignore_tracking`](UrlRules::ignore_tracking),
//!   the query is a list of parameters, separated by `&`. Empty parameters are removed, repeated
//!   ones are kept.
//!
//! A state stores fingerprints of keys. All of this is therefore part of the meaning of a saved
//! state, including the list of [ignored parameters](is_tracking). A change needs a new mode with a
//! name of its own. A newer version of the `url` crate may parse an odd URL differently; that URL
//! is then new once more.

use url::{Position, Url};

/// How URLs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UrlRules {
    /// Ignores the order of parameters, even among parameters of the same name.
    pub sort_query: bool,
    /// Ignores parameters that only track visitors.
    pub ignore_tracking: bool,
}

/// The length of the longest DNS name, including a dot at its end.
const LONGEST_HOST: usize = 254;

impl UrlRules {
    /// Returns the key of a URL, or `None` if the line is not a URL.
    ///
    /// The key is a part of either the line or `scratch`, which is reused from line to line.
    #[inline]
    pub fn key<'a>(self, line: &'a [u8], scratch: &'a mut String) -> Option<&'a [u8]> {
        match self.plain(line) {
            Some(key) => Some(key),
            None => self.parsed(line, scratch),
        }
    }

    /// Returns the line up to its fragment, if a scan of its bytes shows that this is the key.
    #[inline]
    fn plain(self, line: &[u8]) -> Option<&[u8]> {
        if self.is_own_key(line) {
            return Some(line);
        }
        let end = memchr::memchr(b'#', line)?;
        let (url, fragment) = line.split_at(end);
        // A line whose fragment is not UTF-8 is not a URL.
        (fragment.is_ascii() && self.is_own_key(url)).then_some(url)
    }

    /// Returns `true` if a scan of its bytes shows that a line is its own key, as most lines of a
    /// crawl are. In case of doubt, returns `false`.
    #[inline]
    fn is_own_key(self, line: &[u8]) -> bool {
        let Some(start) = [&b"https://"[..], b"http://"]
            .into_iter()
            .find_map(|scheme| line.starts_with(scheme).then_some(scheme.len()))
        else {
            return false;
        };
        let Some(host_length) = memchr::memchr(b'/', &line[start..]) else { return false };
        let (host, page) = line[start..].split_at(host_length);
        // If the last label begins with a letter, it is not a number in any base, and the host is
        // not an IP address.
        let last_label = host.iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
        host.get(last_label).is_some_and(u8::is_ascii_lowercase)
            && host.len() <= LONGEST_HOST
            && has_plain_bytes(&line[start - 1..], host.len())
            && !page.ends_with(b"?")
            && (self == UrlRules::default() || self.keeps(page))
    }

    /// Returns `true` if the parameters of a page, a path and query without escapes, are those of
    /// its key.
    #[inline]
    fn keeps(self, page: &[u8]) -> bool {
        let Some(mark) = memchr::memchr(b'?', page) else { return true };
        let mut previous: &[u8] = &[];
        let mut rest = &page[mark..];
        while let Some((_, parameters)) = rest.split_first() {
            let end = memchr::memchr(b'&', parameters).unwrap_or(parameters.len());
            let parameter;
            (parameter, rest) = parameters.split_at(end);
            if self.sort_query && parameter < previous || !self.counts(parameter) {
                return false;
            }
            previous = parameter;
        }
        true
    }

    /// Returns the key by way of the parser.
    fn parsed<'a>(self, line: &[u8], key: &'a mut String) -> Option<&'a [u8]> {
        let url = Url::parse(str::from_utf8(line).ok()?).ok()?;
        if !matches!(url.scheme(), "http" | "https" | "ftp" | "ws" | "wss")
            || url.host_str()?.len() > LONGEST_HOST
        {
            return None;
        }
        key.clear();
        key.push_str(&url[..Position::AfterPort]);
        push_normal(url.path(), key);
        let Some(query) = url.query().filter(|query| !query.is_empty()) else {
            return Some(key.as_bytes());
        };
        if self == UrlRules::default() {
            key.push('?');
            push_normal(query, key);
            return Some(key.as_bytes());
        }
        let mut normal = String::new();
        push_normal(query, &mut normal);
        let mut parameters: Vec<&str> =
            normal.split('&').filter(|parameter| self.counts(parameter.as_bytes())).collect();
        if self.sort_query {
            parameters.sort_unstable();
        }
        for (before, parameter) in parameters.into_iter().enumerate() {
            key.push(if before == 0 { '?' } else { '&' });
            key.push_str(parameter);
        }
        Some(key.as_bytes())
    }

    /// Returns `true` if a parameter, in its normal form, is compared.
    #[inline]
    fn counts(self, parameter: &[u8]) -> bool {
        !(parameter.is_empty() || self.ignore_tracking && is_tracking(parameter))
    }
}

/// Returns `true` if a parameter only tracks visitors.
///
/// These are the well-known names of campaigns, clicks and mailings, which advertisers add to the
/// URLs of any site, and which select no content. Names that a site may use for itself are left
/// out, such as `ref`, `source`, `cid` and `si`. Case is ignored, because advertisers write the
/// names both ways.
///
/// The list is part of the meaning of a saved state.
pub fn is_tracking(parameter: &[u8]) -> bool {
    let end = parameter.iter().position(|&byte| byte == b'=').unwrap_or(parameter.len());
    let mut lower = [0; 20];
    let Some(name) = lower.get_mut(..end) else {
        return parameter[..4].eq_ignore_ascii_case(b"utm_");
    };
    name.copy_from_slice(&parameter[..end]);
    name.make_ascii_lowercase();
    matches!(
        &*name,
        // Campaigns, by the convention of Google Analytics
        [b'u', b't', b'm', b'_', ..]
            // Google
            | b"gclid" | b"gclsrc" | b"dclid" | b"gbraid" | b"wbraid" | b"srsltid"
            | b"gad_source" | b"gad_campaignid" | b"_ga" | b"_gl"
            // Facebook and Instagram, Microsoft, Yandex, X, TikTok, LinkedIn, Reddit
            | b"fbclid" | b"igshid" | b"igsh" | b"msclkid" | b"yclid" | b"ysclid" | b"_openstat"
            | b"twclid" | b"ttclid" | b"li_fat_id" | b"rdt_cid"
            // Mailings: Mailchimp, MailerLite, Marketo, HubSpot, Omeda, Vero
            | b"mc_cid" | b"mc_eid" | b"ml_subscriber" | b"ml_subscriber_hash" | b"mkt_tok"
            | b"_hsenc" | b"_hsmi" | b"__hssc" | b"__hstc" | b"__hsfp" | b"hsctatracking"
            | b"oly_anon_id" | b"oly_enc_id" | b"vero_id"
    )
}

/// Appends a path or a query with its escapes in normal form.
///
/// This is idempotent: a remaining escape represents a byte that needs one, or would complete a new
/// escape with a `%` before it.
fn push_normal(text: &str, into: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        into.push_str(&rest[..at]);
        let [high, low] = [1, 2].map(|digit| {
            rest.as_bytes().get(at + digit).and_then(|&byte| char::from(byte).to_digit(16))
        });
        let (Some(high), Some(low)) = (high, low) else {
            into.push('%');
            rest = &rest[at + 1..];
            continue;
        };
        let byte = (high << 4 | low) as u8;
        // In a complete escape, the `%` is three bytes back.
        let after_stray = match into.as_bytes() {
            [.., b'%'] => true,
            [.., b'%', digit] => digit.is_ascii_hexdigit(),
            _ => false,
        };
        if byte.is_ascii_alphanumeric() && !(after_stray && byte.is_ascii_hexdigit())
            || matches!(byte, b'-' | b'.' | b'_' | b'~')
        {
            into.push(char::from(byte));
        } else {
            into.push('%');
            into.extend(rest[at + 1..at + 3].chars().map(|digit| digit.to_ascii_uppercase()));
        }
        rest = &rest[at + 3..];
    }
    into.push_str(rest);
}

/// Returns `true` if all bytes after the first are plain. The first `host_length` of them belong to
/// the host.
///
/// Most of the time for a line is spent here. Blocks of sixteen bytes are therefore tested without
/// branches, so that the compiler can vectorise the test. The last block overlaps the one before
/// it.
#[inline]
pub fn has_plain_bytes(bytes: &[u8], host_length: usize) -> bool {
    let (before, after) = (&bytes[..bytes.len() - 1], &bytes[1..]);
    let (Some(last_before), Some(last_after)) = (before.last_chunk(), after.last_chunk()) else {
        let mut pairs = before.iter().zip(after).enumerate();
        return pairs.all(|(at, (&before, &byte))| is_plain_byte(before, byte, at < host_length));
    };
    let mut host_left = host_length;
    let mut others = 0;
    for (before, after) in before.as_chunks().0.iter().zip(after.as_chunks().0) {
        others |= other_than_plain(before, after, host_left);
        host_left = host_left.saturating_sub(16);
    }
    let last_at = after.len() - 16;
    others |= other_than_plain(last_before, last_after, host_length.saturating_sub(last_at));
    others == 0
}

/// Returns zero if all bytes are plain. The first `host_left` of them belong to the host.
#[inline(always)]
fn other_than_plain(before: &[u8; 16], bytes: &[u8; 16], host_left: usize) -> u128 {
    let host_left = host_left.min(16) as u8;
    let mut others = [0; 16];
    for lane in 0..16 {
        others[lane] =
            u8::from(!is_plain_byte(before[lane], bytes[lane], (lane as u8) < host_left));
    }
    u128::from_ne_bytes(others)
}

/// Returns `true` if every version of the standard leaves a byte unchanged after the byte `before`.
///
/// In a host, these are lower-case letters, digits, single dots and single hyphens: two hyphens may
/// be Punycode. In path and query, these are most of the characters that RFC 3986 allows. A segment
/// that begins with a dot may be one that a parser resolves.
#[inline(always)]
fn is_plain_byte(before: u8, byte: u8, in_host: bool) -> bool {
    let letter = is_between(byte, b'a', b'z');
    let plain_in_host = (letter | is_between(byte, b'-', b'9'))
        & !((before == byte) & is_between(byte, b'-', b'.'));
    let plain = letter
        | is_between(byte, b'?', b'Z')
        | is_between(byte, b'(', b';')
        | (byte == b'=')
        | (byte == b'&')
        | (byte == b'_')
        | (byte == b'~');
    plain & (plain_in_host | !in_host) & !((before == b'/') & (byte == b'.'))
}

#[inline(always)]
fn is_between(byte: u8, first: u8, last: u8) -> bool {
    byte.wrapping_sub(first) <= last - first
}

#[cfg(test)]
mod tests;

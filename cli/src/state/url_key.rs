//! What of a URL is compared: the form in which a crawler would ask for it.
//!
//! Two URLs that the standard of the WHATWG takes for the same have the same key, and so have two
//! that differ in nothing but their fragments, in how their escapes are written, or in a `?` that
//! nothing follows. A key is a URL itself, and its own key. So a line that is no URL, and is compared
//! as it is, is never taken for one that is.
//!
//! # What is a URL
//!
//! What a crawler can ask a host for: a whole URL of http, https, ftp, ws or wss. All else has no key:
//!
//! * relative URLs, and those that name no host, such as `mailto:x@y` and `C:\path`;
//! * those of files, and of schemes whose hosts the standard leaves as they are, such as
//!   `git://host/x`;
//! * lines that are not UTF-8: whatever is not reads as the same character, so different lines would
//!   have one key;
//! * hosts that are longer than a name can be: what IDNA makes of them may be longer than what it
//!   reads, so a key might have no key.
//!
//! # What is done to it
//!
//! * What the standard does when it parses: scheme and host in lower case, the host in Punycode, an
//!   IP address in its usual form, without a default port, without `.` and `..` segments, `\` as
//!   `/`, without spaces around it and tabs inside, and escapes for what cannot stand there. What
//!   comes before an `@` is kept.
//! * The fragment goes. So does a `?` that nothing follows, as it does if all parameters go.
//! * In path and query, escapes have upper-case digits, and those of `A-Z a-z 0-9 - . _ ~` are
//!   undone (RFC 3986, 6.2.2). No other escape is: `%2F` is not `/`, nor `+` a `%20`. A `%` that
//!   begins no escape stays, and what follows it never becomes one: `%%34%31` is not `%41`.
//! * With [`sort_query`](UrlRules::sort_query) or [`ignore_tracking`](UrlRules::ignore_tracking)
//!   the query is a list of parameters, parted by `&`. Empty ones are none. Those that are there
//!   twice stay so.
//!
//! A state remembers keys. So all of this is part of what a saved state means, the list of
//! [parameters that are ignored](is_tracking) as well: to change it is to have a new mode, with a name
//! of its own. A newer `url` may read an odd URL in another way, which is then new once more.

use url::{Position, Url};

/// How URLs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UrlRules {
    /// The order of the parameters makes no difference, not even among those of the same name.
    pub sort_query: bool,
    /// Parameters that only tell where a visitor comes from make no difference.
    pub ignore_tracking: bool,
}

/// No name in the DNS is longer, with the dot at its end.
const LONGEST_HOST: usize = 254;

impl UrlRules {
    /// The key of a URL: equal for URLs that a crawler takes for the same page. `None` if the line
    /// is no URL (the caller then compares it as it is).
    ///
    /// It is either a part of the line itself or lies in `scratch`, which is reused from line to
    /// line.
    #[inline]
    pub fn key<'a>(self, line: &'a [u8], scratch: &'a mut String) -> Option<&'a [u8]> {
        match self.plain(line) {
            Some(key) => Some(key),
            None => self.parsed(line, scratch),
        }
    }

    /// The line up to its fragment, if a look at its bytes shows that this is the key.
    #[inline]
    fn plain(self, line: &[u8]) -> Option<&[u8]> {
        if self.is_own_key(line) {
            return Some(line);
        }
        let end = memchr::memchr(b'#', line)?;
        let (url, fragment) = line.split_at(end);
        // A fragment that is not UTF-8 makes a line that is no URL.
        (fragment.is_ascii() && self.is_own_key(url)).then_some(url)
    }

    /// Whether a look at its bytes shows that a line is its own key. Most lines of a crawl are like
    /// that. In any doubt they are not.
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
        // A last label that begins with a letter is no number, in whatever base: no IP address.
        let last_label = host.iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
        host.get(last_label).is_some_and(u8::is_ascii_lowercase)
            && host.len() <= LONGEST_HOST
            && has_plain_bytes(&line[start - 1..], host.len())
            && !page.ends_with(b"?")
            && (self == UrlRules::default() || self.keeps(page))
    }

    /// Whether the parameters of a page, path and query without escapes, are those of its key.
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

    /// The key, as the parser has it.
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

    /// Whether a parameter, in its normal form, is one of those that are compared.
    #[inline]
    fn counts(self, parameter: &[u8]) -> bool {
        !(parameter.is_empty() || self.ignore_tracking && is_tracking(parameter))
    }
}

/// Whether a parameter only tells where a visitor comes from.
///
/// The names are those of campaigns, clicks and mailings that are well known, that advertisers add
/// to URLs of all sites, and that select no content on any. Those that a site may use for itself are
/// left out, `ref`, `source`, `cid` and `si` among them. Upper or lower case makes no difference,
/// as advertisers write them both ways.
///
/// The list is part of what a saved state means.
fn is_tracking(parameter: &[u8]) -> bool {
    let end = parameter.iter().position(|&byte| byte == b'=').unwrap_or(parameter.len());
    let mut lower = [0; 20];
    let Some(name) = lower.get_mut(..end) else {
        return parameter[..4].eq_ignore_ascii_case(b"utm_");
    };
    name.copy_from_slice(&parameter[..end]);
    name.make_ascii_lowercase();
    matches!(
        &*name,
        // Campaigns, as Google Analytics has them and others after it.
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

/// Appends a path or a query with its escapes in their normal form.
///
/// Doing it again changes nothing: an escape that is left stands for a byte that needs one, or
/// would make a new one of a `%` before it.
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
        // Of a whole escape, the `%` is three bytes back.
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

/// Whether all bytes after the first are plain. The first `host_length` of them are of the host.
///
/// Most of the time a line takes is spent here. So blocks of sixteen bytes are looked at without
/// branches, as a compiler needs it to look at all sixteen at once, and the last one overlaps the
/// one before it.
#[inline]
fn has_plain_bytes(bytes: &[u8], host_length: usize) -> bool {
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

/// Not zero if one of the bytes is not plain. The first `host_left` of them are of the host.
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

/// Whether every version of the standard leaves a byte alone that comes after another.
///
/// In a host, those are small letters, digits, single dots and hyphens: two hyphens may be
/// Punycode. In path and query, most of those that RFC 3986 lets stand there. A segment that begins
/// with a dot may be one that a parser resolves.
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

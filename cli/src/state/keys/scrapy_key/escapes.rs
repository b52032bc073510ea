//! Escapes in URLs: a `%` and two digits stand for a byte.

/// Returns the byte for which the escape at the beginning of a text stands.
pub fn escaped(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// Decodes all escapes.
pub fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escape = escaped(rest);
        bytes.push(escape.unwrap_or(byte));
        rest = if escape.is_some() { &rest[3..] } else { after };
    }
    bytes
}

/// Appends bytes, and escapes those that are neither unreserved nor in `safe`.
pub fn push_quoted(bytes: &[u8], safe: &[u8], key: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if is_unreserved(byte) || safe.contains(&byte) {
            key.push(char::from(byte));
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
            key.extend(['%', char::from(high), char::from(low)]);
        }
    }
}

/// Returns `true` for what RFC 3986 never escapes.
#[inline]
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

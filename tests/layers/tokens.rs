//! Rust's text in pieces.

/// A word, `::`, a string literal with its quotes, or another character.
pub type Token = String;

/// Splits the text, without comments and spaces.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if is_comment => through(rest, 2, "*/"),
            '"' => string(rest),
            '\'' => character(rest),
            ':' if rest.starts_with("::") => 2,
            _ if is_of_word(first) => word(rest),
            _ => first.len_utf8(),
        };
        if !is_comment {
            tokens.push(rest[..length].to_string());
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the word at the beginning, or of a raw string.
fn word(text: &str) -> usize {
    let length = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    let after = text[length..].trim_start_matches('#');
    if ["r", "br", "cr"].contains(&&text[..length]) && after.starts_with('"') {
        let hashes = text.len() - length - after.len();
        return through(text, length + hashes + 1, &format!("\"{}", "#".repeat(hashes)));
    }
    length
}

/// Returns the length of the string literal at the beginning.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |(_, c): &(usize, char)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    };
    text.char_indices().skip(1).find(is_end).map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the length of the character literal at the beginning, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].char_indices();
    match (inside.next(), inside.next()) {
        (Some((_, '\\')), Some((at, escaped))) => through(text, 1 + at + escaped.len_utf8(), "'"),
        (_, Some((at, '\''))) => at + 2,
        _ => 1,
    }
}

/// Returns the length through the end, which is searched from here on.
fn through(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

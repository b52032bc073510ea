//! Rules for lines: where they end, and which part of them is compared.

/// The longest line that is held in memory. [Longer ones](crate::lines::long) wait in a file.
pub const LONGEST: usize = 1 << 20;

/// A field of a line.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its number, from 1.
    pub number: usize,
    /// The byte between two fields.
    pub delimiter: u8,
}

impl Field {
    /// Returns this field of a line, if the line has so many.
    #[inline]
    fn of(self, line: &[u8]) -> Option<&[u8]> {
        let start = match self.number {
            ..=1 => 0,
            number => memchr::memchr_iter(self.delimiter, line).nth(number - 2)? + 1,
        };
        let field = &line[start..];
        Some(&field[..memchr::memchr(self.delimiter, field).unwrap_or(field.len())])
    }
}

/// The rules for lines.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The byte that ends a line.
    pub terminator: u8,
    /// Whether a carriage return before the terminator is part of it.
    pub folds_cr: bool,
    /// The field by which lines are compared, if not as a whole.
    pub field: Option<Field>,
    /// The length of the longest line that is held in memory, without its terminator, and of the longest field that is
    /// compared otherwise than byte by byte.
    pub longest: usize,
}

impl Rules {
    /// Returns a line without its terminator.
    #[inline]
    pub fn bare(self, line: &[u8]) -> &[u8] {
        let line = &line[..line.len() - 1];
        match line.split_last() {
            Some((b'\r', bare)) if self.folds_cr => bare,
            _ => line,
        }
    }

    /// Returns the part of a line that is compared, and `false` if that is the whole line because it
    /// does not have the field.
    #[inline]
    pub fn compared(self, line: &[u8]) -> (&[u8], bool) {
        let bare = self.bare(line);
        let Some(field) = self.field else { return (bare, true) };
        match field.of(bare) {
            Some(part) => (part, true),
            None => (bare, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_belong_to_the_end_of_a_line() {
        let rules = |terminator| {
            let folds_cr = terminator == b'\n';
            Rules { terminator, folds_cr, field: None, longest: 9 }
        };
        assert_eq!(rules(b'\n').bare(b"a\r\n"), b"a");
        assert_eq!(rules(b'\n').bare(b"a\r\r\n"), b"a\r");
        assert_eq!(rules(b'\n').bare(b"\n"), b"");
        assert_eq!(rules(b'\n').bare(b"\r\n"), b"");
        assert_eq!(rules(0).bare(b"a\r\0"), b"a\r");
    }

    #[test]
    fn a_field_is_what_is_between_delimiters() {
        for (number, line, expected) in [
            (1, &b"a,b,c"[..], Some(&b"a"[..])),
            (2, b"a,b,c", Some(b"b")),
            (3, b"a,b,c", Some(b"c")),
            (4, b"a,b,c", None),
            (1, b"", Some(b"")),
            (2, b"", None),
            (1, b"a", Some(b"a")),
            (1, b",a", Some(b"")),
            (2, b"a,", Some(b"")),
            (3, b",,", Some(b"")),
            (usize::MAX, b",,", None),
        ] {
            assert_eq!(Field { number, delimiter: b',' }.of(line), expected, "{number}");
        }
    }

    #[test]
    fn a_line_without_the_field_is_compared_as_a_whole() {
        let rules = Rules {
            terminator: b'\n',
            folds_cr: true,
            field: Some(Field { number: 2, delimiter: b',' }),
            longest: 9,
        };
        assert_eq!(rules.compared(b"a,b\r\n"), (&b"b"[..], true));
        assert_eq!(rules.compared(b"a\r\n"), (&b"a"[..], false));
        let whole = Rules { field: None, ..rules };
        assert_eq!(whole.compared(b"a,b\r\n"), (&b"a,b"[..], true));
    }
}

//! Stub until the real one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UrlRules {
    pub sort_query: bool,
    pub ignore_tracking: bool,
}

impl UrlRules {
    pub fn key<'a>(self, line: &'a [u8], scratch: &'a mut String) -> Option<&'a [u8]> {
        scratch.clear();
        scratch.push_str(url::Url::parse(std::str::from_utf8(line).ok()?).ok()?.as_str());
        Some(scratch.as_bytes())
    }
}

//! The names of the commands: `CF.` and a word, unless the operator chose another prefix than `CF`.
//!
//! The module's own texts have `CF.`, in commands that it replicates and in what it tells clients. They are spelled
//! here as this server knows them.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::{PoisonError, RwLock};

/// The prefix, if it is another one.
static PREFIX: RwLock<Option<String>> = RwLock::new(None);

const MAX_LENGTH: usize = 32;

/// Makes this the prefix. The error says why it cannot be one.
pub(super) fn choose(prefix: Option<&[u8]>) -> Result<(), String> {
    let fits = |prefix: &&[u8]| {
        let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        (1..=MAX_LENGTH).contains(&prefix.len()) && prefix.iter().all(is_right)
    };
    if let Some(wrong) = prefix.filter(|prefix| !fits(prefix)) {
        return Err(format!(
            "a prefix has 1 to {MAX_LENGTH} letters, digits, `_` or `-`, and {:?} has not",
            String::from_utf8_lossy(wrong)
        ));
    }
    let chosen = prefix.map(|prefix| String::from_utf8_lossy(prefix).into_owned());
    *PREFIX.write().unwrap_or_else(PoisonError::into_inner) = chosen;
    Ok(())
}

/// The category of access rules that has all commands: `@cuckoo`, or the prefix. RedisBloom has a `@cuckoo` of its own,
/// and is not loaded where that is taken.
pub(super) fn category() -> CString {
    let prefix = PREFIX.read().unwrap_or_else(PoisonError::into_inner);
    let name = prefix.as_deref().unwrap_or("cuckoo").to_ascii_lowercase();
    CString::new(name).unwrap_or_default()
}

/// Spells all names of commands in a text.
pub(super) fn spelled(text: &CStr) -> Cow<'_, CStr> {
    let prefix = PREFIX.read().unwrap_or_else(PoisonError::into_inner);
    let Some(prefix) = prefix.as_deref() else { return Cow::Borrowed(text) };
    let [upper, lower] = [prefix.to_owned(), prefix.to_ascii_lowercase()].map(|name| name + ".");
    let text = text.to_string_lossy().replace("CF.", &upper).replace("cf.", &lower);
    CString::new(text).unwrap_or_default().into()
}

//! A key of the server, and the set that it may have.

use crate::server::datatype;
use crate::server::raw;
use crate::set::Set;
use std::marker::PhantomData;

/// Whether a key may be changed by who opens it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
}

/// A key that a command has opened, until it is dropped.
pub struct Key<'a> {
    raw: *mut raw::RedisModuleKey,
    writable: bool,
    call: PhantomData<&'a ()>,
}

/// What a key has.
pub enum Value<'k> {
    Nothing,
    /// Something that is not a set of ours.
    Other,
    Set(&'k Set),
}

/// The same, of a key that may be changed.
pub enum ValueMut<'k> {
    Nothing,
    /// Something that is not a set of ours.
    Other,
    Set(&'k mut Set),
}

impl Key<'_> {
    /// # Safety
    ///
    /// The key was opened in this mode, in a call that lives as long as this type says. No other key of this
    /// name is in use.
    pub(super) unsafe fn new(raw: *mut raw::RedisModuleKey, mode: Mode) -> Self {
        Key { raw, writable: mode == Mode::Write, call: PhantomData }
    }

    pub fn value(&self) -> Value<'_> {
        match self.set() {
            Ok(None) => Value::Nothing,
            Err(Other) => Value::Other,
            // SAFETY: the set lives as long as the key has it, and nobody changes it meanwhile: the server runs
            // one command at a time, and this one has the key.
            Ok(Some(set)) => Value::Set(unsafe { &*set }),
        }
    }

    pub fn value_mut(&mut self) -> ValueMut<'_> {
        assert!(self.writable, "a key that is to be changed has been opened for that");
        match self.set() {
            Ok(None) => ValueMut::Nothing,
            Err(Other) => ValueMut::Other,
            // SAFETY: as above.
            Ok(Some(set)) => ValueMut::Set(unsafe { &mut *set }),
        }
    }

    /// Gives the key a set, instead of what it has.
    pub fn put(&mut self, set: Set) -> &mut Set {
        assert!(self.writable, "a key that is to be changed has been opened for that");
        let set = Box::into_raw(Box::new(set));
        // SAFETY: the key is writable. From now on it owns the set.
        unsafe {
            raw::RedisModule_ModuleTypeSetValue.unwrap()(self.raw, datatype::id(), set.cast());
            &mut *set
        }
    }

    fn set(&self) -> Result<Option<*mut Set>, Other> {
        // A missing key that was opened for reading is no key at all.
        // SAFETY: a value of our type is a set.
        unsafe {
            let kind = match self.raw.is_null() {
                true => raw::REDISMODULE_KEYTYPE_EMPTY,
                false => raw::RedisModule_KeyType.unwrap()(self.raw),
            };
            if kind == raw::REDISMODULE_KEYTYPE_EMPTY {
                Ok(None)
            } else if kind == raw::REDISMODULE_KEYTYPE_MODULE
                && raw::RedisModule_ModuleTypeGetType.unwrap()(self.raw) == datatype::id()
            {
                Ok(Some(raw::RedisModule_ModuleTypeGetValue.unwrap()(self.raw).cast()))
            } else {
                Err(Other)
            }
        }
    }
}

/// The key has something else.
struct Other;

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open.
        unsafe { raw::RedisModule_CloseKey.unwrap()(self.raw) };
    }
}

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
    /// No use of the key that the server counts or tells anybody.
    Unnoticed,
}

/// A key that a command has opened, until it is dropped.
pub struct Key<'a> {
    raw: *mut raw::RedisModuleKey,
    writable: bool,
    call: PhantomData<&'a ()>,
}

/// What a key has.
pub enum Value<S> {
    Nothing,
    /// Something that is not a set of ours.
    Other,
    Set(S),
}

impl<S> Value<S> {
    fn map<T>(self, act: impl FnOnce(S) -> T) -> Value<T> {
        match self {
            Value::Nothing => Value::Nothing,
            Value::Other => Value::Other,
            Value::Set(set) => Value::Set(act(set)),
        }
    }
}

impl Key<'_> {
    /// # Safety
    ///
    /// The key was opened in this mode, in a call that lives as long as this type says. No other key of this
    /// name is in use.
    pub(super) unsafe fn new(raw: *mut raw::RedisModuleKey, mode: Mode) -> Self {
        Key { raw, writable: mode != Mode::Read, call: PhantomData }
    }

    pub fn value(&self) -> Value<&Set> {
        // SAFETY: the set lives as long as the key has it, and nobody changes it meanwhile: the server runs one command
        // at a time, and this one has the key.
        self.set().map(|set| unsafe { &*set })
    }

    pub fn value_mut(&mut self) -> Value<&mut Set> {
        assert!(self.writable, "a key that is to be changed has been opened for that");
        // SAFETY: as above.
        self.set().map(|set| unsafe { &mut *set })
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

    fn set(&self) -> Value<*mut Set> {
        // A missing key that was opened for reading is no key at all.
        // SAFETY: a value of our type is a set.
        unsafe {
            let kind = match self.raw.is_null() {
                true => raw::REDISMODULE_KEYTYPE_EMPTY,
                false => raw::RedisModule_KeyType.unwrap()(self.raw),
            };
            if kind == raw::REDISMODULE_KEYTYPE_EMPTY {
                Value::Nothing
            } else if kind == raw::REDISMODULE_KEYTYPE_MODULE
                && raw::RedisModule_ModuleTypeGetType.unwrap()(self.raw) == datatype::id()
            {
                Value::Set(raw::RedisModule_ModuleTypeGetValue.unwrap()(self.raw).cast())
            } else {
                Value::Other
            }
        }
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open.
        unsafe { raw::RedisModule_CloseKey.unwrap()(self.raw) };
    }
}

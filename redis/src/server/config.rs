//! The settings: `CONFIG GET koel.*`.

use crate::server::command::done;
use crate::server::context::{Argument, string};
use crate::server::raw;
use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

// Relaxed: the server reads and writes its settings in one thread.

/// The most bytes that a key may take when a client adds to it. 0 if there is no such limit.
static MAX_BYTES: AtomicI64 = AtomicI64::new(0);

/// The capacity of a key that the first item makes.
static CAPACITY: AtomicI64 = AtomicI64::new(1_024);

/// The false-positive rate of a key that was made without one, as bits.
static ERROR_RATE: AtomicU64 = AtomicU64::new(0);

const DEFAULT_ERROR_RATE: &CStr = c"0.001";

pub fn max_bytes() -> usize {
    match MAX_BYTES.load(Ordering::Relaxed) {
        0 => usize::MAX,
        bytes => bytes as usize,
    }
}

pub fn capacity() -> u64 {
    CAPACITY.load(Ordering::Relaxed) as u64
}

pub fn error_rate() -> f64 {
    f64::from_bits(ERROR_RATE.load(Ordering::Relaxed))
}

/// Makes the server know the settings, and takes over what its file says of them.
///
/// # Safety
///
/// The context is that of the call that loads the module.
pub(super) unsafe fn register(context: *mut raw::RedisModuleCtx) -> Result<(), ()> {
    let number = |name: &CStr, value: &'static AtomicI64, flags, (least, most)| {
        let default = value.load(Ordering::Relaxed);
        let data = std::ptr::from_ref(value).cast_mut().cast();
        // SAFETY: the callbacks take this value, which lives for ever.
        done(unsafe {
            let register = raw::RedisModule_RegisterNumericConfig.unwrap();
            let (get, set) = (Some(get_number as _), Some(set_number as _));
            register(context, name.as_ptr(), default, flags, least, most, get, set, None, data)
        })
    };
    number(c"max-bytes", &MAX_BYTES, raw::REDISMODULE_CONFIG_MEMORY, (0, i64::MAX))?;
    number(c"capacity", &CAPACITY, raw::REDISMODULE_CONFIG_DEFAULT, (4, 1 << 30))?;
    // SAFETY: the callbacks need no data.
    unsafe {
        let register = raw::RedisModule_RegisterStringConfig.unwrap();
        let (name, flags) = (c"error-rate".as_ptr(), raw::REDISMODULE_CONFIG_DEFAULT);
        let (get, set) = (Some(get_rate as _), Some(set_rate as _));
        let default = DEFAULT_ERROR_RATE.as_ptr();
        done(register(context, name, default, flags, get, set, None, null_mut()))?;
        done(raw::RedisModule_LoadConfigs.unwrap()(context))
    }
}

unsafe extern "C" fn get_number(_name: *const c_char, value: *mut c_void) -> c_longlong {
    // SAFETY: it was registered with such a value.
    unsafe { &*value.cast::<AtomicI64>() }.load(Ordering::Relaxed)
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    new: c_longlong,
    value: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { &*value.cast::<AtomicI64>() }.store(new, Ordering::Relaxed);
    raw::REDISMODULE_OK
}

unsafe extern "C" fn get_rate(
    _name: *const c_char,
    _data: *mut c_void,
) -> *mut raw::RedisModuleString {
    // The server copies the string, and leaves it to us.
    static LAST: AtomicPtr<raw::RedisModuleString> = AtomicPtr::new(null_mut());
    let text = string(null_mut(), error_rate().to_string().as_bytes());
    let before = LAST.swap(text, Ordering::Relaxed);
    if !before.is_null() {
        // SAFETY: it was made here, and the server has copied it.
        unsafe { raw::RedisModule_FreeString.unwrap()(null_mut(), before) };
    }
    text
}

unsafe extern "C" fn set_rate(
    _name: *const c_char,
    new: *mut raw::RedisModuleString,
    _data: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the string lives until this returns.
    let text = unsafe { Argument::new(new) }.bytes();
    match std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(rate) if (1e-8..1.0).contains(&rate) => {
            ERROR_RATE.store(rate.to_bits(), Ordering::Relaxed);
            raw::REDISMODULE_OK
        }
        _ => {
            // SAFETY: the server frees the message.
            unsafe {
                *error = string(null_mut(), b"the rate has to be from 0.00000001 to less than 1")
            };
            raw::REDISMODULE_ERR
        }
    }
}

//! The data type: how the server saves, loads, copies, measures and frees a set.
//!
//! A set is saved as a sequence of strings, its [chunks](crate::set::chunk). The last chunk is marked.

use crate::server::log::{cannot_save, catch_panic, log};
use crate::server::names::spelled;
use crate::server::raw;
use crate::set::Set;
use crate::set::assembly::{Assembly, ChunkError};
use crate::set::errors;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The name of the type, in files and to `TYPE`.
const NAME: &std::ffi::CStr = c"koel-cuck";

/// The version of what is saved.
const VERSION: c_int = 1;

static ID: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(null_mut());

/// The type, as the server knows it.
pub(super) fn id() -> *mut raw::RedisModuleType {
    // Relaxed: it is stored once, by the thread that reads it.
    ID.load(Ordering::Relaxed)
}

/// Makes the server know the type.
///
/// # Safety
///
/// The context is that of the call that loads the module.
pub(super) unsafe fn register(context: *mut raw::RedisModuleCtx) -> Result<(), ()> {
    let mut methods = raw::RedisModuleTypeMethods {
        version: raw::REDISMODULE_TYPE_METHOD_VERSION,
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite),
        mem_usage: Some(memory),
        digest: Some(digest),
        free: Some(free),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(free_effort),
        unlink: None,
        copy: Some(copy),
        defrag: Some(defrag),
    };
    // SAFETY: the callbacks take values that were set with this type, which are sets.
    let id = unsafe {
        raw::RedisModule_CreateDataType.unwrap()(context, NAME.as_ptr(), VERSION, &mut methods)
    };
    ID.store(id, Ordering::Relaxed);
    if id.is_null() { Err(()) } else { Ok(()) }
}

/// The set that a value is.
///
/// # Safety
///
/// The value has our type, and is neither freed nor changed while the set is in use.
unsafe fn set<'a>(value: *const c_void) -> &'a Set {
    // SAFETY: a value of our type is a set.
    unsafe { &*value.cast() }
}

unsafe extern "C" fn save(file: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server calls this with a value of our type. (So it does with those below.)
    let outcome = unsafe { set(value) }.each_chunk(|chunk| {
        // SAFETY: the bytes are copied.
        unsafe {
            let save = raw::RedisModule_SaveStringBuffer.unwrap();
            save(file, chunk.as_ptr().cast(), chunk.len());
        }
    });
    outcome.unwrap_or_else(|error| cannot_save(&errors::of_snapshot(&error)));
}

unsafe extern "C" fn load(file: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    if version != VERSION {
        let which = format!("this filter was saved in version {version}, which is not known here");
        log(null_mut(), &format!("koel: {which}"));
        return null_mut();
    }
    // Whatever is in a file, the server goes on.
    match catch_panic(Ok(None), "loading a filter", || read(file)) {
        Ok(set) => set.map_or(null_mut(), |set| Box::into_raw(Box::new(set)).cast()),
        Err(error) => {
            log(null_mut(), &format!("koel: a saved filter is damaged: {error}"));
            null_mut()
        }
    }
}

/// Reads a set, or nothing if the file ends too soon.
fn read(file: *mut raw::RedisModuleIO) -> Result<Option<Set>, ChunkError> {
    let (mut assembly, mut number) = (Assembly::default(), 0);
    while !assembly.has_last() {
        number += 1;
        let mut length = 0;
        // SAFETY: a string that was loaded is ours to free.
        unsafe {
            let chunk = raw::RedisModule_LoadStringBuffer.unwrap()(file, &mut length);
            if raw::RedisModule_IsIOError.unwrap()(file) != 0 || chunk.is_null() {
                return Ok(None);
            }
            let pushed = assembly.push(number, std::slice::from_raw_parts(chunk.cast(), length));
            raw::RedisModule_Free.unwrap()(chunk.cast());
            pushed?;
        }
    }
    Set::of_chunks(assembly).map(Some)
}

unsafe extern "C" fn rewrite(
    file: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    let mut number: i64 = 0;
    // SAFETY: as above.
    let outcome = unsafe { set(value) }.each_chunk(|chunk| {
        number += 1;
        // SAFETY: `slb` stands for a string, a number, and bytes with their length.
        unsafe {
            let (emit, command) = (raw::RedisModule_EmitAOF.unwrap(), spelled(c"CF.LOADCHUNK"));
            let (start, length): (*const c_char, usize) = (chunk.as_ptr().cast(), chunk.len());
            emit(file, command.as_ptr(), c"slb".as_ptr(), key, number, start, length);
        }
    });
    outcome.unwrap_or_else(|error| cannot_save(&errors::of_snapshot(&error)));
}

unsafe extern "C" fn memory(value: *const c_void) -> usize {
    // SAFETY: as above.
    unsafe { set(value) }.bytes()
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: as above.
    let set = unsafe { set(value) };
    let add = |bytes: &[u8]| {
        // SAFETY: the bytes are read at once.
        unsafe {
            let add = raw::RedisModule_DigestAddStringBuffer.unwrap();
            add(digest, bytes.as_ptr().cast(), bytes.len());
        }
    };
    catch_panic((), "a digest", || set.each_digested(add));
    // SAFETY: what was added is a sequence.
    unsafe { raw::RedisModule_DigestEndSequence.unwrap()(digest) };
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server frees a value once, maybe in a thread of its own. A set can be sent there.
    drop(unsafe { Box::<Set>::from_raw(value.cast()) });
}

/// Freeing takes a call for each shard. The server frees what takes more than 64 in the background, and also what
/// takes none.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: as above.
    1 + (unsafe { set(value) }.bytes() >> 16)
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let set = unsafe { set(value) };
    match catch_panic(None, "a copy", || set.try_clone()) {
        Some(set) => Box::into_raw(Box::new(set)).cast(),
        None => {
            log(null_mut(), "koel: cannot copy a filter: there is no memory for it");
            null_mut()
        }
    }
}

/// Moves a set, and what is small in it, to where there is less waste around. The tables of a large one are as
/// large as the pages of the allocator, and waste none.
unsafe extern "C" fn defrag(
    context: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server moves the bytes of a block, and frees it. A set does not mind being moved.
    unsafe {
        let moved = raw::RedisModule_DefragAlloc.unwrap()(context, *value);
        if !moved.is_null() {
            *value = moved;
            (*(*value).cast::<Set>()).renew_what_is_small();
        }
    }
    0
}

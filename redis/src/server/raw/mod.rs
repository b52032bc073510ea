//! The module API, as Redis and Valkey document it: what this module uses of it, declared by hand.
//!
//! A server passes a context to the function of the module that it calls first. The first word of that context is the
//! address of a function which finds every other one by its name. [`init`] asks for those in [`functions`]; so
//! building the module needs no header of a server, and one build serves every server that has them.
//!
//! Why not the crate `redis-module` or `valkey-module`:
//!
//! * Its allocator has no `alloc_zeroed`, so each new table would be written in full; it aborts where `TryAlloc` could
//!   refuse; and it ignores alignments above those of `malloc`. See [`alloc`](crate::server::alloc).
//! * The oldest server that it supports is chosen when it is built. Here, one build asks each server for what it has.
//! * Building it takes libclang, for its bindings.
//!
//! * [`functions`] are pointers, empty until the server has been asked.
//! * [`types`] are what the functions take and return.
//! * [`flags`] are the numbers that the server knows by a name.
//!
//! Names are the server's own, so its documentation says what each is. (Valkey also finds its functions by the names
//! that they have in Redis.) A declaration that is wrong is undefined behaviour at worst, so everything here is held
//! against servers: the tests in `tests/servers/interface.rs` say how.

#![allow(non_upper_case_globals, non_snake_case, reason = "the server's names")]

mod flags;
mod functions;
#[cfg(test)]
mod tests;
mod types;

pub use flags::*;
pub use functions::*;
pub use types::*;

use std::ffi::{CStr, c_char, c_int, c_void};

/// Stores the address of the function of this name, and returns [`REDISMODULE_OK`], if the server has it.
type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// Why [`init`] failed.
pub enum InitError {
    /// The server has a module of this name already. Only its log has been asked for.
    NameTaken,
    /// The server is too old: it lacks this function, which the module needs.
    Lacks(&'static CStr),
}

/// Gets all functions from the server, and tells it the name and the version of the module. Allocates nothing.
///
/// # Safety
///
/// The context is the one that the server passed to `RedisModule_OnLoad`, in that call.
pub unsafe fn init(
    context: *mut RedisModuleCtx,
    name: &CStr,
    version: c_int,
) -> Result<(), InitError> {
    // SAFETY: the server promises that this is the context's first word.
    let get_api = unsafe { context.cast::<GetApi>().read() };
    // A server that is told twice to load the same file calls the same memory twice, where another of its threads may
    // free a set just now. So this comes before anything is stored.
    let mut is_name_busy: Option<unsafe extern "C" fn(*const c_char) -> c_int> = None;
    // SAFETY: the function has this type, and `None` is a null pointer.
    unsafe {
        get_api(c"RedisModule_IsModuleNameBusy".as_ptr(), (&raw mut is_name_busy).cast());
        if is_name_busy.is_some_and(|is_busy| is_busy(name.as_ptr()) != 0) {
            // Another file has nothing yet, and nobody else who reads it.
            if { RedisModule_Log }.is_none() {
                get_api(c"RedisModule_Log".as_ptr(), (&raw mut RedisModule_Log).cast());
            }
            return Err(InitError::NameTaken);
        }
    }
    for function in functions::all() {
        // A pointer stays null where the server has no such function.
        // SAFETY: the pointer is that of a static, of the function that has this name; and nobody reads any of them
        // yet, since the module is not loaded.
        unsafe { get_api(function.name.as_ptr(), function.pointer) };
    }
    // SAFETY: the functions have been asked for.
    if let Some(name) = unsafe { lacking(Need::Always) }.next() {
        return Err(InitError::Lacks(name));
    }
    // SAFETY: the context is that of this call, and the server copies the name.
    unsafe {
        RedisModule_SetModuleAttribs.unwrap()(context, name.as_ptr(), version, REDISMODULE_APIVER_1)
    };
    Ok(())
}

/// The functions of this need that the server lacks.
///
/// # Safety
///
/// Nobody asks a server for its functions meanwhile.
pub unsafe fn lacking(need: Need) -> impl Iterator<Item = &'static CStr> {
    let functions = functions::all().into_iter().filter(move |function| function.need == need);
    // SAFETY: the pointer is that of a static.
    functions
        .filter(|function| unsafe { function.pointer.read() }.is_null())
        .map(|lacks| lacks.name)
}

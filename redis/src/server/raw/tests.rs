use super::*;
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::Mutex;

/// What the made-up server lacks, whether it has a module of any name, and which versions it was told.
struct Server {
    lacks: Vec<&'static CStr>,
    is_busy: bool,
    told: Vec<c_int>,
}

static SERVER: Mutex<Server> =
    Mutex::new(Server { lacks: Vec::new(), is_busy: false, told: Vec::new() });

unsafe extern "C" fn is_name_busy(_name: *const c_char) -> c_int {
    SERVER.lock().unwrap().is_busy.into()
}

unsafe extern "C" fn set_attributes(
    _context: *mut RedisModuleCtx,
    _name: *const c_char,
    version: c_int,
    _api_version: c_int,
) {
    SERVER.lock().unwrap().told.push(version);
}

/// Has all functions but those that are lacking. Nobody calls most of them.
unsafe extern "C" fn get_api(name: *const c_char, pointer: *mut *mut c_void) -> c_int {
    // SAFETY: the name is a string, and the pointer has a place for an address.
    unsafe {
        let name = CStr::from_ptr(name);
        if SERVER.lock().unwrap().lacks.contains(&name) {
            return REDISMODULE_ERR;
        }
        *pointer = match name.to_str().unwrap() {
            "RedisModule_IsModuleNameBusy" => is_name_busy as *mut c_void,
            "RedisModule_SetModuleAttribs" => set_attributes as *mut c_void,
            _ => std::ptr::dangling_mut(),
        };
    }
    REDISMODULE_OK
}

/// Loads the module where these functions are lacking.
fn init_without(lacks: &[&'static CStr]) -> Result<(), InitError> {
    SERVER.lock().unwrap().lacks = lacks.to_vec();
    let mut context: GetApi = get_api;
    for function in functions::all() {
        // SAFETY: only one test uses them, and they are pointers that may be null.
        unsafe { function.pointer.write(null_mut()) };
    }
    // SAFETY: the context begins as that of a server does.
    unsafe { init((&raw mut context).cast(), c"koel", 7) }
}

fn all_lacking(need: Need) -> Vec<&'static CStr> {
    // SAFETY: only one test asks.
    unsafe { lacking(need) }.collect()
}

#[test]
fn only_a_server_that_has_what_is_needed_is_told_of_the_module() {
    SERVER.lock().unwrap().is_busy = true;
    assert!(matches!(init_without(&[]), Err(InitError::NameTaken)));
    assert_eq!(all_lacking(Need::IfThere).len(), 4, "nothing was asked for but the log");
    assert_eq!(all_lacking(Need::Always).len(), functions::all().len() - 4 - 1);
    SERVER.lock().unwrap().is_busy = false;

    // (A server of before 4.0.3 cannot tell whether a name is taken.)
    let needed = functions::all().into_iter().filter(|function| function.need == Need::Always);
    for function in needed {
        let outcome = init_without(&[c"RedisModule_IsModuleNameBusy", function.name]);
        assert!(matches!(outcome, Err(InitError::Lacks(name)) if name == function.name));
    }
    assert!(SERVER.lock().unwrap().told.is_empty());

    let lacks = [c"RedisModule_TryCalloc", c"RedisModule_AddACLCategory"];
    assert!(init_without(&lacks).is_ok());
    assert_eq!(all_lacking(Need::IfThere), lacks);
    assert_eq!(all_lacking(Need::Always), Vec::<&CStr>::new());
    assert_eq!(SERVER.lock().unwrap().told, [7]);
}

/// Where a C compiler puts the fields of the servers' own declarations.
#[test]
#[cfg(target_pointer_width = "64")]
fn fields_are_where_servers_look_for_them() {
    macro_rules! places {
        ($($name:ident: $bytes:literal, $($($field:ident).+ $at:literal)*;)*) => {
            $(
                assert_eq!(size_of::<$name>(), $bytes, stringify!($name));
                $(assert_eq!(offset_of!($name, $($field).+), $at, stringify!($name $($field).+));)*
            )*
        };
    }
    places! {
        RedisModuleTypeMethods: 112,
            version 0 rdb_load 8 rdb_save 16 aof_rewrite 24 mem_usage 32 digest 40 free 48 aux_load 56
            aux_save 64 aux_save_triggers 72 free_effort 80 unlink 88 copy 96 defrag 104;
        RedisModuleCommandInfoVersion: 32,
            version 0 sizeof_historyentry 8 sizeof_keyspec 16 sizeof_arg 24;
        RedisModuleCommandInfo: 72,
            version 0 summary 8 complexity 16 since 24 history 32 tips 40 arity 48 key_specs 56 args 64;
        RedisModuleCommandKeySpec: 56,
            notes 0 flags 8 begin_search_type 16 bs.index.pos 24 bs.other 24
            find_keys_type 40 fk.lastkey 44 fk.keystep 48 fk.limit 52;
    }
}

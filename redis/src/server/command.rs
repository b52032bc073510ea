//! Commands: what the server has to know of each, and how it calls them.

use crate::server::context::{Argument, Context, arguments};
use crate::server::log::{catch_panic, log};
use crate::server::names::{category, spelled};
use crate::server::raw;
use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};

/// Why a command was refused.
pub enum Refusal {
    /// It has too few arguments or too many.
    Arity,
    /// The key has something that is not a filter.
    WrongType,
    /// The key has nothing.
    Missing,
    /// The key has half a filter.
    Half,
    Message(&'static CStr),
    Text(String),
}

impl Refusal {
    /// The same, but for a command that has words of its own for a key without a filter.
    pub fn or(self, other: &'static CStr) -> Self {
        if matches!(self, Refusal::Half) { self } else { Refusal::Message(other) }
    }

    fn reply(self, context: Context<'_>) {
        context.reply_error(match self {
            Refusal::Arity => return context.reply_wrong_arity(),
            Refusal::WrongType => {
                c"WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            Refusal::Missing => c"ERR not found",
            Refusal::Half => {
                c"ERR this filter is still being loaded by CF.LOADCHUNK: send its next chunk, or begin again with the first"
            }
            Refusal::Message(message) => message,
            Refusal::Text(text) => {
                let text = CString::new(text.replace(['\0', '\r', '\n'], " "));
                return context.reply_error(&text.unwrap_or_default());
            }
        });
    }
}

pub type Outcome = Result<(), Refusal>;

/// A command.
pub trait Command {
    const INFO: CommandInfo;

    /// Does it, and replies, unless it is refused. The first argument is the command's name.
    fn run(call: Context<'_>, arguments: &[Argument<'_>]) -> Outcome;
}

/// What clients, proxies and access rules have to know of a command.
pub struct CommandInfo {
    pub name: &'static CStr,
    pub summary: &'static CStr,
    pub complexity: &'static CStr,
    /// The number of arguments with the command's name, or minus the least one.
    pub arity: c_int,
    pub access: Access,
    /// Whether it takes microseconds, whatever the size of the filter and the number of items.
    pub fast: bool,
}

impl CommandInfo {
    pub const fn slow(name: &'static CStr, arity: c_int, access: Access) -> Self {
        CommandInfo { name, summary: c"", complexity: c"O(1)", arity, access, fast: false }
    }

    pub const fn fast(name: &'static CStr, arity: c_int, access: Access) -> Self {
        CommandInfo { fast: true, ..CommandInfo::slow(name, arity, access) }
    }

    pub const fn told(self, complexity: &'static CStr, summary: &'static CStr) -> Self {
        CommandInfo { complexity, summary, ..self }
    }
}

/// What a command does with its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looks into the key.
    Read,
    /// Tells something of the key, but not what is in it.
    Describe,
    /// Adds to the key, which it may create.
    Insert,
    /// Makes the key.
    Create,
    /// Takes out of the key.
    Delete,
    /// Changes the key, but not what is in it.
    Update,
    /// Adds to the first key what is in the others.
    Merge,
}

impl Access {
    fn writes(self) -> bool {
        !matches!(self, Access::Read | Access::Describe)
    }
}

/// Makes the server know a command.
///
/// # Safety
///
/// The context is that of the call that loads the module.
pub(super) unsafe fn register<C: Command>(
    context: *mut raw::RedisModuleCtx,
    own_category: Option<&CStr>,
) -> Result<(), ()> {
    let about = &C::INFO;
    let mut flags = match about.access {
        Access::Read | Access::Describe => "readonly",
        Access::Insert | Access::Create | Access::Merge => "write deny-oom",
        Access::Delete | Access::Update => "write",
    }
    .to_owned();
    if about.fast {
        flags += " fast";
    }
    let flags = CString::new(flags).map_err(drop)?;
    let last = if about.access == Access::Merge { -1 } else { 1 };
    let name = spelled(about.name);
    // SAFETY: the server copies all strings.
    unsafe {
        let create = raw::RedisModule_CreateCommand.unwrap();
        let run = Some(call::<C> as _);
        done(create(context, name.as_ptr(), run, flags.as_ptr(), 1, last, 1)).map_err(|()| {
            let name = name.to_string_lossy().to_uppercase();
            let word = name.rsplit('.').next().unwrap_or_default();
            log(context, &format!(
                "koel: another module has the command {name} (RedisBloom, in the image of Redis 8). Add `prefix KOEL` \
                 behind the path of this module, or any other word: the command is KOEL.{word} then, and all of \
                 koel's are called like that"
            ));
        })?;
        let command = raw::RedisModule_GetCommand.unwrap()(context, name.as_ptr());
        // Servers do not derive these from the flags. Redis 7.0 has none for the commands of modules.
        if let Some(set_categories) = raw::RedisModule_SetCommandACLCategories {
            done(set_categories(command, categories(about, own_category).as_ptr()))?;
        }
        describe(command, about)
    }
}

/// The categories of access rules that a command is in.
fn categories(about: &CommandInfo, own: Option<&CStr>) -> CString {
    let access = if about.access.writes() { "write" } else { "read" };
    let speed = if about.fast { "fast" } else { "slow" };
    let own = own.unwrap_or_default().to_string_lossy();
    CString::new(format!("{access} {speed} {own}").trim_end()).unwrap_or_default()
}

/// Adds the category that has all commands of the module, where the server lets a module do so (from Redis 7.4 on).
///
/// # Safety
///
/// The context is that of the call that loads the module.
pub(super) unsafe fn own_category(context: *mut raw::RedisModuleCtx) -> Option<CString> {
    // SAFETY: as above. The server copies the name.
    let add = unsafe { raw::RedisModule_AddACLCategory }?;
    Some(category()).filter(|name| done(unsafe { add(context, name.as_ptr()) }).is_ok())
}

pub(super) fn done(status: c_int) -> Result<(), ()> {
    if status == raw::REDISMODULE_OK { Ok(()) } else { Err(()) }
}

/// Tells the server which keys a command takes, and what it does with them; and what `COMMAND DOCS` says of it.
unsafe fn describe(command: *mut raw::RedisModuleCommand, about: &CommandInfo) -> Result<(), ()> {
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_historyentry: 0,
        sizeof_arg: 0,
    };
    let mut keys = key_specs(about.access);
    // SAFETY: a row of zeros, which are numbers and null pointers, ends the table.
    keys.push(unsafe { std::mem::zeroed() });
    let [summary, complexity] = [about.summary, about.complexity].map(spelled);
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        summary: summary.as_ptr(),
        complexity: complexity.as_ptr(),
        since: c"0.1.0".as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: about.arity,
        key_specs: keys.as_mut_ptr(),
        args: null_mut(),
    };
    // SAFETY: the server copies everything.
    done(unsafe { raw::RedisModule_SetCommandInfo.unwrap()(command, &info) })
}

fn key_specs(access: Access) -> Vec<raw::RedisModuleCommandKeySpec> {
    use raw::*;
    let spec = |flags, first, last| RedisModuleCommandKeySpec {
        notes: null(),
        flags,
        begin_search_type: REDISMODULE_KSPEC_BS_INDEX,
        bs: RedisModuleKeySpecBeginSearch { index: RedisModuleKeySpecIndex { pos: first } },
        find_keys_type: REDISMODULE_KSPEC_FK_RANGE,
        fk: RedisModuleKeySpecRange { lastkey: last, keystep: 1, limit: 0 },
    };
    let write = REDISMODULE_CMD_KEY_RW;
    match access {
        Access::Read => vec![spec(REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS, 1, 0)],
        Access::Describe => vec![spec(REDISMODULE_CMD_KEY_RO, 1, 0)],
        Access::Insert | Access::Create => vec![spec(write | REDISMODULE_CMD_KEY_INSERT, 1, 0)],
        Access::Delete => vec![spec(write | REDISMODULE_CMD_KEY_DELETE, 1, 0)],
        Access::Update => vec![spec(write | REDISMODULE_CMD_KEY_UPDATE, 1, 0)],
        Access::Merge => vec![
            spec(write | REDISMODULE_CMD_KEY_INSERT, 1, 0),
            spec(REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS, 2, -1),
        ],
    }
}

/// What the server calls.
unsafe extern "C" fn call<C: Command>(
    raw: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: both live until this returns, and nothing keeps them for longer.
    let (context, arguments) = unsafe { (Context::new(raw), arguments(argv, argc)) };
    let panicked =
        Refusal::Message(c"ERR internal error of the koel module; the server's log has more");
    let outcome = catch_panic(Err(panicked), "a command", || C::run(context, arguments));
    outcome.unwrap_or_else(|refusal| refusal.reply(context));
    raw::REDISMODULE_OK
}

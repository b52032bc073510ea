//! The sets that are measured: koel in memory and with its journal, SQLite, fjall, Redis, and Scrapy's filter, which is
//! the script `seen.py`.

use crate::kit::arguments::Result;
use crate::kit::machine::{share, timed};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use koel::{
    Builder, ConcurrentCuckooFilter, DurableFilter, DurableOptions, StableHash, SyncPolicy,
};
use rusqlite::Connection;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A set of hashes that may outlive its process. Items have numbers, and [`item`] tells their hashes.
pub trait Set {
    /// Adds those of the items that are not there, and returns how many these were.
    fn add(&mut self, items: Range<u64>) -> Result<u64>;

    /// Returns how many of the items are there.
    fn look_up(&mut self, items: Range<u64>) -> Result<u64>;

    /// Does what a careful owner does before the set is closed.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the process that has the set.
    fn process(&self) -> u32 {
        std::process::id()
    }
}

/// Returns the hash of an item. Different items have different hashes.
pub fn item(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A set and how it is used.
pub struct Kind {
    pub name: &'static str,
    pub group: &'static str,
    /// It gets one in so many of the items.
    pub of: u64,
    /// How many items a call is given, and so how many are answered at once.
    pub step: u64,
    pub threads: u64,
    pub maker: Maker,
}

/// What makes and asks a set.
#[derive(Clone, Copy)]
pub enum Maker {
    Memory,
    Koel(SyncPolicy),
    /// Its `PRAGMA synchronous`, and how many adds a transaction has.
    Sqlite(&'static str, u64),
    /// Whether each change is synced.
    Fjall(bool),
    Redis,
    Scrapy,
}

/// What a power failure takes, by the documentation of the sets: the titles of their groups.
const NOTHING: &str = "A power failure takes nothing";
const SECONDS: &str = "A power failure takes the last second or two";
const UNWRITTEN: &str =
    "A power failure takes what was not synced yet, of the last half minute or more";
const DAMAGE: &str = "A power failure may damage the file";
pub const EVERYTHING: &str = "The end of the process takes everything";

const EACH: Maker = Maker::Koel(SyncPolicy::Each);
const EVERY_SECOND: Maker = Maker::Koel(SyncPolicy::Every(Duration::from_secs(1)));

/// A row of [`KINDS`]: its name, its group, the share of the items that it gets, items in a call, threads.
const fn kind(
    name: &'static str,
    group: &'static str,
    (of, step, threads): (u64, u64, u64),
    maker: Maker,
) -> Kind {
    Kind { name, group, of, step, threads, maker }
}

#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    kind("koel in memory", EVERYTHING, (1, 1, 1), Maker::Memory),
    kind("koel in memory, 2 threads", EVERYTHING, (1, 1, 2), Maker::Memory),
    kind("koel, not synced", UNWRITTEN, (1, 1, 1), Maker::Koel(SyncPolicy::Never)),
    kind("koel, not synced, 2 threads", UNWRITTEN, (1, 1, 2), Maker::Koel(SyncPolicy::Never)),
    kind("koel, synced every second", SECONDS, (1, 1, 1), EVERY_SECOND),
    kind("koel, synced every second, 2 threads", SECONDS, (1, 1, 2), EVERY_SECOND),
    kind("koel, synced every second, 1,000 a call", SECONDS, (1, 1_000, 1), EVERY_SECOND),
    kind("koel, synced for each call", NOTHING, (500, 1, 1), EACH),
    kind("koel, synced for each call, 2 threads", NOTHING, (500, 1, 2), EACH),
    kind("koel, synced for each call, 1,000 a call", NOTHING, (1, 1_000, 1), EACH),
    kind("SQLite, NORMAL", UNWRITTEN, (4, 1, 1), Maker::Sqlite("NORMAL", 1)),
    kind("SQLite, NORMAL, 1,000 a transaction", UNWRITTEN, (1, 1, 1), Maker::Sqlite("NORMAL", 1_000)),
    kind("SQLite, OFF", DAMAGE, (4, 1, 1), Maker::Sqlite("OFF", 1)),
    kind("SQLite, OFF, 1,000 a transaction", DAMAGE, (1, 1, 1), Maker::Sqlite("OFF", 1_000)),
    kind("fjall", UNWRITTEN, (1, 1, 1), Maker::Fjall(false)),
    kind("fjall, persisted for each add", NOTHING, (500, 1, 1), Maker::Fjall(true)),
    kind("Redis, synced every second", SECONDS, (20, 1, 1), Maker::Redis),
    kind("Redis, synced every second, 1,000 in a pipeline", SECONDS, (1, 1_000, 1), Maker::Redis),
    kind("Scrapy's RFPDupeFilter", UNWRITTEN, (1, 1, 1), Maker::Scrapy),
];

/// Opens the set of so many items in a folder, or makes it.
pub fn open(kind: &Kind, folder: &Path, items: u64) -> Result<Box<dyn Set>> {
    Ok(match kind.maker {
        Maker::Memory => Box::new(Memory(builder(items).build()?, kind.threads)),
        Maker::Koel(policy) => {
            let options = DurableOptions::default().sync(policy);
            let path = folder.join("seen.koel");
            let filter = DurableFilter::open_with(path, options, builder(items))?;
            Box::new(Koel { filter, threads: kind.threads, step: kind.step })
        }
        Maker::Sqlite(synchronous, batch) => {
            let connection = Connection::open(folder.join("seen.sqlite"))?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", synchronous)?;
            connection.execute("CREATE TABLE IF NOT EXISTS seen (hash INTEGER PRIMARY KEY)", ())?;
            Box::new(Table { connection, batch, begun: 0 })
        }
        Maker::Fjall(syncs) => {
            let database = Database::builder(folder).open()?;
            let seen = database.keyspace("seen", KeyspaceCreateOptions::default)?;
            Box::new(Store { database, seen, syncs })
        }
        Maker::Redis => Box::new(Server::start(folder, kind.step)?),
        Maker::Scrapy => return Err("not a set of this program".into()),
    })
}

/// Returns a builder of a filter of one in a million, from a table that is made for an eighth of the items and grows.
fn builder(items: u64) -> Builder<StableHash> {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    builder.false_positive_rate(1e-6).capacity((items / 8).max(1) as usize).growing()
}

/// Counts the items for which the answer is yes.
fn count(mut items: Range<u64>, mut ask: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    items.try_fold(0, |sum, number| Ok(sum + u64::from(ask(item(number))?)))
}

/// The same, on threads that share the items out.
fn count_on(
    threads: u64,
    items: Range<u64>,
    ask: impl Fn(u64) -> Result<bool> + Sync,
) -> Result<u64> {
    if threads == 1 {
        return count(items, ask);
    }
    let on_thread = |thread| {
        let share = share(items.end - items.start, threads, thread);
        count(items.start + share.start..items.start + share.end, &ask)
    };
    timed(threads, on_thread).1.into_iter().sum()
}

/// The same, in batches of so many.
fn count_many(
    items: Range<u64>,
    step: u64,
    ask: impl Fn(&[u64]) -> Result<Vec<bool>>,
) -> Result<u64> {
    let batch = |start| (start..items.end.min(start + step)).map(item).collect::<Vec<u64>>();
    let batches = items.clone().step_by(step as usize).map(|start| ask(&batch(start)));
    batches.map(|answers| Ok(answers?.into_iter().map(u64::from).sum::<u64>())).sum()
}

/// koel in memory, on a number of threads.
struct Memory(ConcurrentCuckooFilter<StableHash>, u64);

impl Set for Memory {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        count_on(self.1, items, |hash| Ok(self.0.insert_if_absent(&hash)?))
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        count_on(self.1, items, |hash| Ok(self.0.contains(&hash)))
    }
}

/// koel with its journal, on several threads or in batches.
struct Koel {
    filter: DurableFilter,
    threads: u64,
    step: u64,
}

impl Set for Koel {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let filter = &self.filter;
        if self.step > 1 {
            return count_many(items, self.step, |hashes| {
                let answers = filter.insert_if_absent_many(hashes)?.into_iter();
                Ok(answers.collect::<std::result::Result<_, _>>()?)
            });
        }
        count_on(self.threads, items, |hash| Ok(filter.insert_if_absent(&hash)?))
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let filter = &self.filter;
        if self.step > 1 {
            return count_many(items, self.step, |hashes| Ok(filter.contains_many(hashes)));
        }
        count_on(self.threads, items, |hash| Ok(filter.contains(&hash)))
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.filter.checkpoint()?)
    }
}

/// A table of SQLite whose key is the hash, in WAL mode.
struct Table {
    connection: Connection,
    /// How many adds a transaction has. One has no transaction around it.
    batch: u64,
    /// How many adds the present transaction has.
    begun: u64,
}

impl Set for Table {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        let mut insert = self.connection.prepare_cached("INSERT OR IGNORE INTO seen VALUES (?)")?;
        count(items, |hash| {
            if self.batch > 1 && self.begun == 0 {
                self.connection.prepare_cached("BEGIN")?.execute(())?;
            }
            let new = insert.execute([hash.cast_signed()])?;
            self.begun = (self.begun + 1) % self.batch;
            if self.batch > 1 && self.begun == 0 {
                self.connection.prepare_cached("COMMIT")?.execute(())?;
            }
            Ok(new > 0)
        })
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        let mut select = self.connection.prepare_cached("SELECT 1 FROM seen WHERE hash = ?")?;
        count(items, |hash| Ok(select.exists([hash.cast_signed()])?))
    }
}

/// A log-structured store whose keys are the hashes.
struct Store {
    database: Database,
    seen: Keyspace,
    syncs: bool,
}

impl Set for Store {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        count(items, |hash| {
            let key = hash.to_be_bytes();
            let is_new = !self.seen.contains_key(key)?;
            if is_new {
                self.seen.insert(key, [])?;
                if self.syncs {
                    self.database.persist(PersistMode::SyncData)?;
                }
            }
            Ok(is_new)
        })
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        count(items, |hash| Ok(self.seen.contains_key(hash.to_be_bytes())?))
    }
}

/// Returns the program of Redis, if `KOEL_SERVERS` says where it is.
pub fn redis_server() -> Option<PathBuf> {
    let program = Path::new(&std::env::var_os("KOEL_SERVERS")?).join("redis-server");
    program.is_file().then_some(program)
}

/// A set in a Redis server with an append-only file, which is synced every second.
struct Server {
    process: Child,
    connection: redis::Connection,
    /// How many commands go before their answers are read.
    pipeline: u64,
}

impl Server {
    fn start(folder: &Path, pipeline: u64) -> Result<Server> {
        let socket = folder.join("socket");
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(redis_server().ok_or("no redis-server")?);
        command.args(["--port", "0", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", "everysec"]);
        command.arg("--dir").arg(folder).arg("--unixsocket").arg(&socket);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let client = redis::Client::open(format!("unix://{}", socket.display()))?;
        let connection = loop {
            let mut connection = client.get_connection();
            // It answers with an error while it reads its file.
            let first = redis::cmd("SISMEMBER").arg("seen").arg("").to_owned();
            let answered = connection.as_mut().map(|it| first.exec(it));
            if let Ok(Ok(())) = answered {
                break connection?;
            }
            if let Some(status) = process.try_wait()? {
                return Err(format!("the server ended with {status}").into());
            }
            sleep(Duration::from_micros(200));
        };
        Ok(Server { process, connection, pipeline })
    }

    /// Sends a command for each item, and adds up the answers.
    fn ask(&mut self, command: &str, items: Range<u64>) -> Result<u64> {
        let mut sum = 0;
        for start in items.clone().step_by(self.pipeline as usize) {
            let mut commands = redis::pipe();
            for number in start..items.end.min(start + self.pipeline) {
                commands.cmd(command).arg("seen").arg(&item(number).to_le_bytes());
            }
            sum += commands.query::<Vec<u64>>(&mut self.connection)?.iter().sum::<u64>();
        }
        Ok(sum)
    }
}

impl Set for Server {
    fn add(&mut self, items: Range<u64>) -> Result<u64> {
        self.ask("SADD", items)
    }

    fn look_up(&mut self, items: Range<u64>) -> Result<u64> {
        self.ask("SISMEMBER", items)
    }

    fn process(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It writes its file, and ends without an answer.
        let _ = redis::cmd("SHUTDOWN").exec(&mut self.connection);
        let _ = self.process.wait();
    }
}

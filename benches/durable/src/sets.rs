//! The sets that are measured.

pub mod fjall;
pub mod koel;
pub mod redis;
pub mod sqlite;

use crate::set::{Group, Kind, Maker};

const SYNCED: &str = "nothing";
const SECOND: &str = "changes since the last sync: of a second or so";
const NEVER: &str = "changes that the system has not written: mostly of half a minute";

const KOEL: Kind = Kind {
    name: "",
    label: "",
    group: Group::Unwritten,
    threads: 1,
    of: 1,
    step: 1,
    false_positives: 2,
    maker: Maker::Here(koel::never),
    power: NEVER,
};

const EXACT: Kind = Kind { false_positives: 0, ..KOEL };

const WAL: &str =
    "commits since the last checkpoint, which is made every 1,000 pages; the file stays sound";
const DAMAGE: &str = "the file may be damaged";

pub const KINDS: &[Kind] = &[
    Kind {
        name: "koel-memory",
        label: "koel in memory",
        group: Group::Everything,
        maker: Maker::Here(koel::memory),
        power: "everything",
        ..KOEL
    },
    Kind {
        name: "koel-memory-2",
        label: "koel in memory, 2 threads",
        group: Group::Everything,
        threads: 2,
        maker: Maker::Here(koel::memory),
        power: "everything",
        ..KOEL
    },
    Kind { name: "koel-never", label: "koel, not synced", ..KOEL },
    Kind { name: "koel-never-2", label: "koel, not synced, 2 threads", threads: 2, ..KOEL },
    Kind {
        name: "koel-second",
        label: "koel, synced every second",
        group: Group::Second,
        maker: Maker::Here(koel::every_second),
        power: SECOND,
        ..KOEL
    },
    Kind {
        name: "koel-second-2",
        label: "koel, synced every second, 2 threads",
        group: Group::Second,
        threads: 2,
        maker: Maker::Here(koel::every_second),
        power: SECOND,
        ..KOEL
    },
    Kind {
        name: "koel-second-batches",
        label: "koel, synced every second, 1,000 a call",
        group: Group::Second,
        step: 1_000,
        maker: Maker::Here(koel::every_second),
        power: SECOND,
        ..KOEL
    },
    Kind {
        name: "koel-each",
        label: "koel, synced for each call",
        group: Group::Nothing,
        of: 500,
        maker: Maker::Here(koel::each),
        power: SYNCED,
        ..KOEL
    },
    Kind {
        name: "koel-each-2",
        label: "koel, synced for each call, 2 threads",
        group: Group::Nothing,
        of: 500,
        threads: 2,
        maker: Maker::Here(koel::each),
        power: SYNCED,
        ..KOEL
    },
    Kind {
        name: "koel-each-batches",
        label: "koel, synced for each call, 1,000 a call",
        group: Group::Nothing,
        step: 1_000,
        maker: Maker::Here(koel::each),
        power: SYNCED,
        ..KOEL
    },
    Kind {
        name: "sqlite-normal",
        label: "SQLite, NORMAL",
        of: 4,
        maker: Maker::Here(sqlite::normal),
        power: WAL,
        ..EXACT
    },
    Kind {
        name: "sqlite-normal-batches",
        label: "SQLite, NORMAL, 1,000 a transaction",
        maker: Maker::Here(sqlite::normal),
        power: WAL,
        ..EXACT
    },
    Kind {
        name: "sqlite-off",
        label: "SQLite, OFF",
        group: Group::Corrupt,
        of: 4,
        maker: Maker::Here(sqlite::off),
        power: DAMAGE,
        ..EXACT
    },
    Kind {
        name: "sqlite-off-batches",
        label: "SQLite, OFF, 1,000 a transaction",
        group: Group::Corrupt,
        maker: Maker::Here(sqlite::off),
        power: DAMAGE,
        ..EXACT
    },
    Kind { name: "fjall", label: "fjall", maker: Maker::Here(fjall::default), ..EXACT },
    Kind {
        name: "fjall-each",
        label: "fjall, persisted for each add",
        group: Group::Nothing,
        of: 500,
        maker: Maker::Here(fjall::each),
        power: SYNCED,
        ..EXACT
    },
    Kind {
        name: "redis",
        label: "Redis, synced every second",
        group: Group::Second,
        of: 10,
        maker: Maker::Here(redis::open),
        power: SECOND,
        ..EXACT
    },
    Kind {
        name: "redis-pipelined",
        label: "Redis, synced every second, 1,000 in a pipeline",
        group: Group::Second,
        step: 1_000,
        maker: Maker::Here(redis::open),
        power: SECOND,
        ..EXACT
    },
    Kind {
        name: "scrapy",
        label: "Scrapy's RFPDupeFilter",
        maker: Maker::Scrapy,
        power: "what Python and the system have not written",
        ..EXACT
    },
];

pub fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

//! One set over many keys of a cluster, that tells which items are new.
//!
//! A filter is one key, and a key is on one node. So the set is cut into partitions: filters with the names
//! `seen:{00}`, `seen:{01}`…, which the cluster spreads over its nodes. What an item's partition is, clients
//! agree on among themselves: the CRC-32 of the item modulo the number of partitions. Any hash would do;
//! this one is in Python's standard library, and short enough to write out anywhere. (It need not be the
//! cluster's own hash, of keys.) The number of partitions is chosen once, larger than there will ever be
//! nodes, for it cannot change later.
//!
//! # A lost reply
//!
//! `CF.INSERTNX` adds an item and tells whether it was new, once. If the reply is lost (the connection
//! breaks, the node dies, it takes too long) then nobody knows whether the item was added, and the same
//! command again may answer "seen" for an item that no one has worked on. So such an item is *in doubt*, and
//! counts as new; and it is inserted again, so that it is in. Hence no item is ever lost, and one in doubt
//! may be worked on twice.
//!
//! That is why the client must not repeat commands by itself, as most do when told nothing: see `retries(0)`.
//!
//! Three things are beyond this file. The cluster copies to its replicas after it has answered, so a primary
//! that dies may take its last inserts with it, and those items are new once more. A filter answers "seen"
//! for a few items that are new, at the rate that it was made for. And a worker that dies with new items in
//! its hands has lost them, unless it wrote them down.

use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{RedisError, RedisResult};
use std::fmt;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// What all clients of a set have to agree on, and how long this one waits.
#[derive(Clone, Debug)]
pub struct Options {
    pub name: String,
    pub partitions: u32,
    /// The items that the whole set is made for. It grows beyond that.
    pub capacity: u64,
    pub error_rate: f64,
    /// After how long a reply is given up as lost.
    pub timeout: Duration,
    /// After how long the cluster is given up. It takes some seconds to elect a new primary.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            name: "seen".into(),
            partitions: 64,
            capacity: 1_000_000,
            error_rate: 1e-6,
            timeout: Duration::from_secs(2),
            patience: Duration::from_secs(30),
        }
    }
}

/// A set in a cluster.
pub struct Seen {
    client: ClusterClient,
    connection: ClusterConnection,
    options: Options,
}

/// Those of a batch that are in one partition, by their positions.
struct Share {
    partition: u32,
    positions: Vec<usize>,
}

impl Seen {
    /// Connects to a cluster by some of its nodes (`redis://host:port`). Makes the set, if it is not there.
    pub async fn open(nodes: Vec<String>, options: Options) -> Result<Self, Error> {
        let client = ClusterClient::builder(nodes)
            // What to do about a lost reply is not for the client to decide.
            .retries(0)
            .connection_timeout(options.timeout)
            .response_timeout(options.timeout)
            .build();
        let client = client.map_err(|error| Error::of(error, Vec::new()))?;
        let mut patience = Patience::new(options.patience);
        loop {
            match prepare(&client, &options).await {
                Ok(connection) => return Ok(Seen { client, connection, options }),
                Err(error) if Trouble::of(&error) == Trouble::Final || !patience.wait().await => {
                    return Err(Error::of(error, Vec::new()));
                }
                Err(_) => {}
            }
        }
    }

    /// Adds items, each of which is in the batch once. Tells, in their order, which are new.
    pub async fn insert_new<T: AsRef<[u8]>>(&mut self, items: &[T]) -> Result<Vec<bool>, Error> {
        let mut answers = vec![None; items.len()];
        let mut shares = self.shares(items);
        let mut patience = Patience::new(self.options.patience);
        loop {
            let (mut again, mut trouble, mut last) = (Vec::new(), None, None);
            for (share, reply) in self.send(shares, items).await {
                match reply {
                    Ok(replies) => {
                        for (position, reply) in share.positions.into_iter().zip(replies) {
                            match reply {
                                // What was in doubt stays new, whatever is answered now.
                                0 | 1 => _ = answers[position].get_or_insert(reply == 1),
                                _ => trouble = Some(None),
                            }
                        }
                    }
                    Err(error) => match Trouble::of(&error) {
                        Trouble::Final => trouble = Some(Some(error)),
                        kind => {
                            if kind == Trouble::Doubt {
                                share.positions.iter().for_each(|at| answers[*at] = Some(true));
                            }
                            again.push(share);
                            last = Some(error);
                        }
                    },
                }
            }
            if let Some(error) = trouble {
                return Err(Error { error, answers });
            }
            let Some(error) = last else { break };
            if !patience.wait().await {
                return Err(Error::of(error, answers));
            }
            // With a view of the cluster that is new, whichever way the old one broke.
            if let Ok(connection) = prepare(&self.client, &self.options).await {
                self.connection = connection;
            }
            shares = again;
        }
        Ok(answers.into_iter().map(|answer| answer.expect("each share was answered")).collect())
    }

    fn shares<T: AsRef<[u8]>>(&self, items: &[T]) -> Vec<Share> {
        let mut shares: Vec<_> = (0..self.options.partitions)
            .map(|partition| Share { partition, positions: Vec::new() })
            .collect();
        for (position, item) in items.iter().enumerate() {
            let partition = crc32(item.as_ref()) % self.options.partitions;
            shares[partition as usize].positions.push(position);
        }
        shares.retain(|share| !share.positions.is_empty());
        shares
    }

    /// Sends the shares all at once. A connection to a node writes what comes without awaiting replies, so this is a
    /// pipeline to each node, and yet each command fails by itself.
    async fn send<T: AsRef<[u8]>>(
        &self,
        shares: Vec<Share>,
        items: &[T],
    ) -> Vec<(Share, RedisResult<Vec<i64>>)> {
        let mut commands = JoinSet::new();
        for share in shares {
            // Keys are made by `prepare` alone, so that they have the rate that was chosen.
            let mut command = redis::cmd("CF.INSERTNX");
            command.arg(key(&self.options, share.partition)).arg("NOCREATE").arg("ITEMS");
            share.positions.iter().for_each(|at| _ = command.arg(items[*at].as_ref()));
            let mut connection = self.connection.clone();
            commands.spawn(async move { (share, command.query_async(&mut connection).await) });
        }
        commands.join_all().await
    }
}

/// Connects, and makes the partitions that are not there. Whoever comes first makes them.
async fn prepare(client: &ClusterClient, options: &Options) -> RedisResult<ClusterConnection> {
    let connection = client.get_async_connection().await?;
    let mut commands = JoinSet::new();
    for partition in 0..options.partitions {
        let mut command = redis::cmd("CF.RESERVE");
        command.arg(key(options, partition));
        command.arg(options.capacity.div_ceil(options.partitions.into()).max(4));
        command.arg("ERROR_RATE").arg(options.error_rate);
        let mut connection = connection.clone();
        commands.spawn(async move { command.query_async::<()>(&mut connection).await });
    }
    for reply in commands.join_all().await {
        match reply {
            Err(error) if error.detail() == Some("item exists") => {}
            reply => reply?,
        }
    }
    Ok(connection)
}

/// The key of a partition. The cluster looks at what is between the braces only.
fn key(options: &Options, partition: u32) -> String {
    format!("{}:{{{partition:02}}}", options.name)
}

/// The checksum of zlib, gzip and PNG.
pub fn crc32(bytes: &[u8]) -> u32 {
    let by_bit = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), by_bit))
}

/// What an error means for the items of its command.
#[derive(PartialEq)]
enum Trouble {
    /// Nothing was added, and later it will be.
    Refused,
    /// Nobody knows.
    Doubt,
    /// Nothing was added, nor will be.
    Final,
}

impl Trouble {
    fn of(error: &RedisError) -> Self {
        match error.code() {
            // The slot moves, or has no primary, or has one that is not ready.
            Some("MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN") => Trouble::Refused,
            Some("LOADING" | "READONLY" | "NOREPLICAS") => Trouble::Refused,
            // The primary died before its replica heard of the key.
            Some("ERR") if error.detail() == Some("not found") => Trouble::Refused,
            Some(_) => Trouble::Final,
            None => Trouble::Doubt,
        }
    }
}

/// Waits longer each time, and not for ever.
struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Patience { end: Instant::now() + limit, pause: Duration::from_millis(20) }
    }

    /// Whether it goes on.
    async fn wait(&mut self) -> bool {
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(Duration::from_secs(1));
        Instant::now() < self.end
    }
}

/// A batch that was not done, or not all of it.
#[derive(Debug)]
pub struct Error {
    /// What the cluster said, unless the set is full.
    error: Option<RedisError>,
    /// What is known of each item: whether it is new, as ever, or nothing if it was not added. Those that are new are
    /// yours to work on: nobody will be told of them again.
    pub answers: Vec<Option<bool>>,
}

impl Error {
    fn of(error: RedisError, answers: Vec<Option<bool>>) -> Self {
        Error { error: Some(error), answers }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            None => f.write_str("the set is full: allow its filters more memory"),
            Some(error) => write!(f, "the cluster does not answer as it should: {error}"),
        }
    }
}

impl std::error::Error for Error {}

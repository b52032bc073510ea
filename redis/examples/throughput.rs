//! How fast one client fills a set, by its number of partitions; and whose processor it takes.
//!
//! ```sh
//! cargo run --release -p koel-redis --example throughput -- 127.0.0.1:7000,127.0.0.1:7001,127.0.0.1:7002
//! ```
//!
//! Name all primaries: they are asked how much they have worked.

#[allow(dead_code, reason = "an error ends this")]
mod seen;

use seen::{Options, Seen};
use std::time::{Duration, Instant, UNIX_EPOCH};

const BATCH: u64 = 20_000;
const ITEMS: u64 = 2_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let nodes = std::env::args().nth(1).ok_or("host:port,… is missing")?;
    let nodes: Vec<_> = nodes.split(',').map(|node| format!("redis://{node}")).collect();
    println!("| partitions | items a second | client, µs an item | primaries, µs an item |");
    println!("|---|---|---|---|");
    for partitions in [1, 16, 64, 256, 1_024] {
        let name = format!("throughput-{}", UNIX_EPOCH.elapsed()?.as_millis());
        let timeout = Duration::from_secs(10);
        let options = Options { name, partitions, capacity: ITEMS, timeout, ..Options::default() };
        let mut seen = Seen::open(nodes.clone(), options).await?;
        let (client, servers, start) = (own_time()?, server_time(&nodes).await?, Instant::now());
        for batch in 0..ITEMS / BATCH {
            let numbers = batch * BATCH..(batch + 1) * BATCH;
            let items: Vec<_> = numbers.map(|n| format!("https://example.com/page/{n}")).collect();
            seen.insert_new(&items).await?;
        }
        let rate = ITEMS as f64 / start.elapsed().as_secs_f64();
        let an_item = |seconds: f64| seconds * 1e6 / ITEMS as f64;
        let client = an_item(own_time()? - client);
        let servers = an_item(server_time(&nodes).await? - servers);
        println!("| {partitions} | {rate:.0} | {client:.2} | {servers:.2} |");
    }
    Ok(())
}

/// The processor time of this process, in seconds: as Linux tells it, in hundredths.
fn own_time() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse::<f64>).sum::<std::result::Result<f64, _>>()?;
    Ok(ticks / 100.0)
}

/// The processor time of the primaries among these nodes.
async fn server_time(nodes: &[String]) -> Result<f64> {
    let mut time = 0.0;
    for node in nodes {
        let client = redis::Client::open(node.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let info: redis::InfoDict = redis::cmd("INFO").query_async(&mut connection).await?;
        if info.get::<String>("role").as_deref() == Some("master") {
            time += info.get::<f64>("used_cpu_user").ok_or("no time")?;
            time += info.get::<f64>("used_cpu_sys").ok_or("no time")?;
        }
    }
    Ok(time)
}

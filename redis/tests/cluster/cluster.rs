//! A cluster of three primaries with a replica each.

use crate::client::{Client, Reply};
use crate::server::{Kind, Server, await_that};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

pub const PRIMARIES: usize = 3;

/// Its nodes: the primaries, and then their replicas in the same order.
pub struct Cluster {
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts one that takes a node for dead after ten seconds, lest a busy machine do that.
    pub fn start(kind: Kind) -> Self {
        Self::with_node_timeout(kind, 10_000)
    }

    /// Starts one with another timeout, in milliseconds.
    pub fn with_node_timeout(kind: Kind, timeout: u32) -> Self {
        let timeout = timeout.to_string();
        let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", &timeout];
        let start = |_| Server::at(kind, free_port(), &settings);
        let cluster = Cluster { nodes: (0..2 * PRIMARIES).map(start).collect() };
        let mut clients: Vec<_> = cluster.nodes.iter().map(Server::client).collect();
        for (at, client) in clients.iter_mut().enumerate() {
            client.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", at + 1)).ok();
            if at < PRIMARIES {
                let slots = |at| at * 16_384 / PRIMARIES;
                let (first, last) = (slots(at), slots(at + 1) - 1);
                client.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")).ok();
            }
        }
        for node in &cluster.nodes[1..] {
            clients[0].ask(&format!("CLUSTER MEET 127.0.0.1 {}", node.port)).ok();
        }
        for at in PRIMARIES..2 * PRIMARIES {
            let primary = clients[at - PRIMARIES].ask("CLUSTER MYID").text();
            await_that("it knows its primary", || {
                clients[at].ask("CLUSTER NODES").text().contains(&primary)
            });
            // Until the two have shaken hands, the name stands for nobody.
            let replicate = format!("CLUSTER REPLICATE {primary}");
            await_that("it follows", || clients[at].ask(&replicate) == Reply::Simple("OK".into()));
        }
        for client in &mut clients {
            await_that("the cluster is complete", || is_complete(client));
        }
        for replica in &mut clients[PRIMARIES..] {
            await_that("the replicas are there", || replica.follows());
        }
        cluster
    }

    /// Some of its nodes, as clients name them: `host:port,…`.
    pub fn addresses(&self) -> String {
        let nodes = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
        nodes.collect::<Vec<_>>().join(",")
    }
}

/// Whether a node knows that all slots are served, and who follows whom.
fn is_complete(client: &mut Client) -> bool {
    let nodes = client.ask("CLUSTER NODES").text();
    client.ask("CLUSTER INFO").text().contains("cluster_state:ok")
        && nodes.lines().filter(|line| line.contains("slave")).count() == PRIMARIES
        && nodes.lines().filter(|line| line.contains("master")).count() == PRIMARIES
}

/// A port where one can listen, and at the port of the cluster's bus that goes with it, too. Both are below those that
/// systems give to clients.
fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Not where another run of the tests begins.
    let first = std::process::id() as u16 % 10_000;
    loop {
        let port = 11_000 + (first + TRIED.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

//! The module in a cluster, and under clients that are in use: the recipe of `redis/examples`, and redis-py.

mod cluster;
mod crawl;
mod doubt;
mod moving;
mod python;

// What the tests of one server have. Not all of it is of use here.
#[allow(dead_code)]
#[path = "../servers/client.rs"]
mod client;
#[path = "../../examples/seen/mod.rs"]
mod seen;
#[allow(dead_code)]
#[path = "../servers/server.rs"]
mod server;

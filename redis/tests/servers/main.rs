//! The module in real servers: each test runs in Redis and in Valkey, and says so if one is not there.

mod access;
mod citizen;
mod client;
mod dumps;
mod files;
mod interface;
mod kills;
mod limits;
mod names;
mod readme;
mod replicas;
mod replies;
mod round;
mod server;
mod sets;
mod time;

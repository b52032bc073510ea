//! Processes that are killed, and machines whose power fails.
#![cfg(target_os = "linux")]

mod crawler;
mod disk;
mod history;
mod kills;
mod power;

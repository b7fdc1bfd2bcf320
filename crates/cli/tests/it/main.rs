//! The real binary, run as its users run it: own folders, scripted models, no network, no terminal.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod answers;
mod auth;
mod budget;
mod call;
mod config;
mod confirmation;
#[cfg(feature = "faults")]
mod crash;
mod database;
mod db;
mod doubt;
mod eval;
mod harness;
mod input;
mod isolation;
mod log;
mod mcp;
mod mcp_servers;
mod operations;
mod replicas;
#[cfg(feature = "restate")]
mod restate;
#[cfg(feature = "restate")]
#[path = "../../../restate/tests/it/restate.rs"]
mod restate_server;
mod scenarios;
mod serve;
#[path = "../../../store/tests/it/server.rs"]
mod server;
mod service;
mod sessions;
mod tasks;
mod vendor;

//! The real binary, run as its users run it: own folders, scripted models, no network, no terminal.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod access;
mod answers;
mod attached;
mod auth;
#[cfg(all(unix, feature = "gemini", feature = "openai"))]
mod begun;
mod bounded;
mod budget;
mod bug_report;
mod call;
mod config;
mod confirmation;
#[cfg(feature = "faults")]
mod crash;
mod database;
mod db;
mod doctor;
mod doubt;
mod eval;
mod eval_results;
mod going_on;
#[path = "../../src/terminal/render/fuzz/grammar.rs"]
mod grammar;
mod harness;
#[cfg(unix)]
mod hostile_folder;
mod hostile_path;
#[cfg(unix)]
mod init;
mod input;
mod isolation;
mod keys;
mod log;
#[cfg(feature = "gemini")]
mod logged;
mod manual;
mod mcp;
mod mcp_servers;
mod memory;
#[cfg(unix)]
#[path = "../../../../tests/not_run.rs"]
mod not_run;
mod operations;
mod operator;
#[cfg(unix)]
mod policy;
mod prompts;
#[cfg(unix)]
mod read_only;
#[cfg(unix)]
mod rendering;
mod replicas;
#[cfg(feature = "restate")]
mod restate;
#[cfg(feature = "restate")]
#[path = "../../../restate/tests/it/restate.rs"]
mod restate_server;
mod rolling;
mod scenarios;
mod serve;
mod served_memory;
#[path = "../../../store/tests/it/server.rs"]
mod server;
mod service;
#[cfg(unix)]
mod sessions;
#[path = "../../../../tests/size.rs"]
mod size;
#[cfg(target_os = "linux")]
mod soak;
mod tasks;
#[cfg(unix)]
mod terminal;
mod turns;
mod vendor;

//! Both directions over real pipes and sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod client;
mod server;

//! A Restate that signs its calls, and workers that take no others.

use std::fs;
use std::time::Duration;

use adjutant_core::{ConversationId, InputBody, InputId, UserId};
use adjutant_restate::WorkerError;
use adjutant_runtime::RunContext;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use uuid::Uuid;

use crate::bench::Bench;
use crate::registration::Here;
use crate::restate::{Restate, free_port};

const SEED: [u8; 32] = [7; 32];

impl Restate {
    /// Signs its calls with a key pair made of this seed.
    pub(crate) fn start_signing(seed: [u8; 32]) -> Self {
        // Before the seed, in DER: a private key of version 1 and of algorithm 1.3.101.112. Source:
        // RFC 8410, section 7.
        let begin = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
        let key = BASE64_STANDARD.encode([&begin[..], &seed].concat());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let setting = "[worker.invoker]\nrequest-identity-private-key-pem-file = \"key.pem\"";
        Self::start_with(setting, |folder| {
            fs::write(folder.join("key.pem"), pem).unwrap()
        })
    }
}

/// Returns the public key of a seed, as an address has it.
fn key_of(seed: [u8; 32]) -> String {
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    format!(
        "&key=publickeyv1_{}",
        bs58::encode(pair.public_key()).into_string()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_restate_signs_is_taken() {
    // A key that is being changed: the old one and the new one are taken.
    let keys = key_of([8; 32]) + &key_of(SEED);
    let bench = Bench::of(
        Restate::start_signing(SEED),
        &keys,
        Duration::from_secs(3600),
    )
    .await;
    let _worker = bench.start(None);
    let mut context = RunContext {
        conversation: ConversationId(Uuid::now_v7()),
        ..RunContext::new(UserId::local())
    };
    let asked = bench.front.run_input(
        &mut context,
        Some(InputId::new("once").unwrap()),
        InputBody::message("hello"),
    );
    assert_eq!(asked.await.unwrap().content, "Hi.");
    // By Restate, not by whoever asked.
    bench.restate.wait_for_ends(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_with_another_key_or_not_at_all_is_turned_away() {
    for (restate, why) in [
        (
            Restate::start_signing([8; 32]),
            "it is signed with another key",
        ),
        (Restate::start(), "it is not signed"),
    ] {
        let mut worker = Here::start(&(restate.address(free_port()) + &key_of(SEED))).await;
        let said = worker.said.recv().await.unwrap();
        assert_eq!(said, WorkerError::Refused(why.to_owned()));
        assert_eq!(restate.known(), None);
    }
}

//! Streams cut into chunks and damaged on the way, for the tests of every decoder.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use crate::decode::StreamDecoder;

/// The deltas that a decoder gave for some bytes, and the answer at the end.
pub(crate) type Outcome = (Vec<Delta>, Result<GenerateResponse, ModelError>);

/// Bytes that have a meaning in vendors' streams, to be put in the wrong place.
const FRAGMENTS: [&[u8]; 12] = [
    b"\n\n",
    b"\r",
    b"data: ",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"null",
    b"-1",
    b"\\u",
    b"\xff",
    b": 1e999, ",
];

/// Replaces bytes of `stream` in random places and cuts it in random places; checks that nothing
/// panics and that the cuts make no difference.
pub(crate) fn check_damaged(stream: &[u8], decoder: impl Fn() -> Box<dyn StreamDecoder>) {
    let piece = prop_oneof![
        proptest::sample::select(&FRAGMENTS[..]).prop_map(<[u8]>::to_vec),
        vec(any::<u8>(), 0..4),
    ];
    let damage = (any::<Index>(), 0_usize..24, piece);
    let tries = (vec(damage, 0..6), vec(1_usize..30, 0..60));
    TestRunner::default()
        .run(&tries, |(damages, cuts)| {
            let mut bytes = stream.to_vec();
            for (at, gone, piece) in damages {
                let at = at.index(bytes.len() + 1);
                let end = (at + gone).min(bytes.len());
                bytes.splice(at..end, piece);
            }
            prop_assert_eq!(
                decode_chunks(decoder(), &bytes, &cuts),
                decode_chunks(decoder(), &bytes, &[])
            );
            Ok(())
        })
        .unwrap();
}

/// Decodes the bytes, handed over in chunks of these sizes and the rest in one.
pub(crate) fn decode_chunks(
    mut decoder: Box<dyn StreamDecoder>,
    bytes: &[u8],
    sizes: &[usize],
) -> Outcome {
    let mut deltas = VecDeque::new();
    let mut rest = bytes;
    for size in sizes.iter().copied().chain([usize::MAX]) {
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        if let Err(error) = decoder.push(piece, &mut deltas) {
            return (deltas.into(), Err(error));
        }
        rest = behind;
    }
    let end = decoder.finish(&mut deltas);
    (deltas.into(), end)
}

/// Decodes the bytes, handed over in chunks of one size.
pub(crate) fn decode_in_chunks(
    decoder: Box<dyn StreamDecoder>,
    bytes: &[u8],
    size: usize,
) -> Outcome {
    decode_chunks(decoder, bytes, &vec![size; bytes.len() / size])
}

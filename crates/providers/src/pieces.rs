//! Streams in pieces, and damaged on the way, for the tests of every decoder.

use std::collections::VecDeque;

use adjutant_core::{Delta, GenerateResponse, ModelError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use crate::decode::StreamDecoder;

/// What came of some bytes: the pieces, and the end.
pub(crate) type Outcome = (Vec<Delta>, Result<GenerateResponse, ModelError>);

/// Pieces of what vendors send, in the wrong place.
const PIECES: [&[u8]; 12] = [
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

/// Bytes of `stream` are replaced in random places, and it is cut in random places: nothing panics,
/// and the cuts make no difference.
pub(crate) fn check_damaged(stream: &[u8], decoder: impl Fn() -> Box<dyn StreamDecoder>) {
    let piece = prop_oneof![
        proptest::sample::select(&PIECES[..]).prop_map(<[u8]>::to_vec),
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
            prop_assert_eq!(read(decoder(), &bytes, &cuts), read(decoder(), &bytes, &[]));
            Ok(())
        })
        .unwrap();
}

/// What comes of the bytes, handed over in pieces of these sizes and the rest in one.
pub(crate) fn read(mut decoder: Box<dyn StreamDecoder>, bytes: &[u8], sizes: &[usize]) -> Outcome {
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

/// What comes of the bytes, handed over in pieces of this size.
pub(crate) fn read_by(decoder: Box<dyn StreamDecoder>, bytes: &[u8], size: usize) -> Outcome {
    read(decoder, bytes, &vec![size; bytes.len() / size])
}

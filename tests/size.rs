//! For tests with many cases: a run takes a sample of them unless it is asked for all
//! (`cargo xtask test long`).
#![allow(dead_code, reason = "the tests of each crate use a part of it")]

/// Says whether `ADJUTANT_TEST_SIZE` is `long`: all cases, not a sample.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests says by a variable how much they do"
)]
pub(crate) fn is_long() -> bool {
    std::env::var("ADJUTANT_TEST_SIZE").is_ok_and(|size| size == "long")
}

/// Gives the number of cases: all of them in a long run, else those of a sample.
pub(crate) fn cases<N>(all: N, sample: N) -> N {
    if is_long() { all } else { sample }
}

/// Says whether the case of this number is tried: each in a long run, else one of so many.
pub(crate) fn takes(number: u32, one_of: u32) -> bool {
    is_long() || number.is_multiple_of(one_of)
}

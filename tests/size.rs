//! Size of tests with many cases: a sample by default, all cases in a long run
//! (`cargo xtask test long`).
#![allow(
    dead_code,
    reason = "not every test crate that includes this file uses all of it"
)]

/// Returns true in a long run, where tests take all cases (`ADJUTANT_TEST_SIZE` is `long`).
#[expect(
    clippy::disallowed_methods,
    reason = "`cargo xtask test` passes the size of the run in a variable"
)]
pub(crate) fn is_long() -> bool {
    std::env::var("ADJUTANT_TEST_SIZE").is_ok_and(|size| size == "long")
}

/// Returns `all` in a long run, else `sample`: the number of cases, or a range of them.
pub(crate) fn cases<N>(all: N, sample: N) -> N {
    if is_long() { all } else { sample }
}

/// Returns true if the case with this number belongs to the run: every case in a long run, else
/// every `one_of`-th.
pub(crate) fn takes(number: u32, one_of: u32) -> bool {
    is_long() || number.is_multiple_of(one_of)
}

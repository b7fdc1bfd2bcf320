//! How many threads the model in this process uses.

/// What the engine and the thread pool below it read, once, before the first request.
const VARIABLES: &[&str] = &["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Sets what is not set to what is fastest on the machine as it is now. Called first in `main`: the
/// environment may be changed only while nobody else reads it.
#[expect(
    unsafe_code,
    clippy::disallowed_methods,
    reason = "candle has no other way, and no other thread runs yet"
)]
pub(crate) fn choose() {
    let threads = adjutant_embedded::suggested_threads().to_string();
    for variable in VARIABLES {
        if std::env::var_os(variable).is_none() {
            // SAFETY: `main` calls this before it starts a runtime, so this thread is the only one.
            unsafe {
                std::env::set_var(variable, &threads);
            }
        }
    }
}

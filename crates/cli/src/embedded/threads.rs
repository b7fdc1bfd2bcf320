//! The number of threads of the embedded model.

/// Variables that the engine and its thread pool read once, before the first request.
const VARIABLES: &[&str] = &["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Sets the variables that are not set to the fastest value for the current load of the machine.
/// Called first in `main`, because changing the environment is safe only while no other thread
/// reads it.
#[expect(
    unsafe_code,
    clippy::disallowed_methods,
    reason = "candle reads only variables, and no other thread runs yet"
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

//! Computing a quantised language model on the processor.
//!
//! A family is one file here that implements [`Network`] and one arm in [`load`].

mod gguf;
mod kv;
mod linear;
mod mapped;
mod qwen2;

use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use gguf::GgufFile;
pub(crate) use kv::KvCache;

use crate::error::LoadError;

/// The families that work, as an error message lists them.
const SUPPORTED: &str = "qwen2";

/// What computing gives; the only failures are the engine's own.
pub(crate) type Computed<T> = candle_core::Result<T>;

/// One model's weights and how to compute them.
pub(crate) trait Network: Send + Sync {
    /// An empty attention memory for this model.
    fn new_cache(&self) -> Computed<KvCache>;

    /// Tokens the model was trained for, prompt and answer together.
    fn window_tokens(&self) -> usize;

    /// Reads `tokens` behind what `cache` remembers. With `wants_logits`, gives the scores of the
    /// token that follows the last one. `tokens` must not be empty.
    fn forward(
        &self,
        tokens: &[u32],
        cache: &mut KvCache,
        wants_logits: bool,
    ) -> Computed<Option<Vec<f32>>>;

    /// Independent pieces of work that make the first answer faster.
    fn pack_jobs(&self) -> Vec<Box<dyn Fn() -> Computed<()> + Send + Sync + '_>>;
}

/// Builds the network the file holds and packs its weights for this processor.
pub(crate) fn load(file: &GgufFile) -> Result<Box<dyn Network>, LoadError> {
    let network: Box<dyn Network> = match file.architecture()? {
        "qwen2" => Box::new(qwen2::Qwen2::load(file)?),
        other => {
            return Err(LoadError::UnsupportedArchitecture {
                path: file.path().to_owned(),
                found: other.to_owned(),
                supported: SUPPORTED,
            });
        }
    };
    pack(file, network.as_ref())?;
    Ok(network)
}

/// Runs the packing jobs on as many threads as the engine computes with, giving the file's pages
/// back on the way: each job copies its weights, and both copies at once would be the process's
/// peak.
fn pack(file: &GgufFile, network: &dyn Network) -> Result<(), LoadError> {
    const JOBS_PER_RELEASE: usize = 14;
    let jobs = network.pack_jobs();
    let next = AtomicUsize::new(0);
    let work = || -> Computed<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else {
                return Ok(());
            };
            job()?;
            if index.is_multiple_of(JOBS_PER_RELEASE) {
                file.release_pages();
            }
        }
    };
    let threads = candle_core::utils::get_num_threads().min(8);
    let outcome = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = helpers.into_iter().map(|helper| {
            helper
                .join()
                .unwrap_or_else(|_| Err(candle_core::Error::msg("packing the weights failed")))
        });
        joined.fold(own, |outcome, result| outcome.and(result))
    });
    file.release_pages();
    outcome.map_err(|error| file.damaged(format!("its weights cannot be packed: {error}")))
}

//! The inference engine: runs a quantised language model on the processor.
//!
//! A model family is a file here that implements [`Network`], and an arm in [`load`].

mod gguf; // GGUF model files
mod kv; // the KV cache
mod linear; // products with quantised matrices
mod mapped; // weights in the mapped file
mod network; // Network: what a model family implements
mod qwen2; // the Qwen2 family

use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use gguf::{GgufFile, whole_number};
pub(crate) use kv::KvCache;
pub(crate) use network::Network;

use crate::error::LoadError;

/// The supported families, for an error message.
const SUPPORTED: &str = "qwen2";

/// Loads the network of a file and packs its weights for this processor.
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

/// Runs the packing jobs on as many threads as the engine computes with. Releases the file's pages
/// in between: each job copies its weights, and both copies at once would be the peak of the
/// process's memory.
fn pack(file: &GgufFile, network: &dyn Network) -> Result<(), LoadError> {
    const JOBS_PER_RELEASE: usize = 14;
    let jobs = network.pack_jobs();
    let next = AtomicUsize::new(0);
    let work = || -> candle_core::Result<()> {
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

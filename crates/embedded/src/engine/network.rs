//! [`Network`]: the interface of a model family to the decoder.

use candle_core::Result;

use super::kv::KvCache;

/// The weights of a model, and the computation of its tokens.
pub(crate) trait Network: Send + Sync {
    /// Returns an empty KV cache for this model.
    fn new_cache(&self) -> Result<KvCache>;

    /// Returns the context window the model was trained for, in tokens of prompt and answer.
    fn window_tokens(&self) -> usize;

    /// Computes `tokens`, which follow those in `cache`; with `wants_logits`, returns the logits of
    /// the token after the last one. `tokens` must not be empty.
    fn forward(
        &self,
        tokens: &[u32],
        cache: &mut KvCache,
        wants_logits: bool,
    ) -> Result<Option<Vec<f32>>>;

    /// Returns independent jobs that pack the weights, which makes the first answer faster.
    fn pack_jobs(&self) -> Vec<Box<dyn Fn() -> Result<()> + Send + Sync + '_>>;
}

//! [`Network`]: the interface of a model family to the decoder.

use candle_core::{Result, Tensor};

use super::kv::KvCache;

/// The weights of a model, and the computation of its tokens.
pub(crate) trait Network: Send + Sync {
    /// Returns an empty KV cache for the first `blocks` blocks of this model.
    fn new_cache(&self, blocks: usize) -> Result<KvCache>;

    /// Returns the number of blocks.
    fn blocks(&self) -> usize;

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

    /// Computes `tokens`, which follow those in `cache`, through the blocks that the cache has, and
    /// returns the hidden states after the last of them, `(tokens, width)`. `tokens` must not be
    /// empty.
    fn hidden_states(&self, tokens: &[u32], cache: &mut KvCache) -> Result<Tensor>;

    /// Returns independent jobs that pack the weights, which makes the first answer faster.
    fn pack_jobs(&self) -> Vec<Box<dyn Fn() -> Result<()> + Send + Sync + '_>>;
}

//! The Qwen2 family: grouped-query attention with biases, rotary positions, gated feed-forward.

use candle_core::quantized::QTensor;
use candle_core::{Device, Tensor};
use candle_nn::attention::AttnMask;
use candle_nn::ops::{rms_norm, softmax_last_dim};
use candle_nn::rotary_emb::rope_thd;

use super::gguf::GgufFile;
use super::kv::KvCache;
use super::linear::Linear;
use super::network::Network;
use crate::error::LoadError;

/// The weights of one model of the family.
#[derive(Debug)]
pub(super) struct Qwen2 {
    embedding: QTensor,
    blocks: Vec<Block>,
    final_norm: Tensor,
    output: Linear,
    shape: Shape,
}

/// The dimensions of the architecture, from the file's metadata.
#[derive(Debug, Clone, Copy)]
struct Shape {
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    hidden: usize,
    inner: usize,
    vocabulary: usize,
    window: usize,
    norm_epsilon: f32,
    rope_base: f32,
}

/// Cosines and sines of rotary positions, `(positions, head_dim / 2)` each.
struct Rotations {
    cosines: Tensor,
    sines: Tensor,
}

#[derive(Debug)]
struct Block {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Qwen2 {
    pub(super) fn load(file: &GgufFile) -> Result<Self, LoadError> {
        let shape = Shape::read(file)?;
        let blocks: Vec<Block> = (0..shape.layers)
            .map(|index| Block::load(file, index, &shape))
            .collect::<Result<_, _>>()?;
        let embedding = file.table("token_embd.weight", shape.vocabulary, shape.hidden)?;
        // Small models share the embedding table between input and output, and have no tensor for
        // the output.
        let output = match file.has_tensor("output.weight") {
            true => Linear::load(file, "output", shape.hidden, shape.vocabulary)?,
            false => Linear::load(file, "token_embd", shape.hidden, shape.vocabulary)?,
        };
        let final_norm = file.floats("output_norm.weight", &[shape.hidden])?;
        Ok(Self {
            embedding,
            blocks,
            final_norm,
            output,
            shape,
        })
    }

    /// Computes the rotations for the positions `start..start + count`.
    fn rotations(&self, start: usize, count: usize) -> candle_core::Result<Rotations> {
        let half = self.shape.head_dim / 2;
        let step = |pair: usize| {
            self.shape
                .rope_base
                .powf(-((2 * pair) as f32) / self.shape.head_dim as f32)
        };
        let steps: Vec<f32> = (0..half).map(step).collect();
        let angles = (start..start + count)
            .flat_map(|position| steps.iter().map(move |s| position as f32 * s));
        let (cosines, sines): (Vec<f32>, Vec<f32>) =
            angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        let shape = (count, half);
        Ok(Rotations {
            cosines: Tensor::from_vec(cosines, shape, &Device::Cpu)?,
            sines: Tensor::from_vec(sines, shape, &Device::Cpu)?,
        })
    }
}

impl Network for Qwen2 {
    fn new_cache(&self, blocks: usize) -> candle_core::Result<KvCache> {
        KvCache::new(
            blocks.min(self.shape.layers),
            self.shape.kv_heads,
            self.shape.head_dim,
        )
    }

    fn blocks(&self) -> usize {
        self.shape.layers
    }

    fn window_tokens(&self) -> usize {
        self.shape.window
    }

    fn pack_jobs(&self) -> Vec<Box<dyn Fn() -> candle_core::Result<()> + Send + Sync + '_>> {
        let mut jobs: Vec<Box<dyn Fn() -> candle_core::Result<()> + Send + Sync>> = Vec::new();
        for block in &self.blocks {
            for linear in block.linears() {
                jobs.push(Box::new(|| linear.pack()));
            }
        }
        jobs
    }

    fn forward(
        &self,
        tokens: &[u32],
        cache: &mut KvCache,
        wants_logits: bool,
    ) -> candle_core::Result<Option<Vec<f32>>> {
        let hidden = self.hidden_states(tokens, cache)?;
        if !wants_logits {
            return Ok(None);
        }
        // Only the last row, because the product with the output matrix is the largest of all.
        let last = hidden.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        let last = rms_norm(&last, &self.final_norm, self.shape.norm_epsilon)?;
        Ok(Some(self.output.forward(&last)?.squeeze(0)?.to_vec1()?))
    }

    fn hidden_states(&self, tokens: &[u32], cache: &mut KvCache) -> candle_core::Result<Tensor> {
        let count = tokens.len();
        let start = cache.len();
        cache.reserve(count)?;
        let rotations = self.rotations(start, count)?;
        let mask = causal_mask(start, count)?;
        let mut hidden = self
            .embedding
            .embedding(&Tensor::new(tokens, &Device::Cpu)?)?;
        let blocks = self.blocks.iter().take(cache.layer_count());
        for (index, block) in blocks.enumerate() {
            hidden = block.forward(
                &hidden,
                &self.shape,
                &rotations,
                mask.as_ref(),
                cache,
                index,
            )?;
        }
        cache.advance(count);
        Ok(hidden)
    }
}

impl Block {
    fn load(file: &GgufFile, index: usize, shape: &Shape) -> Result<Self, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let (hidden, inner) = (shape.hidden, shape.inner);
        let (q_width, kv_width) = (
            shape.heads * shape.head_dim,
            shape.kv_heads * shape.head_dim,
        );
        Ok(Self {
            attention_norm: file.floats(&name("attn_norm.weight"), &[hidden])?,
            query: Linear::load(file, &name("attn_q"), hidden, q_width)?,
            key: Linear::load(file, &name("attn_k"), hidden, kv_width)?,
            value: Linear::load(file, &name("attn_v"), hidden, kv_width)?,
            attention_output: Linear::load(file, &name("attn_output"), q_width, hidden)?,
            feed_norm: file.floats(&name("ffn_norm.weight"), &[hidden])?,
            gate: Linear::load(file, &name("ffn_gate"), hidden, inner)?,
            up: Linear::load(file, &name("ffn_up"), hidden, inner)?,
            down: Linear::load(file, &name("ffn_down"), inner, hidden)?,
        })
    }

    fn linears(&self) -> [&Linear; 7] {
        [
            &self.query,
            &self.key,
            &self.value,
            &self.attention_output,
            &self.gate,
            &self.up,
            &self.down,
        ]
    }

    fn forward(
        &self,
        input: &Tensor,
        shape: &Shape,
        rotations: &Rotations,
        mask: Option<&Tensor>,
        cache: &KvCache,
        index: usize,
    ) -> candle_core::Result<Tensor> {
        let rows = input.dim(0)?;
        let normed = rms_norm(input, &self.attention_norm, shape.norm_epsilon)?;
        let [query, key] = Linear::forward_all([&self.query, &self.key], &normed)?;
        let value = self.value.forward(&normed)?;
        let query = rope_thd(
            &query.reshape((1, rows, shape.heads, shape.head_dim))?,
            &rotations.cosines,
            &rotations.sines,
        )?;
        let key = rope_thd(
            &key.reshape((1, rows, shape.kv_heads, shape.head_dim))?,
            &rotations.cosines,
            &rotations.sines,
        )?;
        let value = value.reshape((rows, shape.kv_heads, shape.head_dim))?;
        let (keys, values) = cache.extend(index, &key.squeeze(0)?, &value)?;
        let attended = attend(&query, &keys, &values, mask, shape)?;
        let hidden = (input + self.attention_output.forward(&attended)?)?;

        let normed = rms_norm(&hidden, &self.feed_norm, shape.norm_epsilon)?;
        let [gate, up] = Linear::forward_all([&self.gate, &self.up], &normed)?;
        let fed = self.down.forward(&(gate.silu()? * up)?)?;
        hidden + fed
    }
}

/// Computes scaled dot-product attention of `query` `(1, rows, heads, head_dim)` over all cached
/// positions, as `(rows, heads * head_dim)`. Neighbouring query heads share one key and value head.
fn attend(
    query: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    shape: &Shape,
) -> candle_core::Result<Tensor> {
    let (_, rows, heads, head_dim) = query.dims4()?;
    let seen = keys.dim(0)?;
    let scale = 1.0 / (head_dim as f64).sqrt();
    let Some(mask) = mask else {
        // A single row needs no mask, and candle's fused kernel is faster than three small
        // products.
        let (keys, values) = (keys.unsqueeze(0)?, values.unsqueeze(0)?);
        let output = candle_nn::attention::flash_attn::<f32>(
            query,
            &keys,
            &values,
            scale as f32,
            AttnMask::Causal {
                kv_offset: seen - rows,
            },
            None,
            None,
        )?;
        return output.transpose(1, 2)?.reshape((rows, heads * head_dim));
    };
    let shared = heads / shape.kv_heads;
    let query = (query.squeeze(0)?.transpose(0, 1)?.contiguous()? * scale)?;
    let query = query.reshape((shape.kv_heads, shared * rows, head_dim))?;
    let scores = query.matmul(&keys.transpose(0, 1)?.transpose(1, 2)?)?;
    let scores = scores.reshape((heads, rows, seen))?.broadcast_add(mask)?;
    let weights = softmax_last_dim(&scores)?.reshape((shape.kv_heads, shared * rows, seen))?;
    let output = weights.matmul(&values.transpose(0, 1)?)?;
    output
        .reshape((heads, rows, head_dim))?
        .transpose(0, 1)?
        .reshape((rows, heads * head_dim))
}

/// Returns the mask `(rows, start + rows)`: zero for positions that a row may attend to, minus
/// infinity for others. `None` for a single row, which may attend to everything.
fn causal_mask(start: usize, rows: usize) -> candle_core::Result<Option<Tensor>> {
    if rows == 1 {
        return Ok(None);
    }
    let seen = start + rows;
    let cell = |row: usize, position: usize| {
        if position <= start + row {
            0.0
        } else {
            f32::NEG_INFINITY
        }
    };
    let cells: Vec<f32> = (0..rows)
        .flat_map(|row| (0..seen).map(move |position| cell(row, position)))
        .collect();
    Tensor::from_vec(cells, (rows, seen), &Device::Cpu).map(Some)
}

impl Shape {
    fn read(file: &GgufFile) -> Result<Self, LoadError> {
        let heads = file.count("qwen2.attention.head_count")?;
        let kv_heads = file.count("qwen2.attention.head_count_kv")?;
        let hidden = file.count("qwen2.embedding_length")?;
        if !hidden.is_multiple_of(2 * heads) || !heads.is_multiple_of(kv_heads) {
            return Err(file.damaged(format!(
                "{hidden} values, {heads} and {kv_heads} heads do not divide evenly"
            )));
        }
        Ok(Self {
            layers: file.count("qwen2.block_count")?,
            heads,
            kv_heads,
            head_dim: hidden / heads,
            hidden,
            inner: file.count("qwen2.feed_forward_length")?,
            vocabulary: file.array("tokenizer.ggml.tokens")?.len(),
            window: file.count("qwen2.context_length")?,
            norm_epsilon: file.float("qwen2.attention.layer_norm_rms_epsilon")?,
            rope_base: file.float("qwen2.rope.freq_base")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_sees_itself_and_what_came_before() {
        let mask = causal_mask(1, 2)
            .unwrap()
            .unwrap()
            .to_vec2::<f32>()
            .unwrap();
        assert_eq!(mask, [[0.0, 0.0, f32::NEG_INFINITY], [0.0, 0.0, 0.0]]);
        assert!(causal_mask(7, 1).unwrap().is_none());
    }

    #[test]
    fn the_fused_and_the_plain_attention_agree() {
        let shape = Shape {
            layers: 1,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            hidden: 32,
            inner: 32,
            vocabulary: 1,
            window: 16,
            norm_epsilon: 1e-6,
            rope_base: 1e6,
        };
        let query = Tensor::randn(0f32, 1.0, (1, 1, 4, 8), &Device::Cpu).unwrap();
        let keys = Tensor::randn(0f32, 1.0, (5, 2, 8), &Device::Cpu).unwrap();
        let values = Tensor::randn(0f32, 1.0, (5, 2, 8), &Device::Cpu).unwrap();
        let open = Tensor::zeros((1, 5), candle_core::DType::F32, &Device::Cpu).unwrap();
        let fused = attend(&query, &keys, &values, None, &shape).unwrap();
        let plain = attend(&query, &keys, &values, Some(&open), &shape).unwrap();
        let gap = (fused - plain)
            .unwrap()
            .abs()
            .unwrap()
            .max(candle_core::D::Minus1)
            .unwrap()
            .to_vec1::<f32>()
            .unwrap();
        assert!(gap.iter().all(|gap| *gap < 1e-5), "{gap:?}");
    }
}

//! The attention memory: keys and values of every token read so far.

use candle_core::{DType, Device, Tensor};

use super::Computed;

/// Positions the buffer grows by, so that it is seldom copied.
const GROWTH: usize = 512;

/// Keys and values per layer, `(capacity, kv_heads, head_dim)` each, of which the first
/// [`len`](Self::len) count.
///
/// Cutting it back is free, which is what makes a shared prompt head cheap.
#[derive(Debug)]
pub(crate) struct KvCache {
    layers: Vec<LayerKv>,
    kv_heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

#[derive(Debug)]
struct LayerKv {
    keys: Tensor,
    values: Tensor,
}

impl KvCache {
    pub(crate) fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Computed<Self> {
        let mut cache = Self {
            layers: Vec::new(),
            kv_heads,
            head_dim,
            capacity: 0,
            len: 0,
        };
        cache.capacity = GROWTH;
        for _ in 0..layers {
            cache.layers.push(LayerKv {
                keys: cache.zeros(GROWTH)?,
                values: cache.zeros(GROWTH)?,
            });
        }
        Ok(cache)
    }

    /// Tokens remembered.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Floats per token and layer, for keys and values together.
    pub(crate) fn width(&self) -> usize {
        2 * self.kv_heads * self.head_dim
    }

    pub(crate) fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// Forgets everything from position `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for `more` tokens.
    pub(crate) fn reserve(&mut self, more: usize) -> Computed<()> {
        let needed = self.len + more;
        if needed <= self.capacity {
            return Ok(());
        }
        let capacity = needed.div_ceil(GROWTH) * GROWTH;
        for index in 0..self.layers.len() {
            let grown = LayerKv {
                keys: self.zeros(capacity)?,
                values: self.zeros(capacity)?,
            };
            if self.len > 0 {
                let (keys, values) = self.seen(index, self.len)?;
                grown.keys.slice_set(&keys, 0, 0)?;
                grown.values.slice_set(&values, 0, 0)?;
            }
            self.layers[index] = grown;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Writes keys and values, `(tokens, kv_heads, head_dim)`, of one layer behind what is
    /// remembered, and returns everything that layer has now. They count for good only after
    /// [`advance`](Self::advance).
    ///
    /// They are rounded to half floats, which is how files have them: what a process computed
    /// itself and what it reads from a file are the same numbers, and lead to the same answer.
    pub(crate) fn extend(
        &self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Computed<(Tensor, Tensor)> {
        let rounded = |floats: &Tensor| {
            floats
                .contiguous()?
                .to_dtype(DType::F16)?
                .to_dtype(DType::F32)
        };
        let slot = &self.layers[layer];
        slot.keys.slice_set(&rounded(keys)?, 0, self.len)?;
        slot.values.slice_set(&rounded(values)?, 0, self.len)?;
        self.seen(layer, self.len + keys.dim(0)?)
    }

    /// Counts `tokens` that every layer has written.
    pub(crate) fn advance(&mut self, tokens: usize) {
        self.len = (self.len + tokens).min(self.capacity);
    }

    /// One layer's first `len` positions, keys and values.
    pub(crate) fn seen(&self, layer: usize, len: usize) -> Computed<(Tensor, Tensor)> {
        self.range(layer, 0, len)
    }

    /// One layer's `len` positions from `from` on, keys and values.
    pub(crate) fn range(
        &self,
        layer: usize,
        from: usize,
        len: usize,
    ) -> Computed<(Tensor, Tensor)> {
        let slot = &self.layers[layer];
        Ok((
            slot.keys.narrow(0, from, len)?,
            slot.values.narrow(0, from, len)?,
        ))
    }

    /// `floats` as keys or values of `tokens` tokens.
    pub(crate) fn tensor_from(&self, floats: Vec<f32>, tokens: usize) -> Computed<Tensor> {
        Tensor::from_vec(floats, (tokens, self.kv_heads, self.head_dim), &Device::Cpu)
    }

    fn zeros(&self, capacity: usize) -> Computed<Tensor> {
        Tensor::zeros(
            (capacity, self.kv_heads, self.head_dim),
            DType::F32,
            &Device::Cpu,
        )
    }
}

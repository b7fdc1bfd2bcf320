//! The KV cache: keys and values of every token computed so far.

use candle_core::{DType, Device, Result, Tensor};

/// The positions by which the buffer grows, so that it is seldom copied.
const GROWTH: usize = 512;

/// Keys and values per layer, `(capacity, kv_heads, head_dim)` each, of which the first
/// [`len`](Self::len) positions are valid.
///
/// Truncating it is free, which makes a shared prompt head cheap.
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
    pub(crate) fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Result<Self> {
        let mut cache = Self {
            layers: Vec::new(),
            kv_heads,
            head_dim,
            capacity: GROWTH,
            len: 0,
        };
        for _ in 0..layers {
            cache.layers.push(cache.zeros(GROWTH)?);
        }
        Ok(cache)
    }

    /// Returns the number of tokens in the cache.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of floats per token and layer, keys and values together.
    pub(crate) fn width(&self) -> usize {
        2 * self.kv_heads * self.head_dim
    }

    pub(crate) fn layer_count(&self) -> usize {
        self.layers.len()
    }

    /// Drops all positions from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for `more` tokens.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<()> {
        let needed = self.len + more;
        if needed <= self.capacity {
            return Ok(());
        }
        let capacity = needed.div_ceil(GROWTH) * GROWTH;
        for index in 0..self.layers.len() {
            let grown = self.zeros(capacity)?;
            if self.len > 0 {
                let (keys, values) = self.range(index, 0, self.len)?;
                grown.keys.slice_set(&keys, 0, 0)?;
                grown.values.slice_set(&values, 0, 0)?;
            }
            self.layers[index] = grown;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Writes the keys and values `(tokens, kv_heads, head_dim)` of one layer after the cached
    /// ones, and returns all of that layer. They become valid with [`advance`](Self::advance), once
    /// every layer has written its own.
    ///
    /// They are rounded to half floats, as files have them: values that a process computed itself
    /// equal those that it reads from a file, and so do the answers.
    pub(crate) fn extend(
        &self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        // Rounded to what the file on disk holds, so that an answer does not depend on where the
        // state came from.
        let rounded = |floats: &Tensor| {
            floats
                .contiguous()?
                .to_dtype(DType::F16)?
                .to_dtype(DType::F32)
        };
        let slot = &self.layers[layer];
        slot.keys.slice_set(&rounded(keys)?, 0, self.len)?;
        slot.values.slice_set(&rounded(values)?, 0, self.len)?;
        self.range(layer, 0, self.len + keys.dim(0)?)
    }

    /// Makes `tokens` that every layer has written valid.
    pub(crate) fn advance(&mut self, tokens: usize) {
        self.len = (self.len + tokens).min(self.capacity);
    }

    /// Returns `len` positions of a layer from `from` on, keys and values.
    pub(crate) fn range(&self, layer: usize, from: usize, len: usize) -> Result<(Tensor, Tensor)> {
        let slot = &self.layers[layer];
        Ok((
            slot.keys.narrow(0, from, len)?,
            slot.values.narrow(0, from, len)?,
        ))
    }

    /// Converts `floats` to the keys or values of `tokens` tokens.
    pub(crate) fn tensor_from(&self, floats: Vec<f32>, tokens: usize) -> Result<Tensor> {
        Tensor::from_vec(floats, (tokens, self.kv_heads, self.head_dim), &Device::Cpu)
    }

    fn zeros(&self, capacity: usize) -> Result<LayerKv> {
        let shape = (capacity, self.kv_heads, self.head_dim);
        Ok(LayerKv {
            keys: Tensor::zeros(shape, DType::F32, &Device::Cpu)?,
            values: Tensor::zeros(shape, DType::F32, &Device::Cpu)?,
        })
    }
}

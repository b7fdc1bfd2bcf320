//! [`Linear`]: products with a quantised weight matrix.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{D, DType, Device, Result, Tensor};

use super::gguf::GgufFile;
use crate::error::LoadError;

/// The most rows for the fused kernel. From one more on, candle's other kernel is faster on some
/// processors.
const FUSED_ROWS_MAX: usize = 31;

/// The affine map `y = x W^T + b`.
#[derive(Debug)]
pub(super) struct Linear {
    weight: Arc<QTensor>,
    bias: Option<Tensor>,
    padded_width: usize,
}

impl Linear {
    /// Loads `<name>.weight` as `(outputs, inputs)`, and `<name>.bias` if the file has one.
    pub(super) fn load(
        file: &GgufFile,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> std::result::Result<Self, LoadError> {
        let weight = file.matrix(&format!("{name}.weight"), outputs, inputs)?;
        let bias_name = format!("{name}.bias");
        let bias = match file.has_tensor(&bias_name) {
            true => Some(file.floats(&bias_name, &[outputs])?),
            false => None,
        };
        let padded_width = weight.shape().dims().last().copied().unwrap_or(inputs);
        Ok(Self {
            weight,
            bias,
            padded_width,
        })
    }

    /// Applies the map to `input`, `(rows, inputs)`, whose rows are padded like the weights.
    pub(super) fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let output = padded(input, self.padded_width)?.apply_op1_no_bwd(self.weight.as_ref())?;
        self.with_bias(output)
    }

    /// Applies several maps to one input. If it has few rows, they share the work of quantising it.
    pub(super) fn forward_all<const N: usize>(
        layers: [&Self; N],
        input: &Tensor,
    ) -> Result<[Tensor; N]> {
        let width = layers
            .iter()
            .map(|layer| layer.padded_width)
            .max()
            .unwrap_or(0);
        let input = padded(input, width)?;
        let fused = match input.dim(0)? <= FUSED_ROWS_MAX {
            true => {
                QTensor::gemv_fused_shared_lhs(&layers.map(|layer| layer.weight.as_ref()), &input)?
            }
            false => None,
        };
        let mut fused = fused.unwrap_or_default().into_iter();
        let mut outputs = Vec::with_capacity(N);
        for layer in layers {
            outputs.push(match fused.next() {
                Some(output) => layer.with_bias(output)?,
                None => layer.forward(&input)?,
            });
        }
        <[Tensor; N]>::try_from(outputs)
            // Cannot fail: there is an output per layer, and the error would only hold them.
            .map_err(|_| candle_core::Error::msg("one output per layer"))
    }

    /// Makes candle pack the weights now instead of during the first answer.
    pub(super) fn pack(&self) -> Result<()> {
        let zeros = Tensor::zeros((2, self.padded_width), DType::F32, &Device::Cpu)?;
        self.forward(&zeros).map(|_| ())
    }

    fn with_bias(&self, output: Tensor) -> Result<Tensor> {
        match &self.bias {
            Some(bias) => output.broadcast_add(bias),
            None => Ok(output),
        }
    }
}

fn padded(input: &Tensor, width: usize) -> Result<Tensor> {
    let missing = width.saturating_sub(input.dim(D::Minus1)?);
    match missing {
        0 => Ok(input.clone()),
        _ => input.pad_with_zeros(D::Minus1, 0, missing)?.contiguous(),
    }
}

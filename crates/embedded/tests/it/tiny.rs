//! A GGUF file of the right shape with random weights: it says nothing, but it says it by every
//! rule.

use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

pub(crate) const HIDDEN: usize = 32;
const INNER: usize = 64;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const LAYERS: usize = 2;
/// Tokens of the window.
pub(crate) const WINDOW: usize = 1024;

/// A file that can still be bent before it is written.
pub(crate) struct TinyModel {
    pub(crate) metadata: Vec<(String, Value)>,
    pub(crate) tensors: Vec<(String, QTensor)>,
}

impl TinyModel {
    pub(crate) fn new() -> Self {
        let mut tokens: Vec<(String, i32)> = alphabet()
            .into_iter()
            .map(|letter| (letter.to_string(), 1))
            .collect();
        // Two merges, so that a word can be more than one character.
        tokens.push(("an".into(), 1));
        tokens.push(("Ġt".into(), 1));
        for control in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] {
            tokens.push((control.into(), 3));
        }
        let vocabulary = tokens.len();
        let end = u32::try_from(vocabulary - 1).unwrap();
        let text = |text: &str| Value::String(text.into());
        let count = |number: usize| Value::U32(u32::try_from(number).unwrap());
        let metadata = [
            ("general.architecture", text("qwen2")),
            ("qwen2.block_count", count(LAYERS)),
            ("qwen2.context_length", count(WINDOW)),
            ("qwen2.embedding_length", count(HIDDEN)),
            ("qwen2.feed_forward_length", count(INNER)),
            ("qwen2.attention.head_count", count(HEADS)),
            ("qwen2.attention.head_count_kv", count(KV_HEADS)),
            ("qwen2.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
            ("qwen2.rope.freq_base", Value::F32(1e6)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("qwen2")),
            (
                "tokenizer.ggml.tokens",
                Value::Array(tokens.iter().map(|(token, _)| text(token)).collect()),
            ),
            (
                "tokenizer.ggml.token_type",
                Value::Array(tokens.iter().map(|(_, kind)| Value::I32(*kind)).collect()),
            ),
            (
                "tokenizer.ggml.merges",
                Value::Array(vec![text("a n"), text("Ġ t")]),
            ),
            ("tokenizer.ggml.eos_token_id", Value::U32(end)),
        ];
        let metadata = metadata
            .map(|(key, value)| (key.to_owned(), value))
            .to_vec();
        let mut model = Self {
            metadata,
            tensors: Vec::new(),
        };
        let kv_width = HIDDEN / HEADS * KV_HEADS;
        model.add("token_embd.weight", &[vocabulary, HIDDEN]);
        model.add("output_norm.weight", &[HIDDEN]);
        for layer in 0..LAYERS {
            let parts: [(&str, &[usize]); 12] = [
                ("attn_norm.weight", &[HIDDEN]),
                ("attn_q.weight", &[HIDDEN, HIDDEN]),
                ("attn_q.bias", &[HIDDEN]),
                ("attn_k.weight", &[kv_width, HIDDEN]),
                ("attn_k.bias", &[kv_width]),
                ("attn_v.weight", &[kv_width, HIDDEN]),
                ("attn_v.bias", &[kv_width]),
                ("attn_output.weight", &[HIDDEN, HIDDEN]),
                ("ffn_norm.weight", &[HIDDEN]),
                ("ffn_gate.weight", &[INNER, HIDDEN]),
                ("ffn_up.weight", &[INNER, HIDDEN]),
                ("ffn_down.weight", &[HIDDEN, INNER]),
            ];
            for (part, shape) in parts {
                model.add(&format!("blk.{layer}.{part}"), shape);
            }
        }
        model
    }

    pub(crate) fn set(mut self, key: &str, value: Value) -> Self {
        self.metadata.retain(|(known, _)| known != key);
        self.metadata.push((key.into(), value));
        self
    }

    pub(crate) fn without_tensor(mut self, name: &str) -> Self {
        self.tensors.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn write(&self, path: &Path) {
        let metadata: Vec<(&str, &Value)> = self
            .metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors: Vec<(&str, &QTensor)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let mut bytes = std::io::Cursor::new(Vec::new());
        gguf_file::write(&mut bytes, &metadata, &tensors).unwrap();
        std::fs::write(path, bytes.into_inner()).unwrap();
    }

    fn add(&mut self, name: &str, shape: &[usize]) {
        let mut state = name.bytes().fold(1u64, |state, byte| {
            state.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let number = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        let numbers: Vec<f32> = std::iter::repeat_with(number)
            .take(shape.iter().product())
            .collect();
        let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap();
        // Quantised where the rows allow it, so that the mapped path is tested too.
        let kind = if shape.len() == 2 {
            GgmlDType::Q5_0
        } else {
            GgmlDType::F32
        };
        self.tensors
            .push((name.into(), QTensor::quantize(&tensor, kind).unwrap()));
    }
}

/// A tiny model in a folder of its own.
pub(crate) struct TinyFile {
    pub(crate) dir: tempfile::TempDir,
}

impl TinyFile {
    pub(crate) fn new() -> Self {
        let file = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        TinyModel::new().write(&file.path());
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("tiny.gguf")
    }
}

/// GPT-2's stand-ins for the bytes, in the order of the bytes.
fn alphabet() -> Vec<char> {
    let mut others = (0x100..).filter_map(char::from_u32);
    let letter = |byte: u8| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        _ => others.next().unwrap(),
    };
    (0..=u8::MAX).map(letter).collect()
}

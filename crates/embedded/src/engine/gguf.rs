//! GGUF files: their metadata, and their tensors in the form that is computed fastest.

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::quantized::k_quants::BlockQ8_0;
use candle_core::quantized::{GgmlDType, GgmlType, QStorage, QTensor, QuantizedType};
use candle_core::{CpuStorage, Device, Tensor};
use sha2::{Digest, Sha256};

use super::mapped::MappedFile;
use crate::error::LoadError;

/// Rows are padded to a multiple of this, the unit of candle's packed kernels.
const ROW_UNIT: usize = 256;

/// Returns true if the metadata of a file sets the alignment of its tensors to 0. False if it
/// cannot be read, which the reader reports.
fn alignment_is_zero(bytes: &[u8]) -> bool {
    Header(bytes).alignment().is_some_and(|number| number == 0)
}

/// The metadata of a GGUF file, read from its beginning. `None` where it ends too early.
///
/// Source: the specification of GGUF, "File structure".
struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    fn alignment(&mut self) -> Option<u64> {
        self.take(4)?;
        let is_first_version = self.number(4)? == 1;
        let length = if is_first_version { 4 } else { 8 };
        self.number(length)?;
        for _ in 0..self.number(length)? {
            let key = self.text(length)?;
            let kind = self.number(4)?;
            let value = self.value(kind, length, 0)?;
            if key == b"general.alignment" {
                return value;
            }
        }
        None
    }

    /// Reads a value of a kind; the inner `None` is that of one that is no integer.
    fn value(&mut self, kind: u64, length: usize, depth: u32) -> Option<Option<u64>> {
        Some(match kind {
            0 | 1 => Some(self.number(1)?),
            2 | 3 => Some(self.number(2)?),
            4 | 5 => Some(self.number(4)?),
            10 | 11 => Some(self.number(8)?),
            6 => self.take(4).map(|_| None)?,
            7 => self.take(1).map(|_| None)?,
            12 => self.take(8).map(|_| None)?,
            8 => self.text(length).map(|_| None)?,
            // Lists of lists are not in use, and would be read on the stack.
            9 if depth == 0 => {
                let kind = self.number(4)?;
                for _ in 0..self.number(length)? {
                    self.value(kind, length, depth + 1)?;
                }
                None
            }
            _ => return None,
        })
    }

    fn text(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = usize::try_from(self.number(length)?).ok()?;
        self.take(bytes)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let digits = self.take(bytes)?.iter().rev();
        Some(digits.fold(0, |number, digit| number << 8 | u64::from(*digit)))
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }
}

/// An opened model file.
#[derive(Debug)]
pub(crate) struct GgufFile {
    path: PathBuf,
    content: Content,
    mapped: MappedFile,
}

impl GgufFile {
    /// Opens a file and checks its header; tensors are read on demand.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let file = File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => LoadError::NotFound {
                path: path.to_owned(),
            },
            _ => LoadError::Unreadable {
                path: path.to_owned(),
                source,
            },
        })?;
        let unreadable = |source| LoadError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let damaged = |reason: &str| LoadError::Damaged {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(damaged("it is not a regular file"));
        }
        if metadata.len() == 0 {
            return Err(damaged("it is empty"));
        }
        let mapped = MappedFile::open(&file).map_err(unreadable)?;
        // The reader divides by it.
        if alignment_is_zero(mapped.bytes()) {
            return Err(damaged("its alignment is 0"));
        }
        let content = Content::read(&mut Cursor::new(mapped.bytes()))
            .map_err(|error| damaged(&first_line(&error)))?;
        let gguf = Self {
            path: path.to_owned(),
            content,
            mapped,
        };
        gguf.check_extent()?;
        Ok(gguf)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn unsupported_tokenizer(&self, reason: impl Into<String>) -> LoadError {
        LoadError::UnsupportedTokenizer {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    pub(crate) fn damaged(&self, reason: impl Into<String>) -> LoadError {
        LoadError::Damaged {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    /// Returns a digest that distinguishes this file from others without reading all of it: of its
    /// header, its size, and pieces of the weights.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        const PIECES: usize = 64;
        const PIECE_BYTES: usize = 4096;
        let bytes = self.mapped.bytes();
        let header = usize::try_from(self.content.tensor_data_offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let mut digest = Sha256::new();
        digest.update(bytes.len().to_le_bytes());
        digest.update(&bytes[..header]);
        let weights = &bytes[header..];
        for piece in weights.chunks(weights.len().div_ceil(PIECES).max(1)) {
            digest.update(&piece[..piece.len().min(PIECE_BYTES)]);
        }
        digest.finalize().into()
    }

    /// Releases memory that was only needed for packing.
    pub(crate) fn release_pages(&self) {
        self.mapped.release();
    }

    pub(crate) fn architecture(&self) -> Result<&str, LoadError> {
        self.text("general.architecture")
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str, LoadError> {
        match self.value(key) {
            Some(Value::String(text)) => Ok(text),
            Some(_) | None => Err(self.damaged(format!("`{key}` is missing or not a text"))),
        }
    }

    /// Returns a positive integer of the metadata.
    pub(crate) fn count(&self, key: &str) -> Result<usize, LoadError> {
        let number = self.value(key).and_then(whole_number);
        number
            .filter(|&n| n > 0)
            .ok_or_else(|| self.damaged(format!("`{key}` is missing or not a positive number")))
    }

    pub(crate) fn float(&self, key: &str) -> Result<f32, LoadError> {
        match self.value(key) {
            Some(Value::F32(number)) => Ok(*number),
            Some(Value::F64(number)) => Ok(*number as f32),
            Some(_) | None => Err(self.damaged(format!("`{key}` is missing or not a number"))),
        }
    }

    pub(crate) fn array(&self, key: &str) -> Result<&[Value], LoadError> {
        match self.value(key) {
            Some(Value::Array(values)) => Ok(values),
            Some(_) | None => Err(self.damaged(format!("`{key}` is missing or not a list"))),
        }
    }

    pub(crate) fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Reads a small tensor (norm, bias) as floats; it must have exactly this shape.
    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Tensor, LoadError> {
        self.check_shape(name, shape)?;
        self.read(name)?
            .dequantize(&Device::Cpu)
            .map_err(|error| self.unusable(name, &error))
    }

    /// Returns a table `(rows, width)` of which single rows are looked up, unchanged.
    pub(crate) fn table(
        &self,
        name: &str,
        rows: usize,
        width: usize,
    ) -> Result<QTensor, LoadError> {
        self.check_shape(name, &[rows, width])?;
        match self.mapped_blocks(name)? {
            Some(blocks) => QTensor::new(QStorage::Cpu(blocks), (rows, width))
                .map_err(|error| self.unusable(name, &error)),
            None => self.read(name),
        }
    }

    /// Returns a weight matrix `(rows, width)` for products. Its rows may be longer, padded with
    /// zeros.
    ///
    /// Q4_K and Q6_K whose rows fill whole super-blocks stay in the file; other types become Q8_0,
    /// because candle has no fast kernel for them.
    pub(crate) fn matrix(
        &self,
        name: &str,
        rows: usize,
        width: usize,
    ) -> Result<Arc<QTensor>, LoadError> {
        let info = self.check_shape(name, &[rows, width])?;
        let fast = matches!(
            info.ggml_dtype,
            GgmlDType::Q4K | GgmlDType::Q6K | GgmlDType::Q8_0
        );
        if fast && width.is_multiple_of(ROW_UNIT) {
            return Ok(Arc::new(self.table(name, rows, width)?));
        }
        let blocks: Box<dyn QuantizedType> = match self.mapped_blocks(name)? {
            Some(source) => requantised(rows, width, |row| {
                floats_of(source.embedding(&[row], rows, width)?)
            }),
            None => {
                let all = self.floats(name, &[rows, width])?;
                requantised(rows, width, |row| all.get(row as usize)?.to_vec1::<f32>())
            }
        }
        .map_err(|error| self.unusable(name, &error))?;
        let tensor = QTensor::new(
            QStorage::Cpu(blocks),
            (rows, width.next_multiple_of(ROW_UNIT)),
        );
        Ok(Arc::new(
            tensor.map_err(|error| self.unusable(name, &error))?,
        ))
    }

    fn read(&self, name: &str) -> Result<QTensor, LoadError> {
        let mut reader = Cursor::new(self.mapped.bytes());
        self.content
            .tensor(&mut reader, name, &Device::Cpu)
            .map_err(|error| self.unusable(name, &error))
    }

    fn mapped_blocks(&self, name: &str) -> Result<Option<Box<dyn QuantizedType>>, LoadError> {
        let info = self.info(name)?;
        let Some(extent) = self.extent(info) else {
            return Err(self.truncated(name));
        };
        Ok(self
            .mapped
            .blocks(info.ggml_dtype, extent.start, extent.len()))
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, LoadError> {
        let info = self.content.tensor_infos.get(name);
        info.ok_or_else(|| self.damaged(format!("the tensor `{name}` is missing")))
    }

    fn check_shape(&self, name: &str, expected: &[usize]) -> Result<&TensorInfo, LoadError> {
        let info = self.info(name)?;
        if info.shape.dims() != expected {
            let reason = format!(
                "the tensor `{name}` has the shape {:?}, expected {expected:?}",
                info.shape.dims()
            );
            return Err(self.damaged(reason));
        }
        Ok(info)
    }

    /// Compares every tensor's place with the file's size: a download that was cut short has a
    /// valid header.
    fn check_extent(&self) -> Result<(), LoadError> {
        for (name, info) in &self.content.tensor_infos {
            match self.extent(info) {
                Some(extent) if extent.end <= self.mapped.bytes().len() => {}
                Some(_) | None => return Err(self.truncated(name)),
            }
        }
        Ok(())
    }

    fn extent(&self, info: &TensorInfo) -> Option<std::ops::Range<usize>> {
        let elements = info
            .shape
            .dims()
            .iter()
            .try_fold(1usize, |product, &dim| product.checked_mul(dim))?;
        let bytes =
            (elements / info.ggml_dtype.block_size()).checked_mul(info.ggml_dtype.type_size())?;
        let start =
            usize::try_from(self.content.tensor_data_offset.checked_add(info.offset)?).ok()?;
        Some(start..start.checked_add(bytes)?)
    }

    fn truncated(&self, name: &str) -> LoadError {
        let size = self.mapped.bytes().len();
        self.damaged(format!(
            "the tensor `{name}` lies behind its end ({size} bytes); the download was cut short"
        ))
    }

    fn unusable(&self, name: &str, error: &candle_core::Error) -> LoadError {
        self.damaged(format!(
            "the tensor `{name}` cannot be used: {}",
            first_line(error)
        ))
    }
}

/// Converts rows of floats to Q8_0 blocks, row by row, so that the whole matrix is never in memory
/// as floats.
fn requantised(
    rows: usize,
    width: usize,
    mut row: impl FnMut(u32) -> candle_core::Result<Vec<f32>>,
) -> candle_core::Result<Box<dyn QuantizedType>> {
    let padded = width.next_multiple_of(ROW_UNIT);
    let row_blocks = padded / BlockQ8_0::BLCK_SIZE;
    let mut blocks = vec![BlockQ8_0::zeros(); rows * row_blocks];
    for (index, target) in blocks.chunks_exact_mut(row_blocks).enumerate() {
        let mut values = row(u32::try_from(index).map_err(candle_core::Error::wrap)?)?;
        values.resize(padded, 0.0);
        BlockQ8_0::from_float(&values, target);
    }
    Ok(Box::new(blocks))
}

fn floats_of(storage: CpuStorage) -> candle_core::Result<Vec<f32>> {
    match storage {
        CpuStorage::F32(values) => Ok(values),
        _ => candle_core::bail!("dequantised rows are not f32"),
    }
}

/// Returns the value of an integer of any type, unless it is negative.
pub(crate) fn whole_number(value: &Value) -> Option<usize> {
    match value {
        Value::U8(n) => Some(usize::from(*n)),
        Value::U16(n) => Some(usize::from(*n)),
        Value::U32(n) => usize::try_from(*n).ok(),
        Value::U64(n) => usize::try_from(*n).ok(),
        Value::I8(n) => usize::try_from(*n).ok(),
        Value::I16(n) => usize::try_from(*n).ok(),
        Value::I32(n) => usize::try_from(*n).ok(),
        Value::I64(n) => usize::try_from(*n).ok(),
        Value::F32(_) | Value::F64(_) | Value::Bool(_) | Value::String(_) | Value::Array(_) => None,
    }
}

/// Returns the first line of an error: candle appends a backtrace if one is enabled.
fn first_line(error: &candle_core::Error) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

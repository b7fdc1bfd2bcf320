//! Weights that are used in place, in the mapped model file.
//!
//! candle repacks most weights for the processor at first use and never reads the file's bytes
//! again. Mapped bytes can be returned to the system after packing; a copy on the heap would double
//! the memory.

#![expect(
    unsafe_code,
    reason = "mapping a file and viewing its bytes as quantised blocks needs unsafe code"
)]

use std::fs::File;
use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::quantized::k_quants::{
    self, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K,
    BlockQ6K, BlockQ8_0,
};
use candle_core::quantized::{GgmlDType, GgmlType, QuantizedType};
use candle_core::{CpuStorage, Result};
use memmap2::Mmap;

/// A read-only mapping of a model file.
#[derive(Debug, Clone)]
pub(super) struct MappedFile {
    map: Arc<Mmap>,
}

impl MappedFile {
    pub(super) fn open(file: &File) -> std::io::Result<Self> {
        // SAFETY: the mapping is read-only. A process that truncates the file meanwhile causes
        // SIGBUS here, as for every program that maps its data; our own downloads replace files by
        // rename and never write in place.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self { map: Arc::new(map) })
    }

    /// Returns the bytes of the whole file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Tells the system that the pages read so far are not needed; accessing them again reads the
    /// file again.
    pub(super) fn release(&self) {
        #[cfg(unix)]
        {
            // SAFETY: the mapping is shared with the file and never written, so dropped pages come
            // back unchanged. Failure only means that the memory stays in use.
            let _ = unsafe {
                self.map
                    .unchecked_advise(memmap2::UncheckedAdvice::DontNeed)
            };
        }
    }

    /// Views `len_bytes` at `offset` as quantised blocks of `dtype`.
    ///
    /// `None` if the range exceeds the file or is not aligned, or if `dtype` is never mapped
    /// (floats).
    pub(super) fn blocks(
        &self,
        dtype: GgmlDType,
        offset: usize,
        len_bytes: usize,
    ) -> Option<Box<dyn QuantizedType>> {
        fn boxed<T: GgmlType + 'static>(
            map: &MappedFile,
            offset: usize,
            len_bytes: usize,
        ) -> Option<Box<dyn QuantizedType>> {
            let blocks = MappedBlocks::<T>::new(map.map.clone(), offset, len_bytes)?;
            Some(Box::new(blocks))
        }
        match dtype {
            GgmlDType::Q4_0 => boxed::<BlockQ4_0>(self, offset, len_bytes),
            GgmlDType::Q4_1 => boxed::<BlockQ4_1>(self, offset, len_bytes),
            GgmlDType::Q5_0 => boxed::<BlockQ5_0>(self, offset, len_bytes),
            GgmlDType::Q5_1 => boxed::<BlockQ5_1>(self, offset, len_bytes),
            GgmlDType::Q8_0 => boxed::<BlockQ8_0>(self, offset, len_bytes),
            GgmlDType::Q2K => boxed::<BlockQ2K>(self, offset, len_bytes),
            GgmlDType::Q3K => boxed::<BlockQ3K>(self, offset, len_bytes),
            GgmlDType::Q4K => boxed::<BlockQ4K>(self, offset, len_bytes),
            GgmlDType::Q5K => boxed::<BlockQ5K>(self, offset, len_bytes),
            GgmlDType::Q6K => boxed::<BlockQ6K>(self, offset, len_bytes),
            GgmlDType::F32
            | GgmlDType::F16
            | GgmlDType::BF16
            | GgmlDType::Q8_1
            | GgmlDType::Q8K => None,
        }
    }
}

/// Quantised blocks within the mapped file.
struct MappedBlocks<T> {
    map: Arc<Mmap>,
    offset: usize,
    len_blocks: usize,
    blocks: PhantomData<fn() -> T>,
}

impl<T: GgmlType> MappedBlocks<T> {
    fn new(map: Arc<Mmap>, offset: usize, len_bytes: usize) -> Option<Self> {
        let range = map.get(offset..offset.checked_add(len_bytes)?)?;
        let aligned = (range.as_ptr() as usize).is_multiple_of(align_of::<T>());
        let whole = len_bytes.is_multiple_of(size_of::<T>());
        (aligned && whole).then(|| Self {
            map,
            offset,
            len_blocks: len_bytes / size_of::<T>(),
            blocks: PhantomData,
        })
    }

    fn as_slice(&self) -> &[T] {
        // SAFETY: `new` checked range and alignment; the block types are plain numbers, valid for
        // every bit pattern.
        unsafe {
            std::slice::from_raw_parts(
                self.map.as_ptr().add(self.offset).cast::<T>(),
                self.len_blocks,
            )
        }
    }
}

impl<T: GgmlType> QuantizedType for MappedBlocks<T> {
    fn dtype(&self) -> GgmlDType {
        T::DTYPE
    }

    fn matmul_t(&self, mkn: (usize, usize, usize), lhs: &[f32], dst: &mut [f32]) -> Result<()> {
        k_quants::matmul(mkn, lhs, self.as_slice(), dst)
    }

    fn matmul_t_f16(
        &self,
        mkn: (usize, usize, usize),
        lhs: &[half::f16],
        dst: &mut [half::f16],
    ) -> Result<()> {
        k_quants::matmul_f16(mkn, lhs, self.as_slice(), dst)
    }

    fn embedding(&self, ids: &[u32], rows: usize, hidden: usize) -> Result<CpuStorage> {
        let row_blocks = hidden / T::BLCK_SIZE;
        if !hidden.is_multiple_of(T::BLCK_SIZE) || self.len_blocks != rows * row_blocks {
            candle_core::bail!(
                "{rows} rows of {hidden} do not fit {} blocks",
                self.len_blocks
            )
        }
        let mut out = vec![0f32; ids.len() * hidden];
        for (row, &id) in out.chunks_exact_mut(hidden).zip(ids) {
            let start = id as usize * row_blocks;
            match self.as_slice().get(start..start + row_blocks) {
                Some(blocks) => T::to_float(blocks, row),
                None => candle_core::bail!("token {id} is outside of {rows} rows"),
            }
        }
        Ok(CpuStorage::F32(out))
    }

    fn dequantize(&self, elem_count: usize) -> Result<CpuStorage> {
        if elem_count != self.len_blocks * T::BLCK_SIZE {
            candle_core::bail!("{elem_count} values asked of {} blocks", self.len_blocks)
        }
        let mut out = vec![0f32; elem_count];
        T::to_float(self.as_slice(), &mut out);
        Ok(CpuStorage::F32(out))
    }

    fn storage_size_in_bytes(&self) -> usize {
        self.len_blocks * size_of::<T>()
    }

    fn as_ptr(&self) -> *const u8 {
        self.as_slice().as_ptr().cast::<u8>()
    }

    fn block_size(&self) -> usize {
        T::BLCK_SIZE
    }

    // The file is never written. Both are for candle's quantising constructors, which allocate
    // their own blocks.
    fn from_float(&mut self, _xs: &[f32]) {}

    fn from_float_imatrix(&mut self, _xs: &[f32], _weights: &[f32], _row_len: usize) {}

    fn size(&self) -> usize {
        self.storage_size_in_bytes()
    }
}

//! What a model remembers of the constant beginning of prompts, kept on disk between processes.
//!
//! Everything here is a convenience: a file that is missing, damaged, of another version or of another model is as
//! good as none, and no failure reaches the person.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use half::f16;
use half::slice::HalfFloatSliceExt;
use sha2::{Digest, Sha256};
use toktrie::TokenId;

use crate::engine::{Computed, KvCache};

/// Raised whenever the layout or the meaning of the numbers changes.
const MAGIC: [u8; 8] = *b"ADJKV\0\0\x01";

/// Files kept; the least recently used go first.
const FILES_KEPT: usize = 2;

/// Left behind by a process that was killed while writing.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

const SUFFIX: &str = ".kv";
const UNFINISHED_SUFFIX: &str = ".kv.tmp";

/// Which model and which shape a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Of the model file.
    pub(crate) fingerprint: [u8; 32],
    /// Layers of the model.
    pub(crate) layers: usize,
    /// Floats per token and layer.
    pub(crate) width: usize,
}

/// A folder of remembered beginnings.
#[derive(Debug)]
pub(crate) struct PrefixStore {
    dir: PathBuf,
}

/// A remembered beginning that fits a prompt.
#[derive(Debug)]
pub(crate) struct Prefix {
    path: PathBuf,
    header: Header,
    /// How many of its tokens the prompt begins with.
    pub(crate) common: usize,
}

#[derive(Debug)]
struct Header {
    owner: Owner,
    tokens: Vec<TokenId>,
    digest: [u8; 32],
}

impl PrefixStore {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The file of `owner` that shares the longest beginning with `prompt`.
    pub(crate) fn find(&self, owner: &Owner, prompt: &[TokenId]) -> Option<Prefix> {
        let fitting = self.files(SUFFIX).into_iter().filter_map(|(path, _)| {
            let header = Header::read(&mut File::open(&path).ok()?)?;
            if header.owner != *owner {
                return None;
            }
            let common = header.tokens.iter().zip(prompt).take_while(|(left, right)| left == right).count();
            Some(Prefix { path, header, common })
        });
        fitting.max_by_key(|prefix| prefix.common).filter(|prefix| prefix.common > 0)
    }

    /// Writes what `cache` remembers of its first tokens, which are `tokens`.
    pub(crate) fn save(&self, owner: &Owner, tokens: &[TokenId], cache: &KvCache) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let body = export(cache, tokens.len()).map_err(io::Error::other)?;
        let header = Header { owner: *owner, tokens: tokens.to_vec(), digest: Sha256::digest(&body).into() };
        let header = header.to_bytes();
        let name: String = Sha256::digest(&header)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file =
            tempfile::Builder::new().prefix("prefix-").suffix(UNFINISHED_SUFFIX).tempfile_in(&self.dir)?;
        file.write_all(&header)?;
        file.write_all(&body)?;
        // Not synced: a file that a power cut leaves half written fails its digest and is made again.
        file.persist(self.dir.join(format!("prefix-{name}{SUFFIX}")))?;
        self.tidy();
        Ok(())
    }

    fn tidy(&self) {
        for (path, _) in self.files(SUFFIX).iter().skip(FILES_KEPT) {
            let _ = fs::remove_file(path);
        }
        for (path, modified) in self.files(UNFINISHED_SUFFIX) {
            if modified.elapsed().is_ok_and(|age| age > ABANDONED_AFTER) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Our files with this ending, the most recently used first.
    fn files(&self, suffix: &str) -> Vec<(PathBuf, SystemTime)> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with("prefix-") && name.ends_with(suffix))
        });
        let dated = ours.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?)));
        let mut files: Vec<_> = dated.collect();
        files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
        files
    }
}

impl Prefix {
    /// Puts its common tokens into the empty `cache`. `None`, and nothing is remembered, if the file is damaged; such
    /// a file is removed.
    pub(crate) fn restore(&self, cache: &mut KvCache) -> Option<Vec<TokenId>> {
        let restored = self
            .read_body()
            .and_then(|body| import(&body, self.header.tokens.len(), self.common, cache).ok());
        match restored {
            Some(()) => {
                mark_used(&self.path);
                Some(self.header.tokens.get(..self.common)?.to_vec())
            }
            None => {
                cache.truncate(0);
                let _ = fs::remove_file(&self.path);
                None
            }
        }
    }

    fn read_body(&self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        let header = Header::read(&mut file)?;
        let mut body = Vec::with_capacity(self.header.body_len()?);
        file.read_to_end(&mut body).ok()?;
        let digest: [u8; 32] = Sha256::digest(&body).into();
        (header.digest == self.header.digest && digest == header.digest).then_some(body)
    }
}

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.owner.fingerprint);
        bytes.extend(count(self.owner.layers));
        bytes.extend(count(self.owner.width));
        bytes.extend(self.digest);
        bytes.extend(count(self.tokens.len()));
        bytes.extend(self.tokens.iter().flat_map(|token| token.to_le_bytes()));
        bytes
    }

    /// Reads a header and checks it against the file's length. `None` if this is no file of ours.
    fn read(file: &mut File) -> Option<Self> {
        let file_len = file.metadata().ok()?.len();
        if array::<8>(file)? != MAGIC {
            return None;
        }
        let fingerprint = array(file)?;
        let owner = Owner { fingerprint, layers: count(file)?, width: count(file)? };
        let digest = array(file)?;
        let token_count = count(file)?;
        // Bounded by the file's own length before anything is allocated.
        let token_bytes = token_count.checked_mul(size_of::<TokenId>())?;
        if u64::try_from(token_bytes).ok()? > file_len {
            return None;
        }
        let mut bytes = vec![0; token_bytes];
        file.read_exact(&mut bytes).ok()?;
        let (words, _) = bytes.as_chunks::<4>();
        let header =
            Self { owner, tokens: words.iter().map(|word| u32::from_le_bytes(*word)).collect(), digest };
        let expected = header.to_bytes().len().checked_add(header.body_len()?)?;
        (u64::try_from(expected).ok()? == file_len).then_some(header)
    }

    fn body_len(&self) -> Option<usize> {
        let floats = self.tokens.len().checked_mul(self.owner.width)?.checked_mul(self.owner.layers)?;
        floats.checked_mul(size_of::<f16>())
    }
}

/// Per layer the keys and then the values of the first `len` tokens, as little-endian half floats.
fn export(cache: &KvCache, len: usize) -> Computed<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len * cache.width() * cache.layer_count() * size_of::<f16>());
    for layer in 0..cache.layer_count() {
        let (keys, values) = cache.seen(layer, len)?;
        for tensor in [keys, values] {
            let floats = tensor.flatten_all()?.to_vec1::<f32>()?;
            let mut halves = vec![f16::ZERO; floats.len()];
            halves.convert_from_f32_slice(&floats);
            bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        }
    }
    Ok(bytes)
}

/// Reads what [`export`] wrote for `len` tokens and remembers the first `wanted` of them.
fn import(bytes: &[u8], len: usize, wanted: usize, cache: &mut KvCache) -> Computed<()> {
    cache.truncate(0);
    cache.reserve(wanted)?;
    let half_layer = len * cache.width() / 2;
    let floats_wanted = wanted * cache.width() / 2;
    let (words, _) = bytes.as_chunks::<2>();
    let mut tensors = words.chunks_exact(half_layer).map(|words| {
        let halves: Vec<f16> =
            words.iter().take(floats_wanted).map(|word| f16::from_le_bytes(*word)).collect();
        cache.tensor_from(halves.to_f32_vec(), wanted)
    });
    for layer in 0..cache.layer_count() {
        match (tensors.next(), tensors.next()) {
            (Some(keys), Some(values)) => drop(cache.extend(layer, &keys?, &values?)?),
            _ => candle_core::bail!("the file ends early"),
        }
    }
    drop(tensors);
    cache.advance(wanted);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the time of a file is the machine's")]
fn mark_used(path: &Path) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn array<const N: usize>(file: &mut File) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn count(file: &mut File) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(array(file)?)).ok()
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    const OWNER: Owner = Owner { fingerprint: [7; 32], layers: 2, width: 12 };

    fn remembering(tokens: usize) -> KvCache {
        let mut cache = KvCache::new(2, 2, 3).unwrap();
        cache.reserve(tokens).unwrap();
        for layer in 0..2 {
            let numbers: Vec<f32> = (0..tokens * 6).map(|n| (n + 1000 * layer) as f32).collect();
            let keys = Tensor::from_vec(numbers, (tokens, 2, 3), &Device::Cpu).unwrap();
            cache.extend(layer, &keys, &(&keys + 0.5).unwrap()).unwrap();
        }
        cache.advance(tokens);
        cache
    }

    fn numbers(cache: &KvCache, len: usize) -> Vec<f32> {
        let tensors = (0..2).flat_map(|layer| <[Tensor; 2]>::from(cache.seen(layer, len).unwrap()));
        tensors.flat_map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()).collect()
    }

    #[test]
    fn the_common_beginning_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = PrefixStore::new(dir.path().to_owned());
        let cache = remembering(5);
        store.save(&OWNER, &[1, 2, 3, 4], &cache).unwrap();
        let mut other = KvCache::new(2, 2, 3).unwrap();
        let found = store.find(&OWNER, &[1, 2, 3, 9, 9]).unwrap();
        assert_eq!(found.restore(&mut other).unwrap(), [1, 2, 3]);
        assert_eq!(other.len(), 3);
        assert_eq!(numbers(&other, 3), numbers(&cache, 3));
    }

    #[test]
    fn another_model_another_prompt_and_garbage_are_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let store = PrefixStore::new(dir.path().to_owned());
        store.save(&OWNER, &[1, 2], &remembering(2)).unwrap();
        fs::write(dir.path().join("prefix-junk.kv"), b"ADJKV\0\0\x01 and then nothing that fits").unwrap();
        assert!(store.find(&Owner { fingerprint: [8; 32], ..OWNER }, &[1, 2]).is_none());
        assert!(store.find(&Owner { layers: 3, ..OWNER }, &[1, 2]).is_none());
        assert!(store.find(&OWNER, &[2, 1]).is_none());
        assert!(store.find(&OWNER, &[1, 2]).is_some());
    }

    #[test]
    fn a_damaged_file_is_removed_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = PrefixStore::new(dir.path().to_owned());
        store.save(&OWNER, &[1, 2], &remembering(2)).unwrap();
        let (path, _) = store.files(SUFFIX).remove(0);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut cache = KvCache::new(2, 2, 3).unwrap();
        assert!(store.find(&OWNER, &[1, 2]).unwrap().restore(&mut cache).is_none());
        assert_eq!(cache.len(), 0);
        assert!(!path.exists());
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(store.find(&OWNER, &[1, 2]).is_none(), "a cut file is no file");
    }

    #[test]
    fn two_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let store = PrefixStore::new(dir.path().to_owned());
        for first in 1..=4 {
            store.save(&OWNER, &[first, 2], &remembering(2)).unwrap();
        }
        assert_eq!(store.files(SUFFIX).len(), FILES_KEPT);
        assert!(store.files(UNFINISHED_SUFFIX).is_empty());
    }
}

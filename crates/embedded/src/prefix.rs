//! The prefix cache: keys and values of the constant head of prompts, on disk, shared by processes.
//!
//! The file of a head grows while the head is computed: a segment per chunk, with its tokens, their
//! keys and values, and a digest of the segment and of the digest before it. A process that is
//! killed loses only the current chunk. A torn or altered segment ends the file: the segments
//! before it are used, and the next process that writes cuts off the rest.
//!
//! A process writes to a file only while it holds the file's exclusive lock, and reads without one,
//! because complete segments never change.
//!
//! The cache only saves time: a file that is missing, of another version or of another model is
//! ignored, and no failure is reported to the user.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use half::f16;
use half::slice::HalfFloatSliceExt;
use sha2::{Digest, Sha256};
use toktrie::TokenId;

use crate::engine::KvCache;
use crate::verified::hex;

/// Identifies the format. Changed whenever the layout or the meaning of the numbers changes.
const MAGIC: [u8; 8] = *b"ADJKV\0\0\x02";

/// Files that are kept; the least recently used are removed first.
const FILES_KEPT: usize = 4;

const SUFFIX: &str = ".kv";

/// The length of a SHA-256 in bytes.
const DIGEST_LEN: usize = 32;

type Sha256Bytes = [u8; DIGEST_LEN];

/// The model that a file belongs to, and the shape of its keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheKey {
    /// The fingerprint of the model file.
    pub(crate) fingerprint: Sha256Bytes,
    /// The number of layers of the model.
    pub(crate) layers: usize,
    /// The number of floats per token and layer.
    pub(crate) width: usize,
}

impl CacheKey {
    /// Returns the bytes at the beginning of a file.
    fn header(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.fingerprint);
        bytes.extend(count_bytes(self.layers));
        bytes.extend(count_bytes(self.width));
        bytes
    }

    /// Returns the bytes of the keys and values of `tokens` tokens.
    fn body_len(&self, tokens: usize) -> Option<usize> {
        tokens
            .checked_mul(self.width)?
            .checked_mul(self.layers)?
            .checked_mul(size_of::<f16>())
    }
}

/// A folder with the files of heads.
#[derive(Debug)]
pub(crate) struct PrefixStore {
    dir: PathBuf,
}

/// A file whose tokens begin like a prompt.
#[derive(Debug)]
pub(crate) struct FoundPrefix {
    path: PathBuf,
    key: CacheKey,
    /// The number of tokens that it shares with the prompt.
    pub(crate) common: usize,
}

impl PrefixStore {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the file of this model that shares the longest beginning with `prompt`.
    pub(crate) fn find(&self, key: &CacheKey, prompt: &[TokenId]) -> Option<FoundPrefix> {
        let fitting = self.files().into_iter().filter_map(|(path, _)| {
            let tokens = Segments::open(&path, key)?.read_tokens();
            let common = common_len(&tokens, prompt);
            Some(FoundPrefix {
                path,
                key: *key,
                common,
            })
        });
        fitting
            .max_by_key(|prefix| prefix.common)
            .filter(|prefix| prefix.common > 0)
    }

    /// Returns the file of exactly this head, whether it exists or not.
    pub(crate) fn head_file(self, key: CacheKey, head: &[TokenId]) -> HeadFile {
        let mut digest = Sha256::new();
        digest.update(key.header());
        head.iter()
            .for_each(|token| digest.update(token.to_le_bytes()));
        let name = hex(&digest.finalize()[..8]);
        let path = self.dir.join(format!("prefix-{name}{SUFFIX}"));
        HeadFile {
            store: self,
            path,
            key,
            head: head.to_vec(),
            stored: 0,
            tail: None,
        }
    }

    /// Removes all but the most recently used files, but none that is being written.
    fn remove_old_files(&self) {
        for (path, _) in self.files().iter().skip(FILES_KEPT) {
            // A locked file is being written by another process.
            let unused = File::open(path).is_ok_and(|file| file.try_lock().is_ok());
            if unused {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Lists the files of this cache, the most recently used first.
    fn files(&self) -> Vec<(PathBuf, SystemTime)> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with("prefix-") && name.ends_with(SUFFIX))
        });
        let dated =
            ours.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?)));
        let mut files: Vec<_> = dated.collect();
        files.sort_by_key(|(_, modified)| std::cmp::Reverse(*modified));
        files
    }
}

impl FoundPrefix {
    /// Loads the shared tokens into `cache`, in place of its content, and returns those that could
    /// be read: fewer than [`common`](Self::common) if a segment is damaged.
    pub(crate) fn restore(&self, prompt: &[TokenId], cache: &mut KvCache) -> Vec<TokenId> {
        cache.truncate(0);
        let Some(mut segments) = Segments::open(&self.path, &self.key) else {
            return Vec::new();
        };
        let wanted = prompt.get(..self.common).unwrap_or(prompt);
        while cache.len() < wanted.len() {
            let Some(segment) = segments.next_checked() else {
                break;
            };
            let taken = segment.tokens.len().min(wanted.len() - cache.len());
            // A partial copy does not count before the cache advances.
            if decode_segment(&segment.body, segment.tokens.len(), taken, cache).is_err() {
                break;
            }
        }
        if cache.len() > 0 {
            // The files that were not used for the longest time are removed first.
            mark_used(&self.path);
        }
        wanted[..cache.len()].to_vec()
    }
}

/// The file of one head, which grows while the head is computed.
#[derive(Debug)]
pub(crate) struct HeadFile {
    store: PrefixStore,
    path: PathBuf,
    key: CacheKey,
    head: Vec<TokenId>,
    /// The number of tokens of the head that are known to be in the file.
    stored: usize,
    tail: Option<Tail>,
}

/// The end of a locked file, at which the next segment is written.
#[derive(Debug)]
struct Tail {
    file: File,
    end: u64,
    chain: Sha256Bytes,
}

impl HeadFile {
    /// Returns the number of tokens of the head that are known to be in the file.
    pub(crate) fn stored(&self) -> usize {
        self.stored
    }

    /// Loads the longest beginning of the head that any file of the folder has into `cache`, if it
    /// is longer than `known` tokens. Returns the tokens.
    pub(crate) fn restore(&mut self, known: usize, cache: &mut KvCache) -> Option<Vec<TokenId>> {
        let found = self
            .store
            .find(&self.key, &self.head)
            .filter(|prefix| prefix.common > known)?;
        let restored = found.restore(&self.head, cache);
        if found.path == self.path {
            self.stored = restored.len();
        }
        Some(restored)
    }

    /// Writes the head's tokens that `cache` has and the file lacks. `read` are the cache's tokens.
    /// Does nothing while another process writes the same file.
    pub(crate) fn grow(&mut self, read: &[TokenId], cache: &KvCache) -> io::Result<()> {
        if self.stored == self.head.len() {
            return Ok(());
        }
        let known = common_len(read, &self.head).min(cache.len());
        if known <= self.stored {
            return Ok(());
        }
        // Taken out, so that a failed write closes the file; the next chunk opens and checks it
        // again.
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => match self.open()? {
                Some(tail) => tail,
                None => return Ok(()),
            },
        };
        if known > self.stored {
            let tokens = &self.head[self.stored..known];
            let body = encode_segment(cache, self.stored, known).map_err(io::Error::other)?;
            tail.append(tokens, &body)?;
            self.stored = known;
        }
        // The lock ends with the file handle, which is dropped once the head is complete.
        if self.stored < self.head.len() {
            self.tail = Some(tail);
        }
        Ok(())
    }

    /// Opens the file, and cuts it off after its last valid segment. `None` if another process
    /// writes it.
    fn open(&mut self) -> io::Result<Option<Tail>> {
        fs::create_dir_all(&self.store.dir)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)?;
        match file.try_lock() {
            Ok(()) => {}
            // Another process writes this head; both would write the same, and one is enough.
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let header = self.key.header();
        let mut tail = Tail {
            // A second handle of the same open file shares its lock.
            file: file.try_clone()?,
            end: header.len() as u64,
            chain: Sha256::digest(&header).into(),
        };
        // Another process may have written more, or another head, since the last look at the file.
        self.stored = 0;
        match Segments::from_start(file, &self.key) {
            Some(mut segments) => {
                while let Some(segment) = segments.next_checked() {
                    let after = self.stored + segment.tokens.len();
                    if self.head.get(self.stored..after) != Some(segment.tokens.as_slice()) {
                        break;
                    }
                    self.stored = after;
                    tail.end = segments.at;
                    tail.chain = segments.chain;
                }
                // Cuts off a segment that another head wrote, or that a crash left half written.
                tail.file.set_len(tail.end)?;
            }
            None => {
                tail.file.set_len(0)?;
                tail.file.seek(SeekFrom::Start(0))?;
                tail.file.write_all(&header)?;
                self.store.remove_old_files();
            }
        }
        Ok(Some(tail))
    }
}

impl Tail {
    /// Writes a segment. Not synced: if a power cut leaves it half written, its digest is wrong and
    /// it is cut off.
    fn append(&mut self, tokens: &[TokenId], body: &[u8]) -> io::Result<()> {
        let mut segment = segment_head(tokens);
        let chain = chain_digest(&self.chain, &segment, body);
        segment.extend(body);
        segment.extend(chain);
        // The position is shared with the handle that read the segments.
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&segment)?;
        self.end += segment.len() as u64;
        self.chain = chain;
        Ok(())
    }
}

/// Reads the segments of a file, one after the other.
struct Segments {
    file: File,
    file_len: u64,
    key: CacheKey,
    /// The offset of the next segment in bytes.
    at: u64,
    /// The digest of the segment before it.
    chain: Sha256Bytes,
}

/// A segment whose digest is correct.
struct Segment {
    tokens: Vec<TokenId>,
    body: Vec<u8>,
}

impl Segments {
    fn open(path: &Path, key: &CacheKey) -> Option<Self> {
        Self::from_start(File::open(path).ok()?, key)
    }

    /// Starts at the first segment; `None` if the file does not begin with the header of `key`.
    fn from_start(mut file: File, key: &CacheKey) -> Option<Self> {
        let file_len = file.metadata().ok()?.len();
        let header = key.header();
        let mut found = vec![0; header.len()];
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_exact(&mut found).ok()?;
        let (at, chain) = (header.len() as u64, Sha256::digest(&header).into());
        (found == header).then_some(Self {
            file,
            file_len,
            key: *key,
            at,
            chain,
        })
    }

    /// Reads the tokens of all complete segments, without checking digests.
    fn read_tokens(mut self) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        while let Some((segment, body_len)) = self.next_tokens() {
            tokens.extend(segment);
            let skipped = body_len
                .checked_add(DIGEST_LEN)
                .and_then(|bytes| i64::try_from(bytes).ok());
            match skipped.map(|bytes| self.file.seek(SeekFrom::Current(bytes))) {
                Some(Ok(at)) => self.at = at,
                Some(Err(_)) | None => break,
            }
        }
        tokens
    }

    /// Reads the next segment. `None` at the end, and if the rest is torn or altered.
    fn next_checked(&mut self) -> Option<Segment> {
        let (tokens, body_len) = self.next_tokens()?;
        let mut body = vec![0; body_len];
        self.file.read_exact(&mut body).ok()?;
        let digest: Sha256Bytes = read_array(&mut self.file)?;
        let head = segment_head(&tokens);
        let chain = chain_digest(&self.chain, &head, &body);
        if chain != digest {
            return None;
        }
        self.at += (head.len() + body.len() + DIGEST_LEN) as u64;
        self.chain = chain;
        Some(Segment { tokens, body })
    }

    /// Reads the tokens of the next segment, and returns the length of its body too. The lengths
    /// are compared with the file's before anything is allocated.
    fn next_tokens(&mut self) -> Option<(Vec<TokenId>, usize)> {
        let left = self.file_len.checked_sub(self.at)?;
        let count = usize::try_from(u32::from_le_bytes(read_array(&mut self.file)?)).ok()?;
        let token_bytes = count.checked_mul(size_of::<TokenId>())?;
        let body_len = self.key.body_len(count)?;
        let whole = token_bytes
            .checked_add(body_len)?
            .checked_add(size_of::<u32>() + DIGEST_LEN)?;
        // A damaged length must not make us allocate more than the file has.
        if count == 0 || u64::try_from(whole).ok()? > left {
            return None;
        }
        let mut bytes = vec![0; token_bytes];
        self.file.read_exact(&mut bytes).ok()?;
        let (words, _) = bytes.as_chunks::<4>();
        Some((
            words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
            body_len,
        ))
    }
}

/// Encodes the beginning of a segment: the number of its tokens, and the tokens.
fn segment_head(tokens: &[TokenId]) -> Vec<u8> {
    let mut head = count_bytes(tokens.len()).to_vec();
    head.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
    head
}

fn chain_digest(before: &Sha256Bytes, head: &[u8], body: &[u8]) -> Sha256Bytes {
    let digest = Sha256::new().chain_update(before);
    digest
        .chain_update(head)
        .chain_update(body)
        .finalize()
        .into()
}

/// Returns the number of tokens with which both begin.
pub(crate) fn common_len(left: &[TokenId], right: &[TokenId]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

/// Encodes the tokens from `from` to `to`: per layer their keys and then their values, as
/// little-endian half floats.
fn encode_segment(cache: &KvCache, from: usize, to: usize) -> candle_core::Result<Vec<u8>> {
    let len = to - from;
    let mut bytes =
        Vec::with_capacity(len * cache.width() * cache.layer_count() * size_of::<f16>());
    for layer in 0..cache.layer_count() {
        let (keys, values) = cache.range(layer, from, len)?;
        for tensor in [keys, values] {
            let floats = tensor.flatten_all()?.to_vec1::<f32>()?;
            let mut halves = vec![f16::ZERO; floats.len()];
            halves.convert_from_f32_slice(&floats);
            bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
        }
    }
    Ok(bytes)
}

/// Decodes the body of a segment of `len` tokens, and appends the first `wanted` of them to
/// `cache`.
fn decode_segment(
    bytes: &[u8],
    len: usize,
    wanted: usize,
    cache: &mut KvCache,
) -> candle_core::Result<()> {
    cache.reserve(wanted)?;
    let half_layer = len * cache.width() / 2;
    let floats_wanted = wanted * cache.width() / 2;
    let (words, _) = bytes.as_chunks::<2>();
    let mut tensors = words.chunks_exact(half_layer).map(|words| {
        let halves: Vec<f16> = words
            .iter()
            .take(floats_wanted)
            .map(|word| f16::from_le_bytes(*word))
            .collect();
        cache.tensor_from(halves.to_f32_vec(), wanted)
    });
    for layer in 0..cache.layer_count() {
        match (tensors.next(), tensors.next()) {
            (Some(keys), Some(values)) => {
                cache.extend(layer, &keys?, &values?)?;
            }
            _ => candle_core::bail!("the segment ends early"),
        }
    }
    // Ends the borrow of the cache.
    drop(tensors);
    cache.advance(wanted);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time of a file is the machine's"
)]
fn mark_used(path: &Path) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn count_bytes(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

fn read_array<const N: usize>(file: &mut File) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    const OWNER: CacheKey = CacheKey {
        fingerprint: [7; 32],
        layers: 2,
        width: 12,
    };

    fn remembering(tokens: usize) -> KvCache {
        let mut cache = KvCache::new(2, 2, 3).unwrap();
        cache.reserve(tokens).unwrap();
        for layer in 0..2 {
            let numbers: Vec<f32> = (0..tokens * 6).map(|n| (n + 500 * layer) as f32).collect();
            let keys = Tensor::from_vec(numbers, (tokens, 2, 3), &Device::Cpu).unwrap();
            cache.extend(layer, &keys, &(&keys + 0.5).unwrap()).unwrap();
        }
        cache.advance(tokens);
        cache
    }

    fn numbers(cache: &KvCache, len: usize) -> Vec<f32> {
        let tensors =
            (0..2).flat_map(|layer| <[Tensor; 2]>::from(cache.range(layer, 0, len).unwrap()));
        tensors
            .flat_map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .collect()
    }

    fn head_file(dir: &Path, head: &[TokenId]) -> HeadFile {
        PrefixStore::new(dir.to_owned()).head_file(OWNER, head)
    }

    /// A file of this head in segments of two tokens.
    fn written(dir: &Path, head: &[TokenId]) -> PathBuf {
        let mut file = head_file(dir, head);
        let cache = remembering(head.len());
        for read in (2..=head.len()).step_by(2) {
            file.grow(&head[..read], &cache).unwrap();
            assert_eq!(file.stored(), read);
        }
        file.path
    }

    fn restored(dir: &Path, owner: &CacheKey, prompt: &[TokenId]) -> (Vec<TokenId>, KvCache) {
        let mut cache = KvCache::new(2, 2, 3).unwrap();
        let found = PrefixStore::new(dir.to_owned()).find(owner, prompt);
        (
            found.map_or_else(Vec::new, |prefix| prefix.restore(prompt, &mut cache)),
            cache,
        )
    }

    #[test]
    fn the_common_beginning_comes_back_also_from_inside_a_segment() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &[1, 2, 3, 4, 5, 6]);
        for common in 1..=6 {
            let mut prompt = vec![1, 2, 3, 4, 5, 6];
            prompt.truncate(common);
            prompt.extend([9, 9]);
            let (tokens, cache) = restored(dir.path(), &OWNER, &prompt);
            assert_eq!(tokens, prompt[..common]);
            assert_eq!(
                numbers(&cache, common),
                numbers(&remembering(common), common)
            );
        }
    }

    #[test]
    fn another_model_another_prompt_and_garbage_are_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &[1, 2]);
        fs::write(
            dir.path().join("prefix-junk.kv"),
            b"ADJKV\0\0\x02 and then nothing that fits",
        )
        .unwrap();
        let found = |owner: &CacheKey, prompt: &[TokenId]| restored(dir.path(), owner, prompt).0;
        assert!(
            found(
                &CacheKey {
                    fingerprint: [8; 32],
                    ..OWNER
                },
                &[1, 2]
            )
            .is_empty()
        );
        assert!(found(&CacheKey { layers: 3, ..OWNER }, &[1, 2]).is_empty());
        assert!(found(&OWNER, &[2, 1]).is_empty());
        assert_eq!(found(&OWNER, &[1, 2]), [1, 2]);
    }

    const HEAD: [TokenId; 6] = [1, 2, 3, 4, 5, 6];

    /// A file of [`HEAD`] in three segments of one size.
    struct Stored {
        dir: tempfile::TempDir,
        path: PathBuf,
        whole: Vec<u8>,
        header_len: usize,
        segment_len: usize,
    }

    fn stored() -> Stored {
        let dir = tempfile::tempdir().unwrap();
        let path = written(dir.path(), &HEAD);
        let whole = fs::read(&path).unwrap();
        let header_len = OWNER.header().len();
        let segment_len = (whole.len() - header_len) / 3;
        Stored {
            dir,
            path,
            whole,
            header_len,
            segment_len,
        }
    }

    #[test]
    fn what_stands_before_a_torn_segment_is_used_and_the_file_grows_on_from_there() {
        let Stored {
            dir,
            path,
            whole,
            header_len,
            segment_len,
        } = stored();
        for kept in 0..whole.len() {
            fs::write(&path, &whole[..kept]).unwrap();
            let segments = kept.saturating_sub(header_len) / segment_len;
            assert_eq!(
                restored(dir.path(), &OWNER, &HEAD).0,
                HEAD[..2 * segments],
                "{kept}"
            );
            // The next process reads the rest in one go.
            let mut file = head_file(dir.path(), &HEAD);
            file.grow(&HEAD, &remembering(6)).unwrap();
            drop(file);
            let (tokens, cache) = restored(dir.path(), &OWNER, &HEAD);
            assert_eq!(tokens, HEAD, "{kept}");
            assert_eq!(numbers(&cache, 6), numbers(&remembering(6), 6), "{kept}");
        }
    }

    #[test]
    fn an_altered_byte_ends_the_file_there() {
        let Stored {
            dir,
            path,
            whole,
            header_len,
            segment_len,
        } = stored();
        for altered in header_len..whole.len() {
            let mut bytes = whole.clone();
            bytes[altered] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let sound = (altered - header_len) / segment_len;
            let (tokens, cache) = restored(dir.path(), &OWNER, &HEAD);
            assert!(
                tokens.len() <= 2 * sound && HEAD.starts_with(&tokens),
                "{altered}: {tokens:?}"
            );
            assert_eq!(
                numbers(&cache, tokens.len()),
                numbers(&remembering(6), tokens.len()),
                "{altered}"
            );
        }
    }

    #[test]
    fn one_process_writes_at_a_time_and_the_other_takes_over() {
        let dir = tempfile::tempdir().unwrap();
        let head = [1, 2, 3, 4, 5, 6];
        let cache = remembering(6);
        let (mut first, mut second) = (head_file(dir.path(), &head), head_file(dir.path(), &head));
        first.grow(&head[..2], &cache).unwrap();
        second.grow(&head[..4], &cache).unwrap();
        assert_eq!(
            (first.stored(), second.stored()),
            (2, 0),
            "the first one has the lock"
        );
        drop(first);
        second.grow(&head[..5], &cache).unwrap();
        assert_eq!(second.stored(), 5);
        drop(second);
        assert_eq!(restored(dir.path(), &OWNER, &head).0, head[..5]);
    }

    #[test]
    fn a_changed_head_begins_with_what_the_old_one_shares_and_has_a_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &[1, 2, 3, 4]);
        let mut changed = head_file(dir.path(), &[1, 2, 3, 9]);
        let mut cache = KvCache::new(2, 2, 3).unwrap();
        assert_eq!(changed.restore(0, &mut cache).unwrap(), [1, 2, 3]);
        assert_eq!(changed.stored(), 0);
        changed.grow(&[1, 2, 3, 9], &remembering(4)).unwrap();
        assert_eq!(restored(dir.path(), &OWNER, &[1, 2, 3, 9]).0, [1, 2, 3, 9]);
        assert_eq!(restored(dir.path(), &OWNER, &[1, 2, 3, 4]).0, [1, 2, 3, 4]);
    }

    #[test]
    fn the_number_of_files_is_bounded_and_what_is_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut writing = head_file(dir.path(), &[100, 2, 3, 4]);
        writing.grow(&[100, 2], &remembering(2)).unwrap();
        for first in 1..=2 * FILES_KEPT {
            written(dir.path(), &[u32::try_from(first).unwrap(), 2]);
        }
        let store = PrefixStore::new(dir.path().to_owned());
        assert!(store.files().len() <= FILES_KEPT + 1, "{:?}", store.files());
        assert_eq!(restored(dir.path(), &OWNER, &[100, 2, 3, 4]).0, [100, 2]);
    }
}

//! The states of sentences, which are kept in a file: computing them takes far longer than training.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use adjutant_core::Utterance;
use adjutant_embedded::Decoder;
use sha2::{Digest as _, Sha256};

use crate::sentences::Sentence;

/// Sentences after which the progress is printed.
const PROGRESS_EVERY: usize = 200;

/// Returns the state of every sentence after the first `blocks` blocks. Those that `file` has are
/// taken from it, and the others are added to it.
///
/// # Errors
/// The file cannot be read or written, or the model fails.
pub(crate) fn of(
    sentences: &[Sentence],
    decoder: &mut Decoder,
    blocks: usize,
    file: &Path,
) -> Result<Vec<Vec<f32>>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let known = read(file)?;
    let mut out = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .map_err(failed)?;
    let mut states = Vec::new();
    for (done, sentence) in sentences.iter().enumerate() {
        if done % PROGRESS_EVERY == 0 {
            eprintln!("states of sentences: {done} of {}", sentences.len());
        }
        let key = key(sentence, blocks, &decoder.fingerprint());
        if let Some(state) = known.get(&key) {
            states.push(state.clone());
            continue;
        }
        let utterance = Utterance {
            message: &sentence.message,
            before: sentence.before.as_deref(),
            earlier: sentence.earlier.as_deref(),
        };
        let state = decoder
            .action_state(utterance, blocks)
            .map_err(|error| format!("{}: {error}", sentence.id))?;
        let mut row = key.to_vec();
        row.extend(u32::try_from(state.len()).unwrap_or_default().to_le_bytes());
        row.extend(state.iter().flat_map(|value| value.to_le_bytes()));
        out.write_all(&row).map_err(failed)?;
        states.push(state);
    }
    Ok(states)
}

type Key = [u8; 32];

/// Reads the rows of a file: key, length, state. A row that was cut off ends the file.
fn read(file: &Path) -> Result<std::collections::BTreeMap<Key, Vec<f32>>, String> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(format!("{}: {error}", file.display())),
    };
    let mut rows = std::collections::BTreeMap::new();
    let mut rest = &bytes[..];
    while let Some((key, behind)) = rest.split_at_checked(32) {
        let Some((length, behind)) = behind.split_at_checked(4) else {
            break;
        };
        let length = u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize;
        let Some((state, behind)) = behind.split_at_checked(length * 4) else {
            break;
        };
        let values = state
            .chunks_exact(4)
            .map(|value| f32::from_le_bytes(value.try_into().unwrap_or_default()));
        rows.insert(key.try_into().unwrap_or_default(), values.collect());
        rest = behind;
    }
    Ok(rows)
}

/// Returns the digest of all that a state depends on, but for the instruction of the classifier:
/// whoever changes that deletes the file.
fn key(sentence: &Sentence, blocks: usize, fingerprint: &[u8; 32]) -> Key {
    let mut digest = Sha256::new();
    digest.update(fingerprint);
    digest.update(blocks.to_le_bytes());
    for text in [
        Some(&sentence.message),
        sentence.before.as_ref(),
        sentence.earlier.as_ref(),
    ] {
        digest.update(
            text.map_or(u64::MAX, |text| text.len() as u64)
                .to_le_bytes(),
        );
        digest.update(text.map_or("", String::as_str));
    }
    digest.finalize().into()
}

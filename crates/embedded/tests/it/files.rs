//! Files that are no model, or not one of ours.

use adjutant_embedded::{Decoder, LoadError};
use candle_core::quantized::gguf_file::Value;

use crate::tiny::{TinyFile, TinyModel};

fn load_error(file: &TinyFile) -> LoadError {
    match Decoder::load(&file.path()) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    }
}

fn damage(file: &TinyFile) -> String {
    match load_error(file) {
        LoadError::Damaged { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_missing_file_and_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        Decoder::load(&dir.path().join("no.gguf")),
        Err(LoadError::NotFound { .. })
    ));
    assert!(matches!(
        Decoder::load(dir.path()),
        Err(LoadError::Damaged { .. } | LoadError::Unreadable { .. })
    ));
}

#[test]
fn a_file_cut_short_anywhere_is_damaged() {
    let file = TinyFile::new();
    let whole = std::fs::read(file.path()).unwrap();
    for kept in [
        0,
        3,
        4,
        11,
        24,
        300,
        5000,
        whole.len() / 2,
        whole.len() - 4000,
    ] {
        std::fs::write(file.path(), &whole[..kept]).unwrap();
        let reason = damage(&file);
        assert!(!reason.is_empty(), "{kept}");
    }
    assert!(damage(&file).contains("cut short"));
}

#[test]
fn garbage_is_damaged() {
    let file = TinyFile::new();
    std::fs::write(file.path(), "<!doctype html><p>Please log in").unwrap();
    assert!(damage(&file).contains("magic"));
    // A right beginning and then noise.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((0..4000u32).map(|n| (n * 31 % 256) as u8));
    std::fs::write(file.path(), bytes).unwrap();
    damage(&file);
}

#[test]
fn another_family_is_named_with_those_that_work() {
    let file = TinyFile::new();
    TinyModel::new()
        .set("general.architecture", Value::String("llama".into()))
        .write(&file.path());
    let words = load_error(&file).to_string();
    assert!(
        words.contains("`llama`") && words.contains("qwen2"),
        "{words}"
    );
}

#[test]
fn another_tokenizer_is_named() {
    let file = TinyFile::new();
    TinyModel::new()
        .set("tokenizer.ggml.pre", Value::String("gpt-4o".into()))
        .write(&file.path());
    let error = load_error(&file);
    assert!(
        matches!(&error, LoadError::UnsupportedTokenizer { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("gpt-4o"));
}

#[test]
fn numbers_and_tensors_that_do_not_fit_are_damage() {
    let file = TinyFile::new();
    TinyModel::new()
        .without_tensor("blk.1.ffn_up.weight")
        .write(&file.path());
    assert!(damage(&file).contains("blk.1.ffn_up.weight"));
    TinyModel::new()
        .set("qwen2.embedding_length", Value::U32(64))
        .write(&file.path());
    assert!(damage(&file).contains("shape"));
    TinyModel::new()
        .set("qwen2.attention.head_count", Value::U32(0))
        .write(&file.path());
    assert!(damage(&file).contains("head_count"));
    TinyModel::new()
        .set("qwen2.attention.head_count", Value::U32(5))
        .write(&file.path());
    assert!(damage(&file).contains("evenly"));
    TinyModel::new()
        .set("tokenizer.ggml.eos_token_id", Value::U32(9999))
        .write(&file.path());
    assert!(damage(&file).contains("end token"));
}

#[test]
fn values_that_no_reader_expects_are_damage() {
    let file = TinyFile::new();
    for zero in [Value::U32(0), Value::U8(0), Value::I32(0)] {
        TinyModel::new()
            .set("general.alignment", zero)
            .write(&file.path());
        assert!(damage(&file).contains("alignment"));
    }
    // More bytes than the tree of all tokens has levels.
    let mut model = TinyModel::new();
    for (key, value) in &mut model.metadata {
        if let ("tokenizer.ggml.tokens", Value::Array(tokens)) = (key.as_str(), value) {
            tokens[0] = Value::String("a".repeat(5_000_000));
        }
    }
    model.write(&file.path());
    assert!(damage(&file).contains("5000000 bytes"));
}

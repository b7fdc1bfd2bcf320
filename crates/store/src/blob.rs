//! Long values, stored once in each conversation: a row has a reference with the hash in place of
//! the value.
//!
//! The result of a tool is in the event of its call, in the messages of the turn and in the log,
//! and so are texts of people and models. The hash depends only on the value's content, so equal
//! values share one entry wherever they occur.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::{fmt, io};

use adjutant_core::port::StoreError;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::digest::hash;

/// Most bytes of JSON that stay in place.
const SHORT: usize = 1024;

/// The beginning of a reference in JSON. No serializer escapes the letter `b`, so no text can look
/// like a reference.
const MARK: &str = "\"\\u0062lob:";

/// The beginnings of a reference in a text that is not JSON, and of such a text that begins with
/// this character itself.
const TEXT_MARK: char = '\u{1}';
const TEXT_BLOB: &str = "\u{1}blob:";
const TEXT_SELF: &str = "\u{1}text:";

/// Hexadecimal digits of a SHA-256.
const HASH: usize = 64;

/// Most levels of references, far more than are written. It ends a cycle in damaged data.
const DEPTH_MAX: u32 = 128;

/// Members whose value is moved out as a whole, if it is long even without its long texts: the
/// result and the arguments of a tool call.
const MEMBERS: [&[u8]; 2] = [b"\"data\"", b"\"arguments\""];

/// Values by the SHA-256 of their JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Blobs(BTreeMap<String, String>);

/// A referenced value that is missing.
#[derive(Debug, thiserror::Error)]
#[error("a long part of it, {0}, is missing")]
pub(crate) struct Missing(String);

impl Blobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over hashes and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(hash, body)| (hash.as_str(), body.as_str()))
    }

    pub(crate) fn has(&self, hash: &str) -> bool {
        self.0.contains_key(hash)
    }

    /// Adds the values of another collection.
    #[cfg(feature = "postgres")]
    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.clone());
    }

    pub(crate) fn insert(&mut self, hash: String, body: String) {
        self.0.insert(hash, body);
    }

    /// Stores a value and returns its reference.
    fn take(&mut self, body: String) -> String {
        let hash = hash(&body);
        let reference = format!("{MARK}{hash}\"");
        self.0.entry(hash).or_insert(body);
        reference
    }

    /// Serializes a value as [`Blobs::json`] does, and moves all of it out if it is still long.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> Result<String, StoreError> {
        let json = self.json(value)?;
        Ok(if json.len() > SHORT {
            self.take(json)
        } else {
            json
        })
    }

    /// Serializes a value as JSON, moving its long parts out.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<String, StoreError> {
        let unusable = |error: &dyn fmt::Display| {
            StoreError::unusable(format!("cannot be written as JSON: {error}"))
        };
        // Most values are short: they are written to the stack, and allocated once. Others do not fit,
        // and are serialized a second time.
        let mut short = [0; SHORT];
        let mut rest = &mut short[..];
        match serde_json::to_writer(&mut rest, value) {
            Ok(()) => {
                let len = SHORT - rest.len();
                let json = String::from_utf8(short[..len].to_vec());
                return json.map_err(|error| unusable(&error));
            }
            Err(error) if error.is_io() => {}
            Err(error) => return Err(unusable(&error)),
        }
        // Shared, because the serializer owns the writer and the formatter, and both need the
        // bytes.
        let out = Rc::new(RefCell::new(Out {
            bytes: Vec::with_capacity(2 * SHORT),
            blobs: std::mem::take(self),
        }));
        let split = Split {
            out: out.clone(),
            key: None,
            string: 0,
            members: Vec::new(),
        };
        let written = value.serialize(&mut Serializer::with_formatter(Written(out.clone()), split));
        let mut out = out.borrow_mut();
        *self = std::mem::take(&mut out.blobs);
        written.map_err(|error| unusable(&error))?;
        String::from_utf8(std::mem::take(&mut out.bytes)).map_err(|error| unusable(&error))
    }

    /// Returns a text that is not JSON, or its reference if it is long.
    pub(crate) fn text(&mut self, text: String) -> Result<String, StoreError> {
        if text.len() > SHORT {
            // Hashed as JSON, so that the same text in an event shares the entry.
            let reference = self.json(&text)?;
            return Ok(match reference.strip_prefix(MARK) {
                Some(hash) => format!("{TEXT_BLOB}{}", hash.trim_end_matches('"')),
                None => text,
            });
        }
        Ok(if text.starts_with(TEXT_MARK) {
            format!("{TEXT_SELF}{text}")
        } else {
            text
        })
    }

    /// Returns an optional text as [`Blobs::text`] does.
    pub(crate) fn optional_text(
        &mut self,
        text: Option<&String>,
    ) -> Result<Option<String>, StoreError> {
        text.map(|text| self.text(text.clone())).transpose()
    }

    /// Replaces the references in JSON by their values.
    pub(crate) fn whole(&self, json: String) -> Result<String, Missing> {
        if !json.contains(MARK) {
            return Ok(json);
        }
        let mut whole = String::with_capacity(2 * json.len());
        self.put(&json, &mut whole, 0)?;
        Ok(whole)
    }

    fn put(&self, json: &str, whole: &mut String, depth: u32) -> Result<(), Missing> {
        let mut rest = json;
        while let Some((before, hash, behind)) = next_reference(rest) {
            let body = self.0.get(hash).filter(|_| depth < DEPTH_MAX);
            let body = body.ok_or_else(|| Missing(hash.to_owned()))?;
            whole.push_str(before);
            self.put(body, whole, depth + 1)?;
            rest = behind;
        }
        whole.push_str(rest);
        Ok(())
    }

    /// Returns the text that [`Blobs::text`] was given.
    pub(crate) fn whole_text(&self, text: String) -> Result<String, Missing> {
        if let Some(hash) = text_reference(&text) {
            let body = self
                .0
                .get(hash)
                .and_then(|body| serde_json::from_str(body).ok());
            return body.ok_or_else(|| Missing(hash.to_owned()));
        }
        Ok(text
            .strip_prefix(TEXT_SELF)
            .map(str::to_owned)
            .unwrap_or(text))
    }
}

/// Iterates over the hashes that JSON refers to.
pub(crate) fn references(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let (_, hash, behind) = next_reference(rest)?;
        rest = behind;
        Some(hash)
    })
}

/// Splits JSON at its first reference: the text before it, its hash, and the text after it.
fn next_reference(json: &str) -> Option<(&str, &str, &str)> {
    let (before, behind) = json.split_once(MARK)?;
    // A quotation mark follows the hash.
    Some((before, behind.get(..HASH)?, behind.get(HASH + 1..)?))
}

/// Returns the hash of a text that is a reference and not JSON.
pub(crate) fn text_reference(text: &str) -> Option<&str> {
    text.strip_prefix(TEXT_BLOB)
        .filter(|hash| hash.len() == HASH)
}

/// The JSON written so far, and the values that were moved out of it.
struct Out {
    bytes: Vec<u8>,
    blobs: Blobs,
}

impl Out {
    /// Replaces what was written since `start` by a reference, if it is long.
    fn take_long(&mut self, start: usize) -> io::Result<()> {
        if self.bytes.len() - start > SHORT {
            let body = self.bytes.split_off(start);
            let body =
                String::from_utf8(body).map_err(|error| io::Error::other(error.utf8_error()))?;
            let reference = self.blobs.take(body);
            self.bytes.extend_from_slice(reference.as_bytes());
        }
        Ok(())
    }
}

struct Written(Rc<RefCell<Out>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON formatter that moves a long value out as soon as its end is written, so that at most one
/// long value is in memory besides those moved out.
struct Split {
    out: Rc<RefCell<Out>>,
    /// Start of the name of the member that is being written.
    key: Option<usize>,
    /// Start of the last string.
    string: usize,
    /// The members that are being written: the start of the value, and true if it is moved out as a
    /// whole.
    members: Vec<(usize, bool)>,
}

impl Split {
    fn len(&self) -> usize {
        self.out.borrow().bytes.len()
    }
}

impl Formatter for Split {
    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.string = self.len();
        writer.write_all(b"\"")
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\"")?;
        match self.key {
            // The name of a member stays in place, however long: only values are moved out.
            Some(_) => Ok(()),
            None => self.out.borrow_mut().take_long(self.string),
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.key = Some(self.len());
        Ok(())
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let key = self.key.take();
        // The borrow ends before the writer borrows the bytes again.
        let is_whole = {
            let out = self.out.borrow();
            key.and_then(|start| out.bytes.get(start..))
                .is_some_and(|name| MEMBERS.contains(&name))
        };
        writer.write_all(b":")?;
        self.members.push((self.len(), is_whole));
        Ok(())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        match self.members.pop() {
            Some((start, true)) => self.out.borrow_mut().take_long(start),
            Some((_, false)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn split(value: &Value) -> (String, Blobs) {
        let mut blobs = Blobs::default();
        let json = blobs.json(value).unwrap();
        (json, blobs)
    }

    #[test]
    fn what_is_short_stands_where_it_is() {
        let value = json!({"data": "x".repeat(900), "arguments": {"a": 1}});
        let (json, blobs) = split(&value);
        assert_eq!((json, blobs.is_empty()), (value.to_string(), true));
    }

    #[test]
    fn a_long_value_has_one_name_wherever_it_stands() {
        let text = "ä\"\\\u{1}\n€".repeat(300);
        let rows: Vec<Value> = (0..200)
            .map(|n| json!({"n": n, "long": text, "short": "x"}))
            .collect();
        for value in [
            json!(text),
            json!({"data": text}),
            json!({"data": rows}),
            json!({"arguments": {"a": text, "b": rows}}),
        ] {
            let (one, of_one) = split(&json!({"result": value, "x": 1.5}));
            let (other, of_other) =
                split(&json!([[{"kind": "other", "parts": [value, null]}], value]));
            assert_eq!(of_one, of_other);
            assert!(one.len() < 300 && other.len() < 600, "{one}\n{other}");
            assert!(references(&one).all(|hash| of_one.has(hash)) && references(&one).count() == 1);
            for (json, whole) in [
                (one, json!({"result": value, "x": 1.5})),
                (
                    other,
                    json!([[{"kind": "other", "parts": [value, null]}], value]),
                ),
            ] {
                let _: Value = serde_json::from_str(&json).expect("a row is JSON");
                assert_eq!(of_one.whole(json).unwrap(), whole.to_string());
            }
        }
    }

    #[test]
    fn texts_that_look_like_a_reference_come_back_unchanged() {
        let (_, blobs) = split(&json!("y".repeat(2000)));
        let hash = blobs.iter().next().unwrap().0;
        for text in [
            format!("{MARK}{hash}\""),
            format!("{TEXT_BLOB}{hash}"),
            format!("\\u0062lob:{hash}"),
            "\u{1}".to_owned(),
        ] {
            for value in [
                json!(text),
                json!({&text: text}),
                json!({"data": text, "long": "y".repeat(2000)}),
            ] {
                let (json, own) = split(&value);
                assert_eq!(own.whole(json).unwrap(), value.to_string());
            }
            let mut own = blobs.clone();
            let kept = own.text(text.clone()).unwrap();
            assert_eq!(text_reference(&kept), None);
            assert_eq!(own.whole_text(kept).unwrap(), text);
        }
    }

    #[test]
    fn a_long_text_that_is_not_json_has_the_name_that_it_has_in_json() {
        let text = "a\n".repeat(2000);
        let (_, blobs) = split(&json!({"text": text}));
        let mut own = Blobs::default();
        let kept = own.text(text.clone()).unwrap();
        assert_eq!(own, blobs);
        assert!(text_reference(&kept).is_some());
        assert_eq!(own.whole_text(kept.clone()).unwrap(), text);
        assert!(
            Blobs::default()
                .whole_text(kept)
                .unwrap_err()
                .to_string()
                .contains("missing")
        );
    }

    #[test]
    fn the_name_of_a_member_stays_where_it_is() {
        let value = json!({"x".repeat(3000): 1});
        let (json, blobs) = split(&value);
        assert_eq!((json, blobs.is_empty()), (value.to_string(), true));
    }

    #[test]
    fn a_missing_value_and_a_cycle_are_errors() {
        let (json, _) = split(&json!("y".repeat(2000)));
        let hash = references(&json).next().unwrap().to_owned();
        assert!(
            Blobs::default()
                .whole(json.clone())
                .unwrap_err()
                .to_string()
                .contains(&hash)
        );
        let mut endless = Blobs::default();
        endless.insert(hash, json.clone());
        assert!(endless.whole(json).is_err());
    }
}

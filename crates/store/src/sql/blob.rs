//! Long values that are kept beside the rows they belong to.

use std::collections::{BTreeMap, BTreeSet};

use super::{Connection, Failure, Value, values};
use crate::blob::{Blobs, references, text_reference};

/// Values that are read at once.
const AT_ONCE: usize = 16;

const READ: &str = "SELECT hash, body FROM adjutant_blob WHERE conversation = $1
     AND hash IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

/// Writes values, unless the conversation has them.
pub(super) async fn insert<C: Connection>(
    rows: &mut C,
    conversation: i64,
    blobs: &Blobs,
) -> Result<(), Failure> {
    for (hash, body) in blobs.iter() {
        rows.execute(
            "INSERT INTO adjutant_blob (conversation, hash, body) VALUES ($1, $2, $3)
             ON CONFLICT (conversation, hash) DO NOTHING",
            values![conversation, hash, body],
        )
        .await?;
    }
    Ok(())
}

/// Columns that may refer to values, and the conversation of each.
#[derive(Debug, Default)]
pub(super) struct Wanted(BTreeMap<i64, BTreeSet<String>>);

impl Wanted {
    /// Adds a column that is JSON.
    pub(super) fn add(&mut self, conversation: i64, json: &str) {
        references(json).for_each(|hash| self.insert(conversation, hash));
    }

    /// Adds a column that is not JSON.
    pub(super) fn add_text(&mut self, conversation: i64, text: &str) {
        text_reference(text)
            .into_iter()
            .for_each(|hash| self.insert(conversation, hash));
    }

    fn insert(&mut self, conversation: i64, hash: &str) {
        self.0
            .entry(conversation)
            .or_default()
            .insert(hash.to_owned());
    }

    /// Reads the values that are referred to, and those that these refer to. What is not there is
    /// left out.
    pub(super) async fn read<C: Connection>(self, rows: &mut C) -> Result<Blobs, Failure> {
        let mut blobs = Blobs::default();
        let mut wanted = self;
        while !wanted.0.is_empty() {
            let mut inner = Self::default();
            for (conversation, hashes) in wanted.0 {
                let hashes: Vec<String> =
                    hashes.into_iter().filter(|hash| !blobs.has(hash)).collect();
                for some in hashes.chunks(AT_ONCE) {
                    // The same one again changes nothing.
                    let padded = some
                        .iter()
                        .chain(some.last().into_iter().cycle())
                        .take(AT_ONCE);
                    let values: Vec<Value<'_>> = std::iter::once(Value::from(conversation))
                        .chain(padded.map(Value::from))
                        .collect();
                    for mut found in rows.fetch(READ, &values).await? {
                        let (hash, body) = (found.text()?, found.text()?);
                        inner.add(conversation, &body);
                        blobs.insert(hash, body);
                    }
                }
            }
            inner
                .0
                .values_mut()
                .for_each(|hashes| hashes.retain(|hash| !blobs.has(hash)));
            inner.0.retain(|_, hashes| !hashes.is_empty());
            wanted = inner;
        }
        Ok(blobs)
    }
}

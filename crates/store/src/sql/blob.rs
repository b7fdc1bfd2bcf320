//! Long values, which are stored beside the rows that refer to them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Connection, Failure, Value, values};
use crate::blob::{self, Blobs};

/// Values that are read by one statement.
const AT_ONCE: usize = 16;

const READ: &str = "SELECT hash, body FROM adjutant_blob WHERE conversation = $1
     AND hash IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

/// Inserts values that the conversation does not have yet.
pub(super) async fn insert<C: Connection>(
    tx: &mut C,
    conversation: i64,
    blobs: &Blobs,
) -> Result<(), Failure> {
    for (hash, body) in blobs.iter() {
        tx.execute(
            "INSERT INTO adjutant_blob (conversation, hash, body) VALUES ($1, $2, $3)
             ON CONFLICT (conversation, hash) DO NOTHING",
            values![conversation, hash, body],
        )
        .await?;
    }
    Ok(())
}

/// The hashes that columns refer to, by the key of their conversation.
#[derive(Debug, Default)]
pub(super) struct References(BTreeMap<i64, BTreeSet<String>>);

impl References {
    /// Adds the references of a JSON column.
    pub(super) fn add(&mut self, conversation: i64, json: &str) {
        blob::references(json).for_each(|hash| self.insert(conversation, hash));
    }

    /// Adds the reference of a column that is not JSON.
    pub(super) fn add_text(&mut self, conversation: i64, text: &str) {
        blob::text_reference(text)
            .into_iter()
            .for_each(|hash| self.insert(conversation, hash));
    }

    fn insert(&mut self, conversation: i64, hash: &str) {
        self.0
            .entry(conversation)
            .or_default()
            .insert(hash.to_owned());
    }

    /// Reads the values that are referred to, and those that these refer to. Missing values are
    /// left out.
    pub(super) async fn read<C: Connection>(self, tx: &mut C) -> Result<Blobs, Failure> {
        let mut blobs = Blobs::default();
        let mut references = self;
        while !references.0.is_empty() {
            let mut inner = Self::default();
            for (conversation, hashes) in references.0 {
                let hashes: Vec<String> =
                    hashes.into_iter().filter(|hash| !blobs.has(hash)).collect();
                for some in hashes.chunks(AT_ONCE) {
                    // The statement has a fixed number of parameters; repeating one changes
                    // nothing.
                    let padded = some
                        .iter()
                        .chain(some.last().into_iter().cycle())
                        .take(AT_ONCE);
                    let values: Vec<Value<'_>> = std::iter::once(Value::from(conversation))
                        .chain(padded.map(Value::from))
                        .collect();
                    for mut found in tx.fetch_all(READ, &values).await? {
                        let (hash, body): (_, String) = (found.get("hash")?, found.get("body")?);
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
            references = inner;
        }
        Ok(blobs)
    }
}

//! [`Ids`]: call ids in the form that a server accepts, the same in every request of a
//! conversation.

use std::collections::BTreeMap;

use adjutant_core::{CallId, ToolCall};

use super::super::dialect::CallIds;

/// The ids of the calls that were encoded so far.
#[derive(Debug)]
pub(super) struct Ids<'a> {
    form: CallIds,
    known: BTreeMap<&'a CallId, String>,
}

impl<'a> Ids<'a> {
    pub(super) fn new(form: CallIds) -> Self {
        Self {
            form,
            known: BTreeMap::new(),
        }
    }

    /// Returns the id of a call: the server's own, unless it is another vendor's or `is_taken` by
    /// another call of the same message.
    pub(super) fn call(
        &mut self,
        call: &'a ToolCall,
        is_foreign: bool,
        is_taken: impl Fn(&str) -> bool,
    ) -> String {
        let own = call
            .provider_id
            .as_deref()
            .filter(|_| !is_foreign)
            .map(|id| self.form.fit(id));
        let id = own
            .filter(|id| !is_taken(id))
            .unwrap_or_else(|| self.form.fit(call.id.as_str()));
        self.known.insert(&call.id, id.clone());
        id
    }

    /// Returns the id of the call that a result belongs to.
    pub(super) fn result(&self, call: &CallId) -> String {
        self.known
            .get(call)
            .cloned()
            .unwrap_or_else(|| self.form.fit(call.as_str()))
    }
}

impl CallIds {
    /// Returns the id unchanged if it has the form, else a hash of it, which is always the same.
    fn fit(self, id: &str) -> String {
        match self {
            // OpenAI refuses longer ids (`string_above_max_length`).
            Self::UpTo40 if (1..=40).contains(&id.len()) => id.to_owned(),
            Self::UpTo40 => format!("call_{:016x}", hash(id)),
            // Mistral refuses other ids ("must be a-z, A-Z, 0-9, with a length of 9").
            Self::Nine if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                id.to_owned()
            }
            Self::Nine => nine_characters(hash(id)),
        }
    }
}

fn nine_characters(mut number: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digit = |_| {
        let digit = DIGITS[(number % 62) as usize];
        number /= 62;
        char::from(digit)
    };
    (0..9).map(digit).collect()
}

/// FNV-1a, 64 bits. Ids only have to differ; they need no protection against an attacker.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_stays_and_another_is_always_the_same() {
        let long = "toolu_".repeat(12);
        assert_eq!(CallIds::UpTo40.fit("call_1"), "call_1");
        assert_eq!(CallIds::UpTo40.fit(&long), CallIds::UpTo40.fit(&long));
        assert_eq!(CallIds::UpTo40.fit(&long).len(), 21);
        assert_eq!(CallIds::Nine.fit("aB3xY9q12"), "aB3xY9q12");
        let fitted = ["call_8f3a_1", "call_8f3a_2", "call_12ab"].map(|id| CallIds::Nine.fit(id));
        for id in &fitted {
            assert!(
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{id}"
            );
        }
        assert!(fitted[0] != fitted[1] && fitted[1] != fitted[2]);
    }
}

//! Lexicons without one of their lists, to measure what each list adds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FILES, Lexicon, Lexicons};
use crate::WeakTools;

impl WeakTools {
    /// Returns the names of the word lists by which scored messages are read.
    ///
    /// # Errors
    /// A lexicon that is no JSON.
    pub fn word_lists() -> Result<Vec<String>, serde_json::Error> {
        let lists: BTreeMap<String, Value> = serde_json::from_str(FILES[0].1)?;
        Ok(lists.into_keys().collect())
    }

    /// Reads scored messages without the words of a list, in every language. The remaining lists
    /// are kept in memory until the process ends.
    ///
    /// # Errors
    /// A lexicon that is no JSON.
    pub fn without_word_list(mut self, name: &str) -> Result<Self, serde_json::Error> {
        let without = |(language, text)| -> Result<Lexicon, serde_json::Error> {
            let mut lists: Value = serde_json::from_str(text)?;
            if let Some(words) = lists.pointer_mut(&format!("/{name}/words")) {
                *words = json!([]);
            }
            let lexicon: Lexicon = serde_json::from_value(lists)?;
            Ok(lexicon.prepared(language))
        };
        let others = FILES.into_iter().map(without);
        let others = others.collect::<Result<Vec<Lexicon>, _>>()?;
        self.lexicons = Lexicons {
            others: Some(Box::leak(others.into_boxed_slice())),
        };
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::Language;

    use super::*;

    #[test]
    fn a_list_that_is_left_out_has_no_words_and_the_others_keep_theirs() {
        assert!(
            WeakTools::word_lists()
                .unwrap()
                .contains(&"when".to_owned())
        );
        let weak = WeakTools::new().without_word_list("when").unwrap();
        for language in Language::ALL {
            let (without, all) = (weak.lexicons.of(language), Lexicons::default().of(language));
            assert!(without.when.is_empty() && !all.when.is_empty());
            assert_eq!(without.last.iter().count(), all.last.iter().count());
            assert_eq!(without.language, language);
        }
    }
}

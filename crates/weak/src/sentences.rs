//! Sentences to the person in their language, which are data in `languages/sentences.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use adjutant_core::Language;

/// Names of sentences, with the sentence.
type Sentences = BTreeMap<String, String>;

static ALL: LazyLock<BTreeMap<String, Sentences>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and a test parses it"
    )]
    serde_json::from_str(include_str!("../languages/sentences.json")).expect("valid sentences")
});

/// Returns a sentence by its name. A test checks that every language has every name that is used.
pub(super) fn sentence(language: Language, name: &str) -> &'static str {
    ALL.get(language.code())
        .and_then(|sentences| sentences.get(name))
        .map(String::as_str)
        .unwrap_or_default()
}

/// Returns a sentence with its placeholders filled: `{what}` by the value of `what`.
pub(super) fn filled(language: Language, name: &str, values: &[(&str, &str)]) -> String {
    let mut text = sentence(language, name).to_owned();
    for (placeholder, value) in values {
        // Values may have braces of their own, so each placeholder is replaced once.
        text = text.replacen(&format!("{{{placeholder}}}"), value, 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_the_sentences_of_english() {
        let names = |language: Language| ALL[language.code()].keys().collect::<Vec<_>>();
        for language in Language::ALL {
            assert_eq!(names(language), names(Language::English), "{language}");
            for (name, english) in &ALL["en"] {
                let holes = |text: &str| text.contains("{what}");
                assert_eq!(
                    holes(sentence(language, name)),
                    holes(english),
                    "{language} {name}"
                );
            }
        }
    }
}

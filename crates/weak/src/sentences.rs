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

/// Returns several values as one for a sentence with `{what}` in quotation marks: each gets the
/// marks of the sentence.
pub(super) fn joined(language: Language, name: &str, values: &[String]) -> String {
    values.join(&between(sentence(language, name)))
}

/// Reads the values of the placeholders of a sentence that a text begins with after it was
/// [`filled`], in the order of the sentence, and what stands behind it. Each may be several that were
/// [`joined`]. `None` for another text.
pub(super) fn values<'a>(
    language: Language,
    name: &str,
    text: &'a str,
) -> Option<(Vec<Vec<String>>, &'a str)> {
    let template = sentence(language, name);
    let separator = between(template);
    let mut parts = template.split(['{', '}']);
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    while let (Some(_), Some(behind)) = (parts.next(), parts.next()) {
        let end = rest.find(behind)?;
        let several = rest[..end].split(&separator).map(str::to_owned);
        values.push(several.collect());
        rest = &rest[end + behind.len()..];
    }
    (!values.is_empty()).then_some((values, rest))
}

/// Returns what stands between two values in the quotation marks of a sentence.
fn between(template: &str) -> String {
    let (open, close) = match template {
        _ if template.contains('\u{ab}') => ("\u{ab}", "\u{bb}"),
        _ if template.contains('\u{201e}') => ("\u{201e}", "\u{201c}"),
        _ => ("\u{201c}", "\u{201d}"),
    };
    // French has blanks inside of the marks.
    let blank = if template.contains("\u{ab} ") {
        " "
    } else {
        ""
    };
    format!("{blank}{close}, {open}{blank}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_question_are_read_in_every_language() {
        for language in Language::ALL {
            let values = [
                ("what", "1. \u{201c}A\u{201d}, (b)"),
                ("text", "Zug: 7.30?"),
            ];
            let question = filled(language, "sure_reword_to", &values);
            let (read, rest) = super::values(language, "sure_reword_to", &question).unwrap();
            assert_eq!(rest, "");
            let expected = values.map(|(_, value)| vec![value.to_owned()]);
            assert_eq!(read, expected, "{question}");
            let texts = ["milk".to_owned(), "l'eau, \u{ab}plate\u{bb}".to_owned()];
            let what = joined(language, "sure_create", &texts);
            let question = filled(language, "sure_create", &[("what", &what)]) + " And?";
            let read = super::values(language, "sure_create", &question).unwrap();
            assert_eq!(read, (vec![texts.to_vec()], " And?"), "{question}");
            assert_eq!(super::values(language, "sure_delete", &question), None);
        }
    }

    #[test]
    fn every_language_has_the_sentences_of_english() {
        let names = |language: Language| ALL[language.code()].keys().collect::<Vec<_>>();
        for language in Language::ALL {
            assert_eq!(names(language), names(Language::English), "{language}");
            for (name, english) in &ALL["en"] {
                let holes = |text: &str| [text.contains("{what}"), text.contains("{text}")];
                assert_eq!(
                    holes(sentence(language, name)),
                    holes(english),
                    "{language} {name}"
                );
            }
        }
    }
}

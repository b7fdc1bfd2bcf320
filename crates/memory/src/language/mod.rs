//! Tokens of a text, its language, its stop words and the stems of its words.
//!
//! Text of scripts without spaces between words is divided into bigrams, pairs of neighbouring
//! characters: the usual way to search such text without a dictionary.

mod irregular; // irregular forms of English words

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The languages for which there are both stop words and a stemmer. English first: it wins ties.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let all = [
        ("en", Algorithm::English),
        ("ar", Algorithm::Arabic),
        ("da", Algorithm::Danish),
        ("nl", Algorithm::Dutch),
        ("fi", Algorithm::Finnish),
        ("fr", Algorithm::French),
        ("de", Algorithm::German),
        ("el", Algorithm::Greek),
        ("hu", Algorithm::Hungarian),
        ("it", Algorithm::Italian),
        ("no", Algorithm::Norwegian),
        ("pt", Algorithm::Portuguese),
        ("ro", Algorithm::Romanian),
        ("ru", Algorithm::Russian),
        ("es", Algorithm::Spanish),
        ("sv", Algorithm::Swedish),
        ("tr", Algorithm::Turkish),
    ];
    let known = all
        .into_iter()
        .filter(|(code, _)| stop_words::lookup(code).is_some());
    let indexed = known
        .enumerate()
        .map(|(index, (code, algorithm))| Language {
            index,
            code,
            stemmer: Stemmer::create(algorithm),
        });
    indexed.collect()
});

/// The languages in which a word is a stop word, one bit for each.
static STOP_WORDS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for language in LANGUAGES.iter() {
        for word in stop_words::lookup(language.code).into_iter().flatten() {
            *words.entry(normalize(word).into_owned()).or_insert(0) |= language.bit();
        }
    }
    words
});

/// The languages in which a word is a stop word.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StopWordIn(u32);

impl StopWordIn {
    /// Returns true if the word is a stop word of a language.
    pub(crate) fn has(self, language: &Language) -> bool {
        self.0 & language.bit() != 0
    }
}

/// Returns the languages in which a normalised word is a stop word.
pub(crate) fn stop_word_in(word: &str) -> StopWordIn {
    StopWordIn(STOP_WORDS.get(word).copied().unwrap_or_default())
}

/// Returns all supported languages, each at its [`index`](Language::index).
pub(crate) fn all_languages() -> &'static [Language] {
    &LANGUAGES
}

/// A language with its stop words and its stemmer.
pub(crate) struct Language {
    index: usize,
    code: &'static str,
    stemmer: Stemmer,
}

impl Language {
    /// Returns the language of texts without stop words: English.
    pub(crate) fn fallback() -> Option<&'static Self> {
        LANGUAGES.first()
    }

    /// Returns the language with an ISO 639-1 code.
    pub(crate) fn from_code(code: &str) -> Option<&'static Self> {
        LANGUAGES.iter().find(|language| language.code == code)
    }

    /// Detects the language of normalised words: the one of most of their stop words. `None` if
    /// there is no stop word among them.
    pub(crate) fn detect<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<&'static Self> {
        let mut tally = LanguageTally::default();
        words.into_iter().for_each(|word| tally.count(word));
        tally.language()
    }

    /// Returns its index in [`all_languages`].
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns its ISO 639-1 code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns true if a normalised word is a stop word: too frequent to tell what a text is about.
    pub(crate) fn is_stop(&self, word: &str) -> bool {
        stop_word_in(word).has(self)
    }

    /// Returns the stem of a normalised word, without accents, because many people do not type
    /// them.
    pub(crate) fn stem(&self, word: &str) -> String {
        // English, the only language with a table of irregular forms.
        let base = if self.index == 0 {
            irregular::base(word)
        } else {
            word
        };
        // With and without accents it is one word, such as `café` and `cafe`.
        without_accents(&self.stemmer.stem(base)).into_owned()
    }

    /// Returns the irregular forms of a normalised word, which may begin otherwise than its stem.
    pub(crate) fn forms(&self, word: &str) -> &'static [&'static str] {
        if self.index == 0 {
            irregular::forms(word)
        } else {
            &[]
        }
    }

    fn bit(&self) -> u32 {
        1 << self.index
    }
}

/// A count of the stop words of each language in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LanguageTally([u16; 32]);

impl LanguageTally {
    /// Counts a normalised word for each language in which it is a stop word.
    pub(crate) fn count(&mut self, word: &str) {
        let mut languages = STOP_WORDS.get(word).copied().unwrap_or_default();
        while languages != 0 {
            if let Some(count) = self.0.get_mut(languages.trailing_zeros() as usize) {
                *count = count.saturating_add(1);
            }
            languages &= languages - 1;
        }
    }

    /// Returns the language with the most stop words, the first of equals. `None` if no stop word
    /// was counted.
    pub(crate) fn language(&self) -> Option<&'static Language> {
        let most = *self.0.iter().max()?;
        (most > 0)
            .then(|| LANGUAGES.get(self.0.iter().position(|count| *count == most)?))
            .flatten()
    }
}

/// A token: a word, or a bigram of a script without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// The offset of its first byte in the text.
    pub(crate) at: usize,
    /// The word, normalised: in lower case, compatible forms joined, one apostrophe, without a
    /// possessive `'s`.
    pub(crate) word: &'a str,
    /// True for two neighbouring characters of a script without spaces, or one that stands alone.
    /// It has no stem.
    pub(crate) is_bigram: bool,
}

/// Calls `take` with each token of a text, in order.
pub(crate) fn each_token(text: &str, mut take: impl FnMut(Token<'_>)) {
    let mut buffer = String::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        if !byte.is_ascii() {
            let Some(char) = char_at(text, at) else { break };
            if is_unspaced(char) {
                at = emit_bigrams(text, at, &mut take);
                continue;
            }
            if !char.is_alphanumeric() {
                at += char.len_utf8();
                continue;
            }
        }
        let end = word_end(text, at);
        emit_word(
            text.get(at..end).unwrap_or_default(),
            at,
            &mut buffer,
            &mut take,
        );
        at = end;
    }
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Returns the end of the word that begins at `from`.
fn word_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let goes_on = |at: usize| char_at(text, at).is_some_and(char::is_alphanumeric);
    let mut at = from;
    loop {
        while byte(at).is_ascii_alphanumeric() {
            at += 1;
        }
        let next = match byte(at) {
            b'\'' if goes_on(at + 1) => at + 1,
            // A number is one word: 10.5 is neither 10 nor 5.
            b'.' | b','
                if at > from && byte(at - 1).is_ascii_digit() && byte(at + 1).is_ascii_digit() =>
            {
                at + 1
            }
            ascii if ascii.is_ascii() => at,
            _ => match char_at(text, at) {
                // The typographic apostrophe has three bytes.
                Some('\u{2019}') if goes_on(at + 3) => at + 3,
                Some(char)
                    if !is_unspaced(char)
                        && (char.is_alphanumeric() || is_combining_mark(char)) =>
                {
                    at + char.len_utf8()
                }
                Some(_) | None => at,
            },
        };
        if next == at {
            return at;
        }
        at = next;
    }
}

/// Emits the bigrams of a run of characters without spaces, or its single character; returns the
/// end of the run.
fn emit_bigrams(text: &str, from: usize, take: &mut impl FnMut(Token<'_>)) -> usize {
    let (mut before, mut is_alone, mut at) = (from, true, from);
    while let Some(char) = char_at(text, at).filter(|char| is_unspaced(*char)) {
        let end = at + char.len_utf8();
        // A combining mark is a part of the character before.
        if at > from && !is_combining_mark(char) {
            take(Token {
                at: before,
                word: text.get(before..end).unwrap_or_default(),
                is_bigram: true,
            });
            (before, is_alone) = (at, false);
        }
        at = end;
    }
    if is_alone {
        take(Token {
            at: from,
            word: text.get(from..at).unwrap_or_default(),
            is_bigram: true,
        });
    }
    at
}

/// Emits a word in its normal form. Most words are lower-case ASCII and need no buffer.
fn emit_word(word: &str, at: usize, buffer: &mut String, take: &mut impl FnMut(Token<'_>)) {
    let word = if !word.is_ascii() {
        *buffer = normalize(word).into_owned();
        buffer.as_str()
    } else if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        buffer.clear();
        buffer.push_str(word);
        buffer.make_ascii_lowercase();
        buffer.as_str()
    } else {
        word
    };
    take(Token {
        at,
        word: without_possessive(word),
        is_bigram: false,
    });
}

/// Returns a text in its normal form: compatibility forms composed (NFKC), lower case, one
/// apostrophe.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    {
        return Cow::Borrowed(text);
    }
    let one = |char| if char == '\u{2019}' { '\'' } else { char };
    Cow::Owned(text.nfkc().flat_map(char::to_lowercase).map(one).collect())
}

/// Removes a possessive `'s`: "Josh's" is about Josh.
fn without_possessive(word: &str) -> &str {
    word.strip_suffix("'s").unwrap_or(word)
}

/// Returns a word without the accents that are combining diacritical marks; marks of other scripts
/// distinguish letters and stay.
pub(crate) fn without_accents(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    Cow::Owned(
        word.nfd()
            .filter(|char| !('\u{300}'..='\u{36F}').contains(char))
            .collect(),
    )
}

/// Returns true for a character of a script that is written without spaces: Han, Hiragana,
/// Katakana, Thai, Lao, Burmese, Khmer or Tibetan.
pub(crate) fn is_unspaced(char: char) -> bool {
    matches!(u32::from(char),
        0x0E00..=0x0EFF | 0x0F00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007
        | 0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_token(text, |token| {
            assert!(text.get(token.at..).is_some(), "{token:?}");
            found.push(token.word.to_owned());
        });
        found
    }

    #[test]
    fn words_are_read_in_one_form() {
        assert_eq!(
            tokens("Don’t Josh's “Café” self-care_2 10.5 'quoted' naïve"),
            [
                "don't", "josh", "café", "self", "care", "2", "10.5", "quoted", "naïve"
            ]
        );
        assert_eq!(tokens("नमस्ते दुनिया"), ["नमस्ते", "दुनिया"]);
        assert_eq!(tokens("  ..  "), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_give_bigrams() {
        assert_eq!(
            tokens("我喜欢茶 abc 茶"),
            ["我喜", "喜欢", "欢茶", "abc", "茶"]
        );
        assert_eq!(tokens("x茶y"), ["x", "茶", "y"]);
    }

    #[test]
    fn the_language_is_that_of_most_stop_words() {
        let code = |text: &str| {
            let mut tally = LanguageTally::default();
            each_token(text, |token| tally.count(token.word));
            tally.language().map(|language| language.code)
        };
        assert_eq!(code("the cat and the dog"), Some("en"));
        assert_eq!(code("die Katze und der Hund"), Some("de"));
        assert_eq!(code("le chat et les chiens sont là"), Some("fr"));
        assert_eq!(code("Munich 2024"), None);
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let english = Language::fallback().unwrap();
        for forms in [
            ["went", "goes"],
            ["bought", "buying"],
            ["children", "child"],
            ["running", "ran"],
        ] {
            assert_eq!(english.stem(forms[0]), english.stem(forms[1]));
        }
        assert!(english.is_stop("the") && !english.is_stop("cat"));
    }
}

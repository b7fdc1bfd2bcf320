//! Words of a message or label in any of the languages, folded so that case and accents do not
//! count.

use adjutant_core::{Language, edit_distance};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::analysis;

/// A word with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word in lower case and without diacritics.
    pub(crate) folded: String,
    /// Bytes of the text, from the word's first to behind its last.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// English words behind which 's stands for another word, and not for an owner.
const CONTRACTED: [&str; 10] = [
    "he", "here", "how", "it", "let", "she", "that", "there", "what", "who",
];

/// Returns the words of a text. Elided articles and pronouns are words of their own: "l'eau".
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut start = None;
    let apostrophe = |c: char| matches!(c, '\'' | '\u{2019}');
    let mut push = |from: usize, to: usize| {
        let raw = text[from..to].trim_end_matches(apostrophe);
        if raw.is_empty() {
            return;
        }
        // An elision has one or two letters in front of its apostrophe: l', qu'.
        let elided = raw
            .char_indices()
            .find(|(_, c)| apostrophe(*c))
            .filter(|(at, _)| {
                let in_front = fold(&raw[..*at]);
                matches!(
                    in_front.as_str(),
                    "l" | "d" | "j" | "qu" | "n" | "m" | "t" | "s" | "c" | "jusqu"
                ) && raw.len() > at + 2
            });
        let cut = elided.map_or(0, |(at, mark)| at + mark.len_utf8());
        if cut > 0 {
            words.push(Word {
                folded: fold(raw[..cut].trim_end_matches(apostrophe)),
                start: from,
                end: from + cut,
            });
        }
        let rest = &raw[cut..];
        let folded = fold(rest);
        let owner = folded.strip_suffix("'s");
        let folded = owner
            .filter(|owner| !CONTRACTED.contains(owner))
            .unwrap_or(&folded)
            .to_owned();
        words.push(Word {
            folded,
            start: from + cut,
            end: from + raw.len(),
        });
    };
    for (at, c) in text.char_indices() {
        let inside =
            c.is_alphanumeric() || is_combining_mark(c) || (apostrophe(c) && start.is_some());
        match (start, inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                push(from, at);
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    if let Some(from) = start {
        push(from, text.len());
    }
    words
}

/// Returns a text in lower case and without diacritics.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.to_lowercase().nfd().filter(|c| !is_combining_mark(*c)) {
        match c {
            'ß' => folded.push_str("ss"),
            'œ' => folded.push_str("oe"),
            'æ' => folded.push_str("ae"),
            'ø' => folded.push('o'),
            '\u{2019}' => folded.push('\''),
            c => folded.push(c),
        }
    }
    folded
}

/// The similarity of two folded words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    Different,
    /// One of them may be a misspelling of the other, or a part of a compound.
    Near,
    /// They may be forms of one word.
    Form,
    Same,
}

/// Fewest letters of a word that is found in a compound.
const PART_CHARS_MIN: usize = 5;
/// Fewest letters of words that are compared by their pairs of letters.
const PAIRED_CHARS_MIN: usize = 6;

/// Compares two folded words of a language.
pub(crate) fn likeness(a: &str, b: &str, language: Language) -> Likeness {
    if a == b {
        return Likeness::Same;
    }
    if is_number(a) || is_number(b) {
        return Likeness::Different;
    }
    if analysis::likeness(a, b) == analysis::Likeness::Same {
        return Likeness::Form;
    }
    let is_form = match language {
        Language::English => false,
        Language::German => share_stem(a, b, 4) || share_stem(&without_ge(a), &without_ge(b), 4),
        _ => share_stem(a, b, 3),
    };
    if is_form {
        return Likeness::Form;
    }
    let (shorter, longer) = match a.chars().count() <= b.chars().count() {
        true => (a, b),
        false => (b, a),
    };
    let (short, long) = (shorter.chars().count(), longer.chars().count());
    // A short word is another word after one change: "car" and "cat".
    let allowed = match short {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    };
    let begins_alike = a.chars().next() == b.chars().next();
    if begins_alike && long - short <= allowed && edit_distance(a, b) <= allowed {
        return Likeness::Near;
    }
    if begins_alike && short >= PAIRED_CHARS_MIN && shared_pairs(a, b) >= 0.75 {
        return Likeness::Near;
    }
    let inside = longer.starts_with(shorter) || longer.ends_with(shorter);
    if language == Language::German && short >= PART_CHARS_MIN && inside {
        return Likeness::Near;
    }
    Likeness::Different
}

/// Returns true if two words share their beginning of `least` letters, and most of the longer one.
/// Three letters are enough only if vowels follow, as in forms of a verb: "pago", "pagar".
fn share_stem(a: &str, b: &str, least: usize) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let ends = |word: &str| {
        word.chars()
            .nth(common)
            .is_none_or(|c| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u'))
    };
    let is_stem = common > 3 || ends(a) && ends(b);
    let (a, b) = (a.chars().count(), b.chars().count());
    let longer = a.max(b);
    let most = common * 10 >= longer * 6 && longer - common <= 4;
    a.min(b) >= 4 && common >= least && most && is_stem
}

/// Returns the share of the pairs of letters that two words have in common (the Dice coefficient).
fn shared_pairs(a: &str, b: &str) -> f32 {
    let pairs =
        |word: &str| -> Vec<(char, char)> { word.chars().zip(word.chars().skip(1)).collect() };
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let common = a
        .iter()
        .filter(|pair| {
            let place = b.iter().position(|other| other == *pair);
            place.map(|at| b.swap_remove(at)).is_some()
        })
        .count();
    2.0 * common as f32 / all.max(1) as f32
}

/// Separable prefixes of German verbs, and none.
const PREFIXES: [&str; 18] = [
    "", "ab", "an", "auf", "aus", "bei", "ein", "fest", "heim", "her", "hin", "los", "mit", "nach",
    "um", "vor", "weg", "zu",
];

/// Removes the "ge" of a German participle, also behind a separable prefix: "eingekauft".
fn without_ge(word: &str) -> String {
    PREFIXES
        .iter()
        .find_map(|prefix| {
            let rest = word.strip_prefix(prefix)?.strip_prefix("ge")?;
            (rest.len() >= 3).then(|| format!("{prefix}{rest}"))
        })
        .unwrap_or_else(|| word.to_owned())
}

/// Removes the "zu" behind the separable prefix of a German infinitive: "einzukaufen".
pub(crate) fn without_zu(word: &str) -> Option<String> {
    PREFIXES.iter().find_map(|prefix| {
        let rest = word.strip_prefix(prefix)?.strip_prefix("zu")?;
        let is_verb = !prefix.is_empty() && is_infinitive(rest, Language::German);
        is_verb.then(|| format!("{prefix}{rest}"))
    })
}

/// Returns true if a word ends like an infinitive. English ones have no ending of their own, so none
/// is one.
pub(crate) fn is_infinitive(word: &str, language: Language) -> bool {
    let endings: &[&str] = match language {
        Language::German => &["en", "ern", "eln"],
        Language::French => &["er", "ir", "re", "oir"],
        Language::Spanish | Language::Portuguese => &["ar", "er", "ir", "or"],
        _ => &[],
    };
    word.chars().count() > 3 && endings.iter().any(|ending| word.ends_with(ending))
}

/// Returns true if a word is written in digits.
pub(crate) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the place of a phrase among words, from its first word to behind its last.
pub(crate) fn find(words: &[Word], phrase: &[String]) -> Option<(usize, usize)> {
    (0..words.len()).find_map(|at| Some((at, stands_at(words, at, phrase)?)))
}

/// Returns the place behind a phrase that begins at a word, as it is written.
pub(crate) fn stands_exactly_at(words: &[Word], at: usize, phrase: &[String]) -> Option<usize> {
    let here = words.get(at..at + phrase.len())?;
    let same = here.iter().map(|word| &word.folded).eq(phrase);
    (!phrase.is_empty() && same).then_some(at + phrase.len())
}

/// Returns the place behind a phrase that begins at a word. A misspelt word counts as itself.
pub(crate) fn stands_at(words: &[Word], at: usize, phrase: &[String]) -> Option<usize> {
    let here = words.get(at..at + phrase.len())?;
    let same =
        |(word, other): (&Word, &String)| word.folded == *other || is_misspelt(&word.folded, other);
    (!phrase.is_empty() && here.iter().zip(phrase).all(same)).then_some(at + phrase.len())
}

/// Returns true if a word is another one with two neighbouring letters swapped, or with one letter
/// of a long word wrong.
pub(crate) fn is_misspelt(word: &str, other: &str) -> bool {
    let (length, others) = (word.chars().count(), other.chars().count());
    let swapped = length == others && length >= 3 && {
        let (mut a, mut b): (Vec<char>, Vec<char>) =
            (word.chars().collect(), other.chars().collect());
        a.sort_unstable();
        b.sort_unstable();
        a == b
    };
    let begins_alike = word.chars().next() == other.chars().next();
    swapped && edit_distance(word, other) == 1
        || length.min(others) >= 5
            && length.abs_diff(others) <= 1
            && begins_alike
            && edit_distance(word, other) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<String> {
        words(text).into_iter().map(|word| word.folded).collect()
    }

    #[test]
    fn accents_case_and_elisions_do_not_count() {
        assert_eq!(
            folded("J’ai acheté l'eau"),
            ["j", "ai", "achete", "l", "eau"]
        );
        assert_eq!(folded("Straße, MÜLL!"), ["strasse", "mull"]);
        assert_eq!(
            folded("don't call Tyler's mum"),
            ["don't", "call", "tyler", "mum"]
        );
        let text = "  Ação: 7b";
        let places: Vec<&str> = words(text)
            .iter()
            .map(|word| &text[word.start..word.end])
            .collect();
        assert_eq!(places, ["Ação", "7b"]);
    }

    #[test]
    fn forms_misspellings_and_compounds_are_alike() {
        use Language::{English, French, German, Spanish};
        for (a, b, language) in [
            ("compre", "comprar", Spanish),
            ("gekauft", "kaufen", German),
            ("abgeholt", "abholen", German),
            ("rosen", "rose", German),
            ("baked", "bake", English),
        ] {
            assert_eq!(likeness(a, b, language), Likeness::Form, "{a} {b}");
        }
        for (a, b, language) in [
            ("delte", "delete", English),
            ("steuer", "steuererklarung", German),
            ("netoye", "nettoyer", French),
        ] {
            assert_eq!(likeness(a, b, language), Likeness::Near, "{a} {b}");
        }
        for (a, b) in [
            ("car", "cat"),
            ("2041", "2042"),
            ("boat", "coat"),
            ("tablets", "table"),
        ] {
            assert_eq!(likeness(a, b, English), Likeness::Different, "{a} {b}");
        }
    }
}

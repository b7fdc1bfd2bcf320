//! Classification of text answers as answers, questions and refusals.
//!
//! It decides the category in the log and nothing else, by the form of the answer: the position of
//! a question, the person addressed, the text before and after. What the form does not tell is a
//! short table of phrases for each language in [`LANGUAGES`]; an answer in another language is an
//! answer, unless it is a single question.

use std::sync::LazyLock;

use serde::Deserialize;

/// The meaning of a text answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The text answers, or reports what was done.
    Answer,
    /// The text asks the person for something that is needed to continue.
    Question,
    /// The text offers what was requested as a question, which is not one if something was said or
    /// done already.
    Offer,
    /// The text declines the request.
    Refusal,
}

/// Maximum number of words before an offer that is the point of the answer.
const WORDS_BEFORE_OFFER_MAX: usize = 30;
/// Maximum number of words after a refusal that is the point of the answer.
const WORDS_BEHIND_REFUSAL_MAX: usize = 80;
/// Maximum number of sentences after a question that explain it.
const SENTENCES_BEHIND_QUESTION_MAX: usize = 3;
/// Maximum length of a quotation that is skipped, in bytes.
const QUOTATION_MAX: usize = 400;
/// Maximum number of words of a first sentence without content, such as an apology.
const WORDS_OF_OPENING_MAX: usize = 6;

/// Phrases of a language that decide what the form alone does not: lower case, without punctuation,
/// matched as whole words. `..` stands for any words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    /// English name of the language.
    #[serde(rename = "language")]
    _name: String,
    /// Words for the person who is asked.
    you: Phrases,
    /// Words for what is asked for.
    what: Phrases,
    /// Other phrases that mark a question.
    asks: Phrases,
    /// Questions that need no answer.
    courtesies: Phrases,
    /// Questions that offer an action of the assistant.
    offers: Phrases,
    /// Questions that offer anything else: courtesies, unless they name two alternatives.
    invites: Phrases,
    /// Conjunctions between alternatives.
    or: Phrases,
    /// Phrases for a missing thing that precede an offer.
    missing: Phrases,
    /// Requests without a question mark.
    requests: Phrases,
    /// "I cannot": a refusal where nothing was said before it, unless one of `limits` follows. `^`:
    /// at the beginning only.
    cannot: Phrases,
    /// Objects of "I cannot" that are about the answer itself.
    limits: Phrases,
    /// Phrases that introduce "I cannot" in a later sentence.
    regrets: Phrases,
    /// Refusals of the request itself, in any of the first sentences.
    declines: Phrases,
    /// Conditions that turn a refusal into a request, and a request into a courtesy.
    conditions: Phrases,
    /// First words of an answer that is not a refusal.
    affirms: Phrases,
}

type Phrases = Vec<String>;

/// The languages whose phrases are known. They are data, and parsed when the first answer is read.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the file is compiled in, and tests read answers with it"
    )]
    serde_json::from_str(include_str!("../../languages/answers.json")).expect("valid phrases")
});

/// Classifies a text answer.
pub(super) fn read(answer: &str) -> Reading {
    let sentences = sentences(answer);
    if declines(&sentences) {
        Reading::Refusal
    } else {
        asks(&sentences)
    }
}

/// Returns true if the beginning of an answer declines the request.
fn declines(sentences: &[Sentence]) -> bool {
    let mut before = 0;
    // A refusal comes first: what follows explains it, or offers something else.
    for (index, sentence) in sentences.iter().take(3).enumerate() {
        if LANGUAGES
            .iter()
            .any(|language| index == 0 && sentence.begins_with(&language.affirms))
        {
            return false;
        }
        // The language of an answer is not known, so each table is tried.
        let declines = |language: &Language| {
            let is_led_to =
                before <= WORDS_OF_OPENING_MAX || sentence.begins_with(&language.regrets);
            let declines =
                sentence.has(&language.declines) || (is_led_to && sentence.is_unable(language));
            declines && !sentence.has(&language.conditions)
        };
        if !sentence.is_question && LANGUAGES.iter().any(declines) {
            // A long text behind it is the answer after all.
            return words(&sentences[index + 1..]) <= WORDS_BEHIND_REFUSAL_MAX;
        }
        // Words before a sentence decide if it leads the answer or comments on it.
        before += sentence.words;
    }
    false
}

/// Returns the question in an answer that has to be answered to continue.
fn asks(sentences: &[Sentence]) -> Reading {
    let is_courtesy = |sentence: &Sentence| {
        LANGUAGES
            .iter()
            .any(|language| sentence.has(&language.courtesies))
    };
    for (index, sentence) in sentences.iter().enumerate() {
        let (before, behind) = (&sentences[..index], &sentences[index + 1..]);
        let explains = behind.iter().filter(|sentence| !sentence.is_item).count();
        // A question in front of a long text, or in a list, is a heading or an example.
        if sentence.is_item || explains > SENTENCES_BEHIND_QUESTION_MAX || is_courtesy(sentence) {
            continue;
        }
        for language in LANGUAGES.iter() {
            match sentence.asks(language, explains == 0) {
                Reading::Offer => {
                    let is_instead = before
                        .iter()
                        .any(|sentence| sentence.has(&language.missing));
                    if is_instead || words(before) <= WORDS_BEFORE_OFFER_MAX {
                        return Reading::Offer;
                    }
                }
                Reading::Question => return Reading::Question,
                Reading::Answer | Reading::Refusal => {}
            }
        }
    }
    let (said, items) = sentences.split_at(sentences.partition_point(|sentence| !sentence.is_item));
    let asked = match (said, items) {
        // In any language: a single question can be nothing else.
        ([only], []) => only.is_question && !is_courtesy(only),
        // A list of questions. Titles of tasks in a list are not addressed to the person.
        ([.., lead], [_, ..])
            if lead.is_open && items.iter().all(|item| item.is_item && item.is_question) =>
        {
            let is_put = |language: &Language| {
                items
                    .iter()
                    .all(|item| item.has(&language.you) || item.begins_with(&language.what))
            };
            LANGUAGES.iter().any(is_put)
        }
        _ => false,
    };
    if asked {
        Reading::Question
    } else {
        Reading::Answer
    }
}

/// A sentence outside of code and quotations, or an item of a list.
#[derive(Debug)]
struct Sentence {
    /// Lower-case text with single spaces around words, without punctuation.
    text: String,
    words: usize,
    /// True if it ends with a question mark.
    is_question: bool,
    /// True if it ends with a colon.
    is_open: bool,
    is_item: bool,
    /// Byte offset of the part after the last colon.
    last_part: usize,
}

impl Sentence {
    fn has(&self, phrases: &[String]) -> bool {
        phrases.iter().any(|phrase| self.behind(phrase).is_some())
    }

    fn begins_with(&self, phrases: &[String]) -> bool {
        begins_with(&self.text, phrases)
    }

    /// Returns the text after a phrase, with spaces around it.
    fn behind(&self, phrase: &str) -> Option<&str> {
        if let Some(phrase) = phrase.strip_prefix('^') {
            let begins = self.text.starts_with(&format!(" {phrase} "));
            return begins.then(|| &self.text[phrase.len() + 1..]);
        }
        phrase
            .split(" .. ")
            .try_fold(self.text.as_str(), |text, part| {
                let at = text.find(&format!(" {part} "))?;
                Some(&text[at + part.len() + 1..])
            })
    }

    /// Classifies the sentence with the phrases of a language.
    fn asks(&self, language: &Language, is_last: bool) -> Reading {
        let begin = [
            &language.what,
            &language.asks,
            &language.offers,
            &language.invites,
        ];
        let opens = |text: &str| begin.iter().any(|phrases| begins_with(text, phrases));
        let is_asked =
            self.is_question || (self.is_open && opens(&self.text) && self.has(&language.you));
        if !is_asked {
            let requests = self.has(&language.requests) && !self.has(&language.conditions);
            return if requests {
                Reading::Question
            } else {
                Reading::Answer
            };
        }
        // Text after a colon inside a sentence may be data, such as titles of tasks.
        let is_data =
            self.last_part > 0 && !opens(&self.text) && !opens(&self.text[self.last_part..]);
        // The last question of an answer needs no address: "Which day?"
        let is_short = is_last && (self.has(&language.what) || self.has(&language.asks));
        if is_data || !(is_short || self.has(&language.you)) {
            return Reading::Answer;
        }
        let offers = self.begins_with(&language.offers)
            || (self.has(&language.offers) && !self.has(&language.what));
        match (offers, self.begins_with(&language.invites)) {
            (false, false) => Reading::Question,
            // "Would you like tea or coffee?" has to be answered, "Would you like to know more?"
            // has not.
            (false, true) if !self.has(&language.or) => Reading::Answer,
            _ => Reading::Offer,
        }
    }

    /// Returns true if it says "I cannot" about something else than the answer itself.
    fn is_unable(&self, language: &Language) -> bool {
        language
            .cannot
            .iter()
            .filter_map(|phrase| self.behind(phrase))
            .any(|rest| {
                let next = rest
                    .trim_start()
                    .find(' ')
                    .map_or("", |end| &rest[end + 1..]);
                !language.limits.iter().any(|limit| {
                    let limit = format!(" {limit} ");
                    rest.starts_with(&limit) || next.starts_with(&limit) || rest.ends_with(&limit)
                })
            })
    }
}

fn begins_with(text: &str, phrases: &[String]) -> bool {
    phrases
        .iter()
        .any(|phrase| text.starts_with(&format!(" {phrase} ")))
}

fn words(sentences: &[Sentence]) -> usize {
    sentences.iter().map(|sentence| sentence.words).sum()
}

/// Splits an answer into sentences, without code, quotations, and parentheses that are not
/// questions.
fn sentences(answer: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut fenced = false;
    for line in answer.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        if is_fence || fenced || line.starts_with('>') {
            continue;
        }
        let (is_item, line) = item(line);
        // Titles of tasks are quoted, and may be questions or refusals themselves.
        let line = unquoted(line);
        let mut rest = line.as_str();
        while !rest.is_empty() {
            let (sentence, behind) = if is_item {
                (rest, "")
            } else {
                rest.split_at(end_of_sentence(rest))
            };
            sentences.extend(sentence_of(sentence, is_item));
            rest = behind;
        }
    }
    sentences
}

/// Returns true for an item of a list, a row or a heading, and its text.
fn item(line: &str) -> (bool, &str) {
    if let Some(rest) = ["- ", "* ", "• ", "+ ", "|", "#"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
    {
        return (true, rest);
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    match numbered {
        Some(rest) if rest.len() + 2 < line.len() => (true, rest),
        _ => (false, line),
    }
}

/// Removes quotations from a line.
fn unquoted(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        let closes: &[char] = match c {
            // An opening quote, not an apostrophe: no letter precedes it.
            '\'' | '‘' if !out.ends_with(char::is_alphanumeric) => &['\'', '’'],
            '"' => &['"'],
            '`' => &['`'],
            '“' => &['”'],
            '„' => &['“', '”'],
            '«' => &['»'],
            _ => &[],
        };
        let ends = |(at, mark): &(usize, &str)| {
            !behind[at + mark.len()..].starts_with(char::is_alphanumeric)
        };
        // An unmatched quote must not cause repeated scans of the line.
        let near = &behind[..behind.floor_char_boundary(QUOTATION_MAX)];
        match near.match_indices(closes).find(ends) {
            Some((end, mark)) => {
                out.push('_');
                rest = &behind[end + mark.len()..];
            }
            None => {
                out.push(c);
                rest = behind;
            }
        }
    }
    out
}

/// Returns the end of the first sentence: after its mark, if white space follows.
fn end_of_sentence(text: &str) -> usize {
    let mut marked = false;
    for (at, c) in text.char_indices() {
        match c {
            '。' | '！' | '？' => return at + c.len_utf8(),
            '.' | '!' | '?' | '؟' | '…' => marked = true,
            ')' | '*' | '_' | '\'' | '”' => {}
            c if c.is_whitespace() && marked => return at,
            _ => marked = false,
        }
    }
    text.len()
}

fn sentence_of(text: &str, is_item: bool) -> Option<Sentence> {
    let text = text.trim();
    let end = text.trim_end_matches(|c: char| !c.is_alphanumeric() && !"?？؟".contains(c));
    let is_question = end.ends_with(['?', '？', '؟']);
    let is_open = text.trim_end_matches('*').ends_with(':');
    // A remark in parentheses neither answers nor asks.
    if text.starts_with('(') && text.ends_with(')') && !is_question {
        return None;
    }
    let (first, last) = text.rsplit_once(": ").unwrap_or(("", text));
    let (first, last) = (plain(first), plain(last));
    let words = [&first, &last]
        .into_iter()
        .flat_map(|part| part.split_whitespace())
        .count();
    let (text, last_part) = if first.is_empty() {
        (format!(" {last} "), 0)
    } else {
        (format!(" {first} {last} "), first.len() + 1)
    };
    (words > 0).then_some(Sentence {
        text,
        words,
        is_question,
        is_open,
        is_item,
        last_part,
    })
}

/// Normalises a text: lower case, no punctuation, single spaces.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let plain: String = lower
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '\'' {
                c
            } else {
                ' '
            }
        })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_put_to_the_person_asks_them() {
        for (answer, reading) in [
            (
                "You have two tasks. Which one do you mean?",
                Reading::Question,
            ),
            (
                "Which one do you mean? There are two. Both are from May. The list is long.",
                Reading::Question,
            ),
            (
                "Which one do you mean? One. Two. Three. Four.",
                Reading::Answer,
            ),
            ("I know the song “Which one do you mean?”", Reading::Answer),
            (
                "Here it is:\n```\nWhich one do you mean?\n```",
                Reading::Answer,
            ),
            (
                "> Which one do you mean?\n\nThat is what you wrote.",
                Reading::Answer,
            ),
            (
                "Your tasks:\n- Which one do you mean?\n- Milk",
                Reading::Answer,
            ),
            (
                "Done with that. Is there anything else I can do?",
                Reading::Answer,
            ),
            (
                "Nothing to do. Would you like to add a task?",
                Reading::Answer,
            ),
            (
                "That is a task. Would you like me to add it?",
                Reading::Offer,
            ),
            ("Czy mam to dodać?", Reading::Question),
            ("Dobrze. Czy mam to dodać?", Reading::Answer),
            ("", Reading::Answer),
            ("?", Reading::Answer),
        ] {
            assert_eq!(read(answer), reading, "{answer}");
        }
    }

    #[test]
    fn only_what_is_said_of_the_request_declines_it() {
        for (answer, reading) in [
            ("I can't do that.", Reading::Refusal),
            ("I’m sorry, but I can’t book flights.", Reading::Refusal),
            ("Das kann ich leider nicht buchen.", Reading::Refusal),
            ("I can't find any tasks.", Reading::Answer),
            (
                "I can't do that without a name. What is it called?",
                Reading::Question,
            ),
            ("Yes. I can't undo it, though.", Reading::Answer),
            (
                "There are two tasks about the garden on it. I can't show their dates.",
                Reading::Answer,
            ),
            ("He said: \"I can't do that.\"", Reading::Answer),
        ] {
            assert_eq!(read(answer), reading, "{answer}");
        }
        let behind = "It is far. ".repeat(40);
        assert_eq!(
            read(&format!("I can't book flights. {behind}")),
            Reading::Answer
        );
    }

    #[test]
    fn marks_without_their_other_half_leave_the_rest_as_it_is() {
        assert_eq!(
            read("It's 5\" long. Which one do you mean?"),
            Reading::Question
        );
        assert_eq!(read(&"„".repeat(5_000)), Reading::Answer);
    }
}

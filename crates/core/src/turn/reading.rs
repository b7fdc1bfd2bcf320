//! Classification of text answers as answers, questions and refusals.
//!
//! It decides the category in the log and nothing else, by the form of the answer: the position of
//! a question, the person addressed, the text before and after. What the form does not tell is a
//! short table of phrases for each language in [`LANGUAGES`]; an answer in another language is an
//! answer, unless it is a single question.

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
/// matched as whole words, separated by commas. `..` stands for any words.
struct Language {
    /// Words for the person who is asked.
    you: &'static str,
    /// Words for what is asked for.
    what: &'static str,
    /// Other phrases that mark a question.
    asks: &'static str,
    /// Questions that need no answer.
    courtesies: &'static str,
    /// Questions that offer an action of the assistant.
    offers: &'static str,
    /// Questions that offer anything else: courtesies, unless they name two alternatives.
    invites: &'static str,
    /// Conjunctions between alternatives.
    or: &'static str,
    /// Phrases for a missing thing that precede an offer.
    missing: &'static str,
    /// Requests without a question mark.
    requests: &'static str,
    /// "I cannot": a refusal where nothing was said before it, unless one of `limits` follows. `^`:
    /// at the beginning only.
    cannot: &'static str,
    /// Objects of "I cannot" that are about the answer itself.
    limits: &'static str,
    /// Phrases that introduce "I cannot" in a later sentence.
    regrets: &'static str,
    /// Refusals of the request itself, in any of the first sentences.
    declines: &'static str,
    /// Conditions that turn a refusal into a request, and a request into a courtesy.
    conditions: &'static str,
    /// First words of an answer that is not a refusal.
    affirms: &'static str,
}

const ENGLISH: Language = Language {
    you: "you, your, should i, shall i",
    what: "which, what, when, where, who, how",
    asks: "do, does, did, is, are, should, shall, would, could, can, may, will, have, i, me, we, it, them, \
        or, correct, right, okay",
    courtesies: "anything else, what else, something else i, anything i, something i, anything you, how can i, \
        how may i, how can we, how may we, what can i, did you know, shall we, like to start, can i help, can i \
        do, can i assist, how are you, how is your, how's your, is there anything, is there something, \
        next, why not, how about, huh, sounds good, does that sound, all for now, does that help, does \
        this help, make sense, any questions, need anything, what do you think",
    offers: "would you like me, do you want me, want me, shall i, should i, can i, may i, need me",
    invites: "would you like, do you want, want, interested in, ready to, care to",
    or: "or",
    missing: "couldn't find, could not find, can't find, cannot find, don't see, not sure, unclear, doesn't \
        exist, does not exist, already",
    requests: "tell me which, tell me what, tell me the, tell me when, tell me where, tell me who, tell me \
        your, tell me more, let me know which, let me know what, let me know the, let me know when, let \
        me know where, let me know your, please tell, please give, please provide, please confirm, \
        please specify, please share, please clarify, please choose, please pick, please send, please \
        enter, please reply, kindly provide, i need, i'd need, i'll need, i just need, just need, still \
        need, reply with, reply yes, pick one, choose one, select one, send me, give me",
    cannot: "i can't, i cant, i cannot, i can not, i won't, i will not, i shouldn't, i'm unable, i am unable, \
        i'm not able, i am not able, i'm not allowed, i am not allowed, i'm not permitted, i am not \
        permitted, i'm not in a position, i'm not designed, i am not designed, i'm not going to, we \
        can't, we cannot, we're unable, we are unable, i can only help, i can only assist, i can only \
        answer, i can only provide, i can only work, i don't do, i don't provide, i don't offer, i don't \
        give, i don't handle, sorry can't, ^can't, ^cant, ^cannot, ^unable to, ^not able to, ^not \
        possible",
    limits: "find, found, see, locate, say, think, wait, believe, imagine, recommend, guarantee, promise, be \
        sure, tell which, tell what, tell if, tell whether, help but",
    regrets: "unfortunately, sorry, i apologize, i apologise, i'm afraid, i am afraid, however, but",
    declines: "can't help with, cannot help with, can't help you, cannot help you, can't assist, cannot assist, \
        unable to comply, unable to help, unable to assist, can't do that, cannot do that, such \
        requests, i decline, must decline, have to decline, respectfully decline, i refuse, must refuse, \
        i'd rather not, i would rather not, i'd prefer not, not comfortable, i'd love to but, wish i \
        could, not something i, isn't something i, not something that i, not my, isn't my, aren't my, \
        outside my, outside of my, outside what i, outside of what i, outside the scope, beyond my, \
        beyond me, beyond what i, beyond the scope, my scope, out of scope, limited to helping, i don't \
        have .. access, i do not have .. access, i have no access, i don't have .. permission, i don't \
        have .. ability, i do not have .. ability, i don't have a tool, i don't have tools, i have no \
        way, i have no tool, the tools i have, i'm just here, i am just here, i'm only here, i am only \
        here, i'm only able, i only handle, i only keep, i only look after, i only manage, i only help, \
        i'm here for, i'm built for, pass on that, that's not possible, that isn't possible, that's not \
        supported, that isn't supported, that's not available, prevents me, against my, against our",
    conditions: "if you, unless, until, without",
    affirms: "yes, done, sure, of course, certainly",
};

const GERMAN: Language = Language {
    you: "du, dir, dich, dein, deine, deinen, sie, ihnen, ihre, soll ich",
    what: "welche, welchen, welcher, welches, was, wann, wo, wer, wie",
    asks: "oder, richtig, ich, mir, soll, ist, sind, hast, meinst, kann, könntest",
    courtesies: "sonst noch, noch etwas, noch was, wie kann ich, womit kann ich, was kann ich, weiterhelfen, \
        behilflich, wie geht",
    offers: "soll ich, kann ich, dass ich",
    invites: "möchtest du, möchten sie, willst du, wollen sie",
    or: "oder",
    missing: "nicht gefunden, nicht finden, keine aufgabe, nicht sicher, schon, bereits",
    requests: "ich brauche, gib mir, geben sie mir, teil mir, lass mich wissen, sag mir, sagen sie mir, nenne \
        mir, nennen sie mir, bitte gib, bitte geben, bitte nenne, bitte nennen, bitte bestätige, bitte \
        bestätigen, bitte sag, bitte sagen, bitte wähle, bitte wählen",
    cannot: "kann ich .. nicht, ich kann .. nicht, kann ich .. kein, kann ich .. keine, kann ich .. keinen, \
        ich kann .. kein, ich kann .. keine, ich kann .. keinen, ich darf .. nicht, darf ich .. nicht, \
        ich darf .. keine, darf ich .. keine, keinen zugriff, ich bin nicht in der lage, bin ich nicht \
        berechtigt",
    limits: "finden, sehen, sagen, warten, erkennen",
    regrets: "leider, tut mir leid, entschuldigung",
    declines: "nicht helfen, nicht weiterhelfen, nicht meine aufgabe, nicht zu meinen aufgaben, nur um deine \
        aufgaben, nur um ihre aufgaben, nur bei deinen aufgaben, nur bei ihren aufgaben, nicht \
        zuständig, ich verwalte nur, außerhalb meiner",
    conditions: "wenn du, wenn sie, falls, ohne, solange, bevor",
    affirms: "ja, erledigt, klar, gern, natürlich",
};

const SPANISH: Language = Language {
    you: "quieres, quiere, te, tu, tus, usted, prefieres, puedes, podrías, debo",
    what: "cuál, cuáles, qué, cuándo, dónde, quién, cómo",
    asks: "o, correcto, prefieres, puedes, podrías, es, te refieres, debería, agrego, añado",
    courtesies: "algo más, otra cosa, en qué puedo, en qué te puedo, cómo puedo ayudar, cómo te puedo, qué puedo, \
        te ayudo, cómo estás",
    offers: "quieres que, quiere que, te gustaría que, le gustaría que, puedo",
    invites: "quieres, quiere, te gustaría, le gustaría, desea",
    or: "o",
    missing: "no encuentro, no encontré, no he encontrado, no estoy seguro, ya",
    requests: "dime cuál, dime qué, dígame, por favor indica, por favor dime, por favor confirma, indícame, \
        confírmame, necesito",
    cannot: "no puedo, no me es posible, no tengo acceso, no estoy autorizado, no soy capaz, no tengo la \
        capacidad, no dispongo, solo puedo, sólo puedo",
    limits: "encontrar, ver, esperar, decir cuál",
    regrets: "lo siento, lamentablemente, desafortunadamente, perdona",
    declines: "no puedo ayudar, no puedo ayudarte, no puedo hacer eso, fuera de mi, fuera de mis, solo \
        gestiono, sólo gestiono, solo me ocupo",
    conditions: "si me, si no me, si quieres, sin, hasta que",
    affirms: "sí, listo, hecho, claro",
};

const FRENCH: Language = Language {
    you: "vous, votre, vos, tu, te, ton, ta, dois je",
    what: "quel, quelle, quels, quelles, laquelle, lequel, lesquelles, quoi, quand, où, qui, comment",
    asks: "est ce, ou, je, correct",
    courtesies: "autre chose, puis je vous aider, puis je t'aider, comment puis je, que puis je, en quoi puis je, \
        besoin d'aide, ça va",
    offers: "que je, puis je, dois je",
    invites: "voulez vous, veux tu, souhaitez vous, souhaites tu",
    or: "ou",
    missing: "pas trouvé, ne trouve pas, pas sûr, pas sûre, déjà",
    requests: "j'ai besoin de, il me faut, merci de me, indiquez, indique moi, dites moi, dis moi, veuillez, \
        merci de préciser, merci d'indiquer, j'ai besoin de savoir, précisez, précise",
    cannot: "je ne peux, je n'ai pas accès, je n'ai pas la possibilité, je ne suis pas en mesure, je ne suis \
        pas autorisé, je ne suis pas capable, il m'est impossible, je peux uniquement, je peux seulement",
    limits: "trouver, retrouver, voir, attendre, dire laquelle, dire lequel",
    regrets: "désolé, désolée, malheureusement",
    declines: "pas vous aider, pas t'aider, je m'occupe uniquement, je ne m'occupe que, je gère uniquement, je \
        ne gère que, en dehors de mes, hors de mes, pas mon rôle",
    conditions: "si vous, si tu, sans, tant que",
    affirms: "oui, c'est fait, bien sûr",
};

const LANGUAGES: [&Language; 4] = [&ENGLISH, &GERMAN, &SPANISH, &FRENCH];

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
            .any(|language| index == 0 && sentence.begins_with(language.affirms))
        {
            return false;
        }
        // The language of an answer is not known, so each table is tried.
        let declines = |language: &&Language| {
            let is_led_to =
                before <= WORDS_OF_OPENING_MAX || sentence.begins_with(language.regrets);
            let declines =
                sentence.has(language.declines) || (is_led_to && sentence.is_unable(language));
            declines && !sentence.has(language.conditions)
        };
        if !sentence.is_question && LANGUAGES.iter().any(declines) {
            return words(&sentences[index + 1..]) <= WORDS_BEHIND_REFUSAL_MAX;
        }
        before += sentence.words;
    }
    false
}

/// Returns the question in an answer that has to be answered to continue.
fn asks(sentences: &[Sentence]) -> Reading {
    let is_courtesy = |sentence: &Sentence| {
        LANGUAGES
            .iter()
            .any(|language| sentence.has(language.courtesies))
    };
    for (index, sentence) in sentences.iter().enumerate() {
        let (before, behind) = (&sentences[..index], &sentences[index + 1..]);
        let explains = behind.iter().filter(|sentence| !sentence.is_item).count();
        // A question in front of a long text, or in a list, is a heading or an example.
        if sentence.is_item || explains > SENTENCES_BEHIND_QUESTION_MAX || is_courtesy(sentence) {
            continue;
        }
        for language in LANGUAGES {
            match sentence.asks(language, explains == 0) {
                Reading::Offer => {
                    let is_instead = before.iter().any(|sentence| sentence.has(language.missing));
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
            let is_put = |language: &&Language| {
                items
                    .iter()
                    .all(|item| item.has(language.you) || item.begins_with(language.what))
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
    fn has(&self, phrases: &str) -> bool {
        phrases
            .split(", ")
            .any(|phrase| self.behind(phrase).is_some())
    }

    fn begins_with(&self, phrases: &str) -> bool {
        begins_with(&self.text, phrases)
    }

    /// Returns the text after a phrase, with spaces around it.
    fn behind(&self, phrase: &str) -> Option<&str> {
        if let Some(phrase) = phrase.strip_prefix('^') {
            return self
                .begins_with(phrase)
                .then(|| &self.text[phrase.len() + 1..]);
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
            language.what,
            language.asks,
            language.offers,
            language.invites,
        ];
        let opens = |text: &str| begin.iter().any(|phrases| begins_with(text, phrases));
        let is_asked =
            self.is_question || (self.is_open && opens(&self.text) && self.has(language.you));
        if !is_asked {
            let requests = self.has(language.requests) && !self.has(language.conditions);
            return if requests {
                Reading::Question
            } else {
                Reading::Answer
            };
        }
        // Text after a colon inside a sentence may be data, such as titles of tasks.
        let is_told_of =
            self.last_part > 0 && !opens(&self.text) && !opens(&self.text[self.last_part..]);
        let is_short = is_last && (self.has(language.what) || self.has(language.asks));
        if is_told_of || !(is_short || self.has(language.you)) {
            return Reading::Answer;
        }
        let offers = self.begins_with(language.offers)
            || (self.has(language.offers) && !self.has(language.what));
        match (offers, self.begins_with(language.invites)) {
            (false, false) => Reading::Question,
            (false, true) if !self.has(language.or) => Reading::Answer,
            _ => Reading::Offer,
        }
    }

    /// Returns true if it says "I cannot" about something else than the answer itself.
    fn is_unable(&self, language: &Language) -> bool {
        language
            .cannot
            .split(", ")
            .filter_map(|phrase| self.behind(phrase))
            .any(|rest| {
                let next = rest
                    .trim_start()
                    .find(' ')
                    .map_or("", |end| &rest[end + 1..]);
                !language.limits.split(", ").any(|limit| {
                    let limit = format!(" {limit} ");
                    rest.starts_with(&limit) || next.starts_with(&limit) || rest.ends_with(&limit)
                })
            })
    }
}

fn begins_with(text: &str, phrases: &str) -> bool {
    phrases
        .split(", ")
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

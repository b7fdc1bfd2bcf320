//! The kind of a vendor's error, read from its status, its codes and its words.
//!
//! A status alone says little: a 403 may be a wrong key, an empty account, a country that is not
//! served or a text that breaks the rules, and a 429 may last for a second or until a bill is paid.
//! Vendors agree on the words more than on the codes, so both are read with the same vocabulary:
//! a rule holds if one sentence (or one code) has a word of each of its classes.

mod vocabulary; // the classes of words

use crate::delay::Delay;
use vocabulary::{
    ACCOUNT, ANSWER_LENGTH, AUTHENTICATION_CODES, CONTENT, CONTEXT_CODES, CONVERSATION,
    ENTITLEMENT, FORBIDDEN, FORM, IS_CLOSED, IS_GONE, IS_MISSING, IS_NOT_SERVED, IS_REACHED,
    IS_SHUT_OUT, IS_TOO_MUCH, IS_UNKNOWN, IS_WRONG, KEY, LENGTH, LOADING, MODEL, MONEY, NETWORK,
    NO_MODEL_CODES, OTHER_POLICIES, OVERLOADED, PASSES, PLACE, QUOTA, QUOTA_CODES, RATE_CODES,
    REFUSED_CODES, RULES, SERVER_CODES, SETTING, SPENDING, TIME_WINDOW, TOO_LONG, UNSAFE,
    WRITTEN_CALL,
};

/// A kind of error that overrides the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The account is out of credit or over its plan.
    Quota,
    /// The vendor does not serve the account, place, network or plan.
    NotPermitted,
    /// The key is missing or wrong.
    Authentication,
    /// The request does not fit the context window.
    ContextTooLong,
    /// The vendor does not have the model.
    NoSuchModel,
    /// The vendor's safety system refused to answer.
    Refused,
    /// The vendor failed on its side, whatever the status says.
    Server,
    /// Too many requests, whatever the status says.
    RateLimited,
    /// The request can never succeed, so it is not retried, whatever the status says.
    Impossible,
}

/// Returns the kind that the codes and words tell, if it is more than the status tells.
pub(crate) fn read(status: u16, codes: &[String], message: &str) -> Option<ErrorKind> {
    Reading::new(status, codes, message).kind()
}

/// Returns the delay that the words of a server's failure tell of.
pub(crate) fn delay(message: &str) -> Option<Delay> {
    let sentences = sentences(message);
    let says = |class| sentences.iter().any(|sentence| has(sentence, class));
    if says(LOADING) {
        Some(Delay::Loading)
    } else if says(OVERLOADED) {
        Some(Delay::Overload)
    } else {
        None
    }
}

/// An error body, prepared for the rules.
struct Reading {
    status: u16,
    /// The codes, each as its words.
    codes: Vec<String>,
    /// The sentences of the message, then the codes.
    sentences: Vec<String>,
    /// Number of sentences that are not codes.
    spoken: usize,
    /// True if the error speaks of a limit on a span of time.
    of_time: bool,
    /// True if the error objects to the form of the request.
    of_form: bool,
}

impl Reading {
    fn new(status: u16, codes: &[String], message: &str) -> Self {
        let codes: Vec<String> = codes
            .iter()
            .map(|code| sentences(code).join(""))
            .filter(|code| !code.is_empty())
            .collect();
        let mut sentences = sentences(message);
        let spoken = sentences.len();
        // A program's name of the error is no evidence of a limit on a span of time: proxies give
        // this one to every 429.
        let of_time = sentences.iter().any(|sentence| is_of_time(sentence))
            || codes.iter().any(|code| {
                has(code, &["rate limit exceeded"]) || is_of_time(code) && has(code, &["throttl"])
            });
        let of_form = sentences.iter().any(|sentence| has(sentence, FORM));
        sentences.extend(codes.iter().cloned());
        Self {
            status,
            codes,
            sentences,
            spoken,
            of_time,
            of_form,
        }
    }

    fn kind(&self) -> Option<ErrorKind> {
        // The order matters: several servers send a general code beside a precise one, and an error
        // about money may mention keys and models.
        if self.is_too_long() {
            Some(ErrorKind::ContextTooLong)
        } else if self.has_code(QUOTA_CODES) {
            Some(ErrorKind::Quota)
        } else if self.is_elsewhere() {
            Some(ErrorKind::NotPermitted)
        } else if self.is_used_up() {
            Some(ErrorKind::Quota)
        } else if self.is_closed() {
            Some(ErrorKind::NotPermitted)
        } else if self.is_against_the_rules() {
            Some(ErrorKind::Refused)
        } else if self.has_code(NO_MODEL_CODES) {
            Some(ErrorKind::NoSuchModel)
        } else if self.is_about_the_key() {
            Some(ErrorKind::Authentication)
        } else if self.is_not_permitted() {
            Some(ErrorKind::NotPermitted)
        } else if self.is_about_the_model() {
            Some(ErrorKind::NoSuchModel)
        } else if self.may_pass() {
            Some(ErrorKind::Server)
        } else if self.has_code(AUTHENTICATION_CODES) {
            Some(ErrorKind::Authentication)
        } else if self.has_code(RATE_CODES) && self.status < 500 {
            Some(ErrorKind::RateLimited)
        } else if self.has_code(SERVER_CODES) && !self.is(&[400..=499]) {
            // The status wins for errors of the client: several servers use `api_error` for all.
            Some(ErrorKind::Server)
        } else {
            None
        }
    }

    fn is_too_long(&self) -> bool {
        if self.is(&[401..=402, 404..=404]) {
            return false;
        }
        let whole = self.whole();
        if self.of_time {
            // Waiting does not help if the request alone is more than the allowance.
            return has(&whole, &["request too large", "too large for"])
                || asks_for_more_than_the_limit(&whole)
                || has(&whole, &["long context"]) && has(&whole, IS_TOO_MUCH)
                || self.status == 413 && has(&whole, RATE_CODES);
        }
        if self.has_code(CONTEXT_CODES) || self.status == 413 && self.has_code(RATE_CODES) {
            return true;
        }
        if self.status == 413 {
            return has(
                &whole,
                &["context", "maximum size", "token", "too large", "too long"],
            );
        }
        if has(&whole, &["string too long", "array too long"]) {
            return has(&whole, &["content", "input", "messages"]);
        }
        self.spoken().any(|sentence| {
            let of_answer = has(sentence, ANSWER_LENGTH) && !has(sentence, CONVERSATION);
            let counts = has(sentence, LENGTH)
                && has(sentence, IS_TOO_MUCH)
                && has(sentence, &["token", "length", "context", "long"]);
            !of_answer && (has(sentence, TOO_LONG) || counts && !has(sentence, SETTING))
        })
    }

    /// Returns true if money or a plan is used up.
    fn is_used_up(&self) -> bool {
        if self.is(&[404..=404, 413..=413]) {
            return false;
        }
        if self.status == 402
            && self.any(&[&[
                "balance", "billing", "credit", "fund", "paid", "payment", "quota", "plan",
                "spend", "subscri",
            ]])
        {
            return true;
        }
        if self.of_form {
            return false;
        }
        self.any_but(&[MONEY, IS_GONE], is_of_time)
            || self.any_but(&[SPENDING, IS_REACHED], is_of_time)
            || !self.of_time
                && self.any_but(&[QUOTA, IS_REACHED], |sentence| {
                    has(sentence, &["capacity"])
                })
    }

    fn is_elsewhere(&self) -> bool {
        self.is(&[200..=200, 400..=400, 403..=404, 422..=422, 451..=451])
            && self.any(&[PLACE, IS_NOT_SERVED])
    }

    /// Returns true if the account as a whole is not served.
    fn is_closed(&self) -> bool {
        let is_other = |sentence: &str| has(sentence, KEY) || has(sentence, &["temporar"]);
        self.status < 500
            && !self.of_time
            && !self.of_form
            && self.any_but(&[ACCOUNT, IS_CLOSED], is_other)
    }

    fn is_against_the_rules(&self) -> bool {
        if self.is(&[401..=402, 404..=404, 413..=413, 429..=429]) {
            return false;
        }
        let says = || {
            !self.of_form
                && (self.any(&[RULES])
                    || self.any_but(&[UNSAFE, CONTENT], |sentence| has(sentence, NETWORK)))
        };
        let named = |code: &String| {
            has(code, RULES)
                || has(code, &["unintended"])
                || has(code, &["policy"]) && !has(code, OTHER_POLICIES)
        };
        self.has_code(REFUSED_CODES) || self.codes.iter().any(named) || says()
    }

    fn is_about_the_key(&self) -> bool {
        self.is(&[200..=200, 400..=401, 403..=403]) && self.any(&[KEY, IS_WRONG])
    }

    fn is_not_permitted(&self) -> bool {
        let lacks = !self.of_form && !self.of_time && self.any(&[ENTITLEMENT, IS_MISSING]);
        match self.status {
            451 => true,
            401 => self.any(&[NETWORK, IS_SHUT_OUT]),
            403 => lacks || self.any(&[NETWORK, IS_SHUT_OUT]) || self.any(&[FORBIDDEN]),
            200 | 400 | 412 | 429 => lacks,
            _ => false,
        }
    }

    fn is_about_the_model(&self) -> bool {
        let of_setting = |sentence: &str| {
            has(
                sentence,
                &[
                    "for this model",
                    "with this model",
                    "by this model",
                    "on this model",
                ],
            )
        };
        self.is(&[200..=200, 400..=400, 403..=404, 422..=422])
            && self.any_but(&[MODEL, IS_UNKNOWN], of_setting)
    }

    /// Returns true for what may go well if it is tried again, although the status blames the
    /// request: a call that the model wrote badly, or a server without a free place.
    fn may_pass(&self) -> bool {
        let wrote_badly = self.any(&[WRITTEN_CALL, &["fail"]]);
        let passes = || {
            [OVERLOADED, LOADING, PASSES]
                .iter()
                .any(|class| self.any(&[class]))
        };
        match self.status {
            // Groq's own status for a tier without a free place.
            498 => true,
            400 | 422 => wrote_badly || passes(),
            403..=428 | 430..=499 => passes(),
            _ => false,
        }
    }

    fn is(&self, statuses: &[std::ops::RangeInclusive<u16>]) -> bool {
        statuses.iter().any(|range| range.contains(&self.status))
    }

    fn has_code(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| has(code, known))
    }

    fn spoken(&self) -> impl Iterator<Item = &str> {
        self.sentences.iter().take(self.spoken).map(String::as_str)
    }

    /// Returns the message as one sentence.
    fn whole(&self) -> String {
        self.sentences.join("")
    }

    /// Returns true if a sentence has a word of each class.
    fn any(&self, classes: &[&[&str]]) -> bool {
        self.any_but(classes, |_| false)
    }

    /// Returns true if a sentence has a word of each class, and is not what `is_other` finds.
    fn any_but(&self, classes: &[&[&str]], is_other: impl Fn(&str) -> bool) -> bool {
        let fits = |sentence: &&String| {
            classes.iter().all(|class| has(sentence, class)) && !is_other(sentence)
        };
        self.sentences.iter().any(|sentence| fits(&sentence))
    }
}

fn is_of_time(sentence: &str) -> bool {
    // Names of error classes, as programs print them in front of the words.
    let spoken = sentence
        .replace("rate limit error", "")
        .replace("throttling error", "");
    has(&spoken, TIME_WINDOW)
}

/// Returns true if the text has one of the phrases at the beginning of a word.
fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        // Chinese has no spaces between its words.
        let starts_word = phrase.starts_with(|c: char| c.is_ascii());
        text.match_indices(phrase)
            .any(|(at, _)| !starts_word || text[..at].ends_with(' '))
    })
}

/// Returns true if the text names a limit and a larger number that was requested.
fn asks_for_more_than_the_limit(text: &str) -> bool {
    let number_after = |word: &str| -> Option<u64> {
        text.match_indices(word)
            .find_map(|(at, _)| text[at + word.len()..].split(' ').next()?.parse().ok())
    };
    matches!((number_after(" limit "), number_after(" requested ")), (Some(limit), Some(requested)) if requested > limit)
}

/// Splits a text into sentences of lower-case words, each with a space before and after it.
/// `camelCase` and `snake_case` become words; addresses, paths and examples in brackets are left out.
fn sentences(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut current = String::from(" ");
    let text = without_examples(text);
    for word in text.split_whitespace() {
        if word.contains("//") || word.matches('/').count() > 2 {
            continue;
        }
        let ends = word.ends_with(['.', '!', '?', ';']);
        push_words(word, &mut current, &mut all);
        if ends {
            end_sentence(&mut current, &mut all);
        }
    }
    end_sentence(&mut current, &mut all);
    all
}

fn push_words(word: &str, current: &mut String, all: &mut Vec<String>) {
    let chars: Vec<char> = word.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
        let after = chars.get(at + 1).copied();
        let lower_before = before.is_some_and(|c| c.is_lowercase() || c.is_ascii_digit());
        let begins_word = c.is_uppercase()
            && (lower_before
                || before.is_some_and(char::is_uppercase) && after.is_some_and(char::is_lowercase));
        match c {
            '。' | '！' | '；' | '？' => end_sentence(current, all),
            // An apostrophe is no end of a word, nor is a comma within a number.
            '\'' | '’' => {}
            ',' if before.is_some_and(|c| c.is_ascii_digit())
                && after.is_some_and(|c| c.is_ascii_digit()) => {}
            c if c.is_alphanumeric() || matches!(c, '<' | '=') => {
                if begins_word {
                    push_space(current);
                }
                current.extend(c.to_lowercase());
            }
            _ => push_space(current),
        }
    }
    push_space(current);
}

fn push_space(text: &mut String) {
    if !text.ends_with(' ') {
        text.push(' ');
    }
}

fn end_sentence(current: &mut String, all: &mut Vec<String>) {
    let ended = std::mem::replace(current, " ".to_owned());
    if ended != " " {
        all.push(ended);
    }
}

/// Removes `(e.g. …)`: an example of a cause is not the cause.
fn without_examples(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some((before, example)) = rest.split_once("(e.g.") {
        kept.push_str(before);
        rest = example.split_once(')').map_or("", |(_, after)| after);
    }
    kept + rest
}

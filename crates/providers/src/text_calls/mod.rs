//! Calls and thinking that come as text: what a server passes on unread where it does not know a
//! model's own way of writing them. Pure; how the text is cut into pieces makes no difference.
//!
//! A call is taken out of the text only if it names a tool of the request. Inside a code fence or
//! behind a quotation mark it is something the model talks about, unless it is the whole answer.
//!
//! Formats, from the models' own chat templates: Hermes and Qwen (`<tool_call>` and JSON),
//! Qwen3-Coder (`<function=name><parameter=x>`), GLM (`<arg_key>`), Llama 3 (`<|python_tag|>`, or
//! bare JSON), Mistral (`[TOOL_CALLS]`), Phi and Granite (`<|tool_call|>`), Qwen2.5-Coder
//! (`<tools>`, or fenced JSON).

mod parse; // what stands inside the tags
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use adjutant_core::{Delta, ToolSet};

use crate::assembly::{Assembly, CallFragment};
use parse::Call;

/// A way to write calls.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    open: &'static str,
    /// What ends it besides the end of the answer.
    close: &'static [&'static str],
}

const FORMS: &[Form] = &[
    Form {
        open: "<tool_call>",
        close: &["</tool_call>"],
    },
    Form {
        open: "<function=",
        close: &["</function>"],
    },
    Form {
        open: "<function_call>",
        close: &["</function_call>"],
    },
    Form {
        open: "<tools>",
        close: &["</tools>"],
    },
    Form {
        open: "<|tool_call|>",
        close: &["<|/tool_call|>"],
    },
    Form {
        open: "<|python_tag|>",
        close: &["<|eom_id|>", "<|eot_id|>"],
    },
    Form {
        open: "[TOOL_CALLS]",
        close: &[],
    },
];

/// What may be left behind a call and says nothing.
const LEFTOVERS: &[&str] = &[
    "</tool_call>",
    "</function>",
    "</function_call>",
    "</tools>",
    "<|/tool_call|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
];

const THINK: &str = "<think>";
const THOUGHT: &str = "</think>";
const FENCE: &str = "```";

/// What text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Words.
    Text(String),
    /// Thinking that was marked as such.
    Thinking(String),
    /// A call; its arguments are JSON text that may be broken.
    Call { name: String, arguments: String },
}

impl Piece {
    /// Adds it to an answer. A call has this number there, and is reported.
    pub(crate) fn place(
        self,
        number: u64,
        assembly: &mut Assembly,
        losses: &mut Vec<String>,
        deltas: &mut VecDeque<Delta>,
    ) {
        match self {
            Self::Text(words) => deltas.extend(assembly.text(&words, None)),
            Self::Thinking(thoughts) => deltas.extend(assembly.thinking(&thoughts, None)),
            Self::Call { name, arguments } => {
                let notice = format!("a call of {name} came as text and was taken out of it");
                if !losses.contains(&notice) {
                    losses.push(notice);
                }
                let fragment = CallFragment {
                    index: Some(number),
                    provider_id: None,
                    name: Some(&name),
                    arguments: &arguments,
                };
                deltas.push_back(assembly.call(fragment, None));
            }
        }
    }
}

/// Takes an answer's text as it comes and says what it is as soon as that is certain.
#[derive(Debug)]
pub(crate) struct TextCalls {
    tools: ToolSet,
    state: State,
    /// What is not decided yet.
    held: String,
    place: Place,
    /// How many more beginnings and ends of forms are looked at.
    marks_left: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nothing was said yet, besides thinking.
    Beginning {
        thought: bool,
    },
    /// Behind `<think>`.
    Thinking {
        began: bool,
    },
    Words,
    /// Behind the opening of a form; no end begins before `searched`.
    Inside {
        form: &'static Form,
        searched: usize,
    },
    /// Behind a call.
    Behind,
}

/// Where in the words we are.
#[derive(Debug, Clone, Copy)]
struct Place {
    before: Option<char>,
    /// Only space since the line began.
    line_start: bool,
    fenced: bool,
}

impl Place {
    const START: Self = Self {
        before: None,
        line_start: true,
        fenced: false,
    };

    fn pass(&mut self, c: char) {
        self.before = Some(c);
        self.line_start = c == '\n' || (self.line_start && c.is_whitespace());
    }

    /// Whether something beginning here is only talked about.
    fn is_quoted(self) -> bool {
        self.fenced || matches!(self.before, Some('`' | '"' | '\'' | '“' | '‘' | '«'))
    }
}

/// Beginnings of forms, and ends that stand in strings, that are looked at in one answer. What
/// comes after is words: for each of them the text held so far is gone through again, and a server
/// could send megabytes of them.
const MARKS_MAX: u32 = 256;
/// Bytes at the beginning of an answer that decide whether it may be nothing but calls.
const LEAD_BYTES_MAX: usize = 256;

/// What is done with the held text next.
enum Step {
    Again,
    /// More text is needed.
    Wait,
}

impl TextCalls {
    /// For an answer to a request with these tools.
    pub(crate) fn new(tools: ToolSet) -> Self {
        Self {
            tools,
            state: State::Beginning { thought: false },
            held: String::new(),
            place: Place::START,
            marks_left: MARKS_MAX,
        }
    }

    /// More text.
    pub(crate) fn push(&mut self, words: &str, out: &mut Vec<Piece>) {
        self.held.push_str(words);
        while !self.held.is_empty() && matches!(self.step(false, out), Step::Again) {}
    }

    /// No more text, or something else comes first: what is held is decided now.
    pub(crate) fn flush(&mut self, out: &mut Vec<Piece>) {
        while !self.held.is_empty() && matches!(self.step(true, out), Step::Again) {}
    }

    fn step(&mut self, last: bool, out: &mut Vec<Piece>) -> Step {
        match self.state {
            State::Beginning { thought } => self.beginning(thought, last, out),
            State::Thinking { began } => self.thinking(began, last, out),
            State::Words => self.words(last, out),
            State::Inside { form, searched } => self.inside(form, searched, last, out),
            State::Behind => self.behind(last),
        }
    }

    fn beginning(&mut self, thought: bool, last: bool, out: &mut Vec<Piece>) -> Step {
        let space = self.held.len() - self.held.trim_start().len();
        if thought {
            // The space between thinking and answer belongs to neither.
            self.held.drain(..space);
        }
        let rest = if thought {
            &self.held[..]
        } else {
            &self.held[space..]
        };
        if rest.is_empty() && !last {
            if space > LEAD_BYTES_MAX {
                self.state = State::Words;
                return Step::Again;
            }
            return Step::Wait;
        }
        if !thought {
            match starts(rest, THINK, last) {
                Starts::Yes => {
                    self.held.drain(..space + THINK.len());
                    self.state = State::Thinking { began: false };
                    return Step::Again;
                }
                Starts::Perhaps => return Step::Wait,
                Starts::No => {}
            }
        }
        if self.may_call() {
            for form in FORMS {
                match starts(rest, form.open, last) {
                    Starts::Yes => {
                        let opened = self.held.len() - rest.len() + form.open.len();
                        self.held.drain(..opened);
                        self.open(form);
                        return Step::Again;
                    }
                    Starts::Perhaps => return Step::Wait,
                    Starts::No => {}
                }
            }
            let lead = &rest[..rest.floor_char_boundary(LEAD_BYTES_MAX)];
            if parse::may_be_whole(lead) {
                if !last {
                    return Step::Wait;
                }
                if let Some(calls) = self.whole(rest) {
                    self.held.clear();
                    self.calls(calls, out);
                    return Step::Wait;
                }
            }
        }
        self.state = State::Words;
        Step::Again
    }

    /// Whether what follows can be a call.
    fn may_call(&self) -> bool {
        !self.tools.is_empty() && self.marks_left > 0
    }

    fn open(&mut self, form: &'static Form) {
        self.marks_left = self.marks_left.saturating_sub(1);
        self.state = State::Inside { form, searched: 0 };
    }

    /// The calls that an answer is, if it is nothing else.
    fn whole(&self, answer: &str) -> Option<Vec<Call>> {
        let inner = parse::unfenced(answer.trim());
        if inner.starts_with(['<']) || inner.starts_with("[TOOL_CALLS]") {
            let (mut nested, mut pieces) = (Self::new(self.tools.clone()), Vec::new());
            nested.push(inner, &mut pieces);
            nested.flush(&mut pieces);
            let call = |piece| match piece {
                Piece::Call { name, arguments } => Some(Call { name, arguments }),
                Piece::Text(_) | Piece::Thinking(_) => None,
            };
            return pieces.into_iter().map(call).collect();
        }
        parse::whole(inner, &self.tools)
    }

    fn thinking(&mut self, began: bool, last: bool, out: &mut Vec<Piece>) -> Step {
        if !began {
            let space = self.held.len() - self.held.trim_start().len();
            self.held.drain(..space);
            self.state = State::Thinking {
                began: !self.held.is_empty(),
            };
        }
        if let Some(end) = self.held.find(THOUGHT) {
            let thoughts: String = self.held.drain(..end + THOUGHT.len()).collect();
            emit(out, Piece::Thinking(thoughts[..end].to_owned()));
            self.state = State::Beginning { thought: true };
            return Step::Again;
        }
        let end = self.held.len()
            - if last {
                0
            } else {
                overlap(&self.held, THOUGHT)
            };
        emit(out, Piece::Thinking(self.held.drain(..end).collect()));
        Step::Wait
    }

    fn words(&mut self, last: bool, out: &mut Vec<Piece>) -> Step {
        if !self.may_call() {
            emit(out, Piece::Text(std::mem::take(&mut self.held)));
            return Step::Wait;
        }
        let mut place = self.place;
        let mut at = 0;
        let found = loop {
            let rest = &self.held[at..];
            let Some(c) = rest.chars().next() else {
                break None;
            };
            if place.line_start && c == '`' {
                match starts(rest, FENCE, last) {
                    Starts::Yes => {
                        place = Place {
                            before: Some('`'),
                            line_start: false,
                            fenced: !place.fenced,
                        };
                        at += FENCE.len();
                        continue;
                    }
                    Starts::Perhaps => break None,
                    Starts::No => {}
                }
            }
            if matches!(c, '<' | '[') && !place.is_quoted() {
                let forms = || {
                    FORMS
                        .iter()
                        .map(|form| (form, starts(rest, form.open, last)))
                };
                if let Some((form, _)) = forms().find(|(_, starts)| *starts == Starts::Yes) {
                    break Some(form);
                }
                if forms().any(|(_, starts)| starts == Starts::Perhaps) {
                    break None;
                }
            }
            place.pass(c);
            at += c.len_utf8();
        };
        self.place = place;
        emit(out, Piece::Text(self.held.drain(..at).collect()));
        let Some(form) = found else { return Step::Wait };
        self.held.drain(..form.open.len());
        self.open(form);
        Step::Again
    }

    fn inside(
        &mut self,
        form: &'static Form,
        searched: usize,
        last: bool,
        out: &mut Vec<Piece>,
    ) -> Step {
        let Some((body, end)) = end_of(&self.held, form, searched, last, &mut self.marks_left)
        else {
            let longest = form
                .close
                .iter()
                .map(|close| close.len())
                .max()
                .unwrap_or(0);
            let mut searched = self.held.len().saturating_sub(longest);
            while !self.held.is_char_boundary(searched) {
                searched -= 1;
            }
            self.state = State::Inside { form, searched };
            return Step::Wait;
        };
        let inside: String = self.held.drain(..end).collect();
        match parse::body(form.open, &inside[..body], &self.tools) {
            Some((calls, rest)) => {
                self.calls(calls, out);
                if !rest.trim().is_empty() {
                    // What the model wrote behind its calls is words.
                    self.held.insert_str(0, rest);
                }
            }
            None => {
                let words = format!("{}{inside}", form.open);
                words.chars().for_each(|c| self.place.pass(c));
                emit(out, Piece::Text(words));
                self.state = State::Words;
            }
        }
        Step::Again
    }

    fn calls(&mut self, calls: Vec<Call>, out: &mut Vec<Piece>) {
        out.extend(
            calls
                .into_iter()
                .map(|Call { name, arguments }| Piece::Call { name, arguments }),
        );
        self.state = State::Behind;
        self.place = Place::START;
    }

    fn behind(&mut self, last: bool) -> Step {
        let mut rest = self.held.trim_start();
        let next = loop {
            let leftover = LEFTOVERS
                .iter()
                .find(|leftover| starts(rest, leftover, last) != Starts::No);
            match leftover.and_then(|leftover| rest.strip_prefix(*leftover)) {
                _ if rest.is_empty() => break Step::Wait,
                Some(behind) => rest = behind.trim_start(),
                // It may be the beginning of one.
                None if leftover.is_some() => break Step::Wait,
                None => {
                    self.state = State::Words;
                    break Step::Again;
                }
            }
        };
        let read = self.held.len() - rest.len();
        self.held.drain(..read);
        next
    }
}

/// Where a form's body ends, and where what follows begins; `None`: later.
fn end_of(
    text: &str,
    form: &Form,
    searched: usize,
    last: bool,
    marks_left: &mut u32,
) -> Option<(usize, usize)> {
    let ends = |from: usize| {
        let found = form
            .close
            .iter()
            .filter_map(|close| Some((from + text[from..].find(close)?, close.len())));
        found.min_by_key(|(at, _)| *at)
    };
    let mut from = searched;
    while let Some((at, length)) = ends(from) {
        // An argument may speak of the very tags.
        if *marks_left == 0 || !parse::is_in_string(&text[..at]) {
            return Some((at, at + length));
        }
        *marks_left -= 1;
        from = at + length;
    }
    last.then(|| ends(0).map_or((text.len(), text.len()), |(at, length)| (at, at + length)))
}

#[derive(PartialEq, Eq)]
enum Starts {
    Yes,
    /// As far as there is text.
    Perhaps,
    No,
}

/// Whether `text` starts with `word`.
fn starts(text: &str, word: &str, last: bool) -> Starts {
    if text.starts_with(word) {
        Starts::Yes
    } else if !last && word.starts_with(text) {
        Starts::Perhaps
    } else {
        Starts::No
    }
}

/// Bytes at the end of `text` with which `word` may begin.
fn overlap(text: &str, word: &str) -> usize {
    (1..word.len())
        .rev()
        .find(|length| text.ends_with(&word[..*length]))
        .unwrap_or(0)
}

/// Pieces of one kind are one piece.
fn emit(out: &mut Vec<Piece>, piece: Piece) {
    match (out.last_mut(), piece) {
        (_, Piece::Text(words) | Piece::Thinking(words)) if words.is_empty() => {}
        (Some(Piece::Text(text)), Piece::Text(words)) => text.push_str(&words),
        (Some(Piece::Thinking(text)), Piece::Thinking(words)) => text.push_str(&words),
        (_, piece) => out.push(piece),
    }
}

//! [`TextCalls`]: finds tool calls and thinking that a model wrote as text, because the server does
//! not know the model's syntax for them. Pure; how the text is cut into chunks makes no difference.
//!
//! A call is taken out of the text only if it names a tool of the request. In a code fence or after
//! a quotation mark it counts as a quotation, unless it is the whole answer.
//!
//! Syntaxes, from the models' own chat templates: Hermes and Qwen (`<tool_call>` and JSON),
//! Qwen3-Coder (`<function=name><parameter=x>`), GLM (`<arg_key>`), Llama 3 (`<|python_tag|>`, or
//! bare JSON), Mistral (`[TOOL_CALLS]`), Phi and Granite (`<|tool_call|>`), Qwen2.5-Coder
//! (`<tools>`, or fenced JSON).

mod fold; // thinking in the text of any answer
mod parse; // parses the text between the tags
mod syntax; // the tags around calls
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use adjutant_core::{Delta, ToolSet};

use crate::assembly::{Assembly, CallFragment};
#[cfg(any(feature = "anthropic", feature = "openai"))]
pub(crate) use fold::{ThinkingInText, is_from_text};
use parse::Call;
use syntax::{SYNTAXES, Syntax, THINKING_TAGS};

/// Tags after a call that carry no information and are dropped.
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

const FENCE: &str = "```";

/// A classified piece of an answer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// Text of the answer.
    Text(String),
    /// Thinking, without its tags.
    Thinking(String),
    /// A call; its arguments are JSON text that may be malformed.
    Call(Call),
}

impl Segment {
    /// Adds the segment to an answer. A call is recorded as a loss.
    fn add_to(
        self,
        assembly: &mut Assembly,
        losses: &mut Vec<String>,
        deltas: &mut VecDeque<Delta>,
    ) {
        match self {
            Self::Text(text) => deltas.extend(assembly.text(&text, None)),
            Self::Thinking(text) => deltas.extend(assembly.thinking(&text, None)),
            Self::Call(Call { name, arguments }) => {
                let notice = format!("a call of {name} came as text and was taken out of it");
                if !losses.contains(&notice) {
                    losses.push(notice);
                }
                let fragment = CallFragment {
                    name: Some(&name),
                    arguments: &arguments,
                    ..CallFragment::default()
                };
                deltas.push_back(assembly.begin_call(fragment, None));
            }
        }
    }
}

/// Classifies an answer's text as it arrives, each piece as soon as it is certain.
#[derive(Debug)]
pub(crate) struct TextCalls {
    tools: ToolSet,
    state: State,
    /// Text that is not classified yet.
    held: String,
    position: Position,
    /// The number of further tags that are looked at.
    marks_left: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// No text yet, besides thinking.
    Start {
        thought: bool,
    },
    /// After a tag that opens thinking, until this one closes it.
    Thinking {
        close: &'static str,
        began: bool,
    },
    Text,
    /// After an opening tag; no closing tag begins before `searched`.
    InCall {
        syntax: &'static Syntax,
        searched: usize,
    },
    AfterCall,
}

/// The context of the next character of the text.
#[derive(Debug, Clone, Copy)]
struct Position {
    before: Option<char>,
    /// Only white space since the line began.
    line_start: bool,
    fenced: bool,
}

impl Position {
    const START: Self = Self {
        before: None,
        line_start: true,
        fenced: false,
    };

    fn advance(&mut self, c: char) {
        self.before = Some(c);
        self.line_start = c == '\n' || (self.line_start && c.is_whitespace());
    }

    /// Returns true if a tag here is part of a quotation.
    fn is_quoted(self) -> bool {
        self.fenced || matches!(self.before, Some('`' | '"' | '\'' | '“' | '‘' | '«'))
    }
}

/// Tags that are looked at in one answer: opening ones, and closing ones inside strings. Everything
/// after them is text. Each of them causes another pass over the held text, and a server could send
/// megabytes of them.
const MARKS_MAX: u32 = 256;
/// Bytes at the beginning of an answer that decide if it may consist of calls only.
const LEAD_BYTES_MAX: usize = 256;

/// The continuation after a step.
enum Step {
    /// The held text may have more to classify.
    Again,
    /// More text is needed.
    Wait,
}

impl TextCalls {
    /// Returns the classifier for an answer to a request with these tools.
    pub(crate) fn new(tools: ToolSet) -> Self {
        Self {
            tools,
            state: State::Start { thought: false },
            held: String::new(),
            position: Position::START,
            marks_left: MARKS_MAX,
        }
    }

    /// Adds text, and appends to `out` what is certain by now.
    fn push(&mut self, text: &str, out: &mut Vec<Segment>) {
        self.held.push_str(text);
        while !self.held.is_empty() && matches!(self.step(false, out), Step::Again) {}
    }

    /// Classifies all held text, because other content or the end of the answer follows.
    fn flush(&mut self, out: &mut Vec<Segment>) {
        while !self.held.is_empty() && matches!(self.step(true, out), Step::Again) {}
    }

    /// Adds text of the answer, and to `assembly` what it certainly is.
    pub(crate) fn push_to(
        &mut self,
        text: &str,
        assembly: &mut Assembly,
        losses: &mut Vec<String>,
        deltas: &mut VecDeque<Delta>,
    ) {
        let mut segments = Vec::new();
        self.push(text, &mut segments);
        for segment in segments {
            segment.add_to(assembly, losses, deltas);
        }
    }

    /// Adds the text that was held back to `assembly`.
    pub(crate) fn flush_to(
        &mut self,
        assembly: &mut Assembly,
        losses: &mut Vec<String>,
        deltas: &mut VecDeque<Delta>,
    ) {
        let mut segments = Vec::new();
        self.flush(&mut segments);
        for segment in segments {
            segment.add_to(assembly, losses, deltas);
        }
    }

    fn step(&mut self, last: bool, out: &mut Vec<Segment>) -> Step {
        match self.state {
            State::Start { thought } => self.at_start(thought, last, out),
            State::Thinking { close, began } => self.in_thinking(close, began, last, out),
            State::Text => self.in_text(last, out),
            State::InCall { syntax, searched } => self.in_call(syntax, searched, last, out),
            State::AfterCall => self.after_call(last),
        }
    }

    fn at_start(&mut self, thought: bool, last: bool, out: &mut Vec<Segment>) -> Step {
        let space = self.held.len() - self.held.trim_start().len();
        if thought {
            // White space between thinking and the answer belongs to neither.
            self.held.drain(..space);
        }
        let rest = if thought {
            &self.held[..]
        } else {
            &self.held[space..]
        };
        if rest.is_empty() && !last {
            if space > LEAD_BYTES_MAX {
                self.state = State::Text;
                return Step::Again;
            }
            return Step::Wait;
        }
        if !thought {
            for (open, close) in THINKING_TAGS {
                match starts_with(rest, open, last) {
                    Prefix::Yes => {
                        self.held.drain(..space + open.len());
                        self.state = State::Thinking {
                            close,
                            began: false,
                        };
                        return Step::Again;
                    }
                    Prefix::Maybe => return Step::Wait,
                    Prefix::No => {}
                }
            }
        }
        if self.may_call() {
            for syntax in SYNTAXES {
                match starts_with(rest, syntax.open, last) {
                    Prefix::Yes => {
                        let opened = self.held.len() - rest.len() + syntax.open.len();
                        self.held.drain(..opened);
                        self.open(syntax);
                        return Step::Again;
                    }
                    Prefix::Maybe => return Step::Wait,
                    Prefix::No => {}
                }
            }
            let lead = &rest[..rest.floor_char_boundary(LEAD_BYTES_MAX)];
            // JSON without tags is a call only if it is the whole answer, which shows at its end.
            if parse::may_be_only_calls(lead) {
                if !last {
                    return Step::Wait;
                }
                if let Some(calls) = self.only_calls(rest) {
                    self.held.clear();
                    self.add_calls(calls, out);
                    return Step::Wait;
                }
            }
        }
        self.state = State::Text;
        Step::Again
    }

    /// Returns true if the following text may be a call.
    fn may_call(&self) -> bool {
        !self.tools.is_empty() && self.marks_left > 0
    }

    fn open(&mut self, syntax: &'static Syntax) {
        self.marks_left = self.marks_left.saturating_sub(1);
        self.state = State::InCall {
            syntax,
            searched: 0,
        };
    }

    /// Returns the calls that an answer consists of; `None` if it is anything else.
    fn only_calls(&self, answer: &str) -> Option<Vec<Call>> {
        let inner = parse::unfenced(answer.trim());
        // Tags in a fence are no example if they are the whole answer.
        if inner.starts_with(['<']) || inner.starts_with("[TOOL_CALLS]") {
            let (mut nested, mut segments) = (Self::new(self.tools.clone()), Vec::new());
            nested.push(inner, &mut segments);
            nested.flush(&mut segments);
            let call = |segment| match segment {
                Segment::Call(call) => Some(call),
                Segment::Text(_) | Segment::Thinking(_) => None,
            };
            return segments.into_iter().map(call).collect();
        }
        parse::bare_calls(inner, &self.tools)
    }

    fn in_thinking(
        &mut self,
        close: &'static str,
        began: bool,
        last: bool,
        out: &mut Vec<Segment>,
    ) -> Step {
        if !began {
            let space = self.held.len() - self.held.trim_start().len();
            self.held.drain(..space);
            self.state = State::Thinking {
                close,
                began: !self.held.is_empty(),
            };
        }
        if let Some(end) = self.held.find(close) {
            let text: String = self.held.drain(..end + close.len()).collect();
            emit(out, Segment::Thinking(text[..end].to_owned()));
            self.state = State::Start { thought: true };
            return Step::Again;
        }
        let end = self.held.len() - if last { 0 } else { overlap(&self.held, close) };
        emit(out, Segment::Thinking(self.held.drain(..end).collect()));
        Step::Wait
    }

    fn in_text(&mut self, last: bool, out: &mut Vec<Segment>) -> Step {
        if !self.may_call() {
            emit(out, Segment::Text(std::mem::take(&mut self.held)));
            return Step::Wait;
        }
        let mut position = self.position;
        let mut at = 0;
        let found = loop {
            let rest = &self.held[at..];
            let Some(c) = rest.chars().next() else {
                break None;
            };
            if position.line_start && c == '`' {
                match starts_with(rest, FENCE, last) {
                    Prefix::Yes => {
                        position = Position {
                            before: Some('`'),
                            line_start: false,
                            fenced: !position.fenced,
                        };
                        at += FENCE.len();
                        continue;
                    }
                    Prefix::Maybe => break None,
                    Prefix::No => {}
                }
            }
            // A quoted or fenced tag is an example in the text, not a call.
            if matches!(c, '<' | '[') && !position.is_quoted() {
                let matches = || {
                    SYNTAXES
                        .iter()
                        .map(|syntax| (syntax, starts_with(rest, syntax.open, last)))
                };
                if let Some((syntax, _)) = matches().find(|(_, found)| *found == Prefix::Yes) {
                    break Some(syntax);
                }
                if matches().any(|(_, found)| found == Prefix::Maybe) {
                    break None;
                }
            }
            position.advance(c);
            at += c.len_utf8();
        };
        self.position = position;
        emit(out, Segment::Text(self.held.drain(..at).collect()));
        let Some(syntax) = found else {
            return Step::Wait;
        };
        self.held.drain(..syntax.open.len());
        self.open(syntax);
        Step::Again
    }

    fn in_call(
        &mut self,
        syntax: &'static Syntax,
        searched: usize,
        last: bool,
        out: &mut Vec<Segment>,
    ) -> Step {
        let Some((body, end)) = find_end(&self.held, syntax, searched, last, &mut self.marks_left)
        else {
            let longest = syntax
                .close
                .iter()
                .map(|close| close.len())
                .max()
                .unwrap_or(0);
            // The end of the text may be the beginning of a closing tag, so it is searched again.
            let mut searched = self.held.len().saturating_sub(longest);
            while !self.held.is_char_boundary(searched) {
                searched -= 1;
            }
            self.state = State::InCall { syntax, searched };
            return Step::Wait;
        };
        let inside: String = self.held.drain(..end).collect();
        match parse::parse_body(syntax.open, &inside[..body], &self.tools) {
            Some((calls, rest)) => {
                self.add_calls(calls, out);
                if !rest.trim().is_empty() {
                    // The model continued with text before the closing tag.
                    self.held.insert_str(0, rest);
                }
            }
            None => {
                // No call of a known tool: the tags and what they enclose are text.
                let text = format!("{}{inside}", syntax.open);
                text.chars().for_each(|c| self.position.advance(c));
                emit(out, Segment::Text(text));
                self.state = State::Text;
            }
        }
        Step::Again
    }

    fn add_calls(&mut self, calls: Vec<Call>, out: &mut Vec<Segment>) {
        out.extend(calls.into_iter().map(Segment::Call));
        self.state = State::AfterCall;
        self.position = Position::START;
    }

    fn after_call(&mut self, last: bool) -> Step {
        let mut rest = self.held.trim_start();
        let next = loop {
            let leftover = LEFTOVERS
                .iter()
                .find(|leftover| starts_with(rest, leftover, last) != Prefix::No);
            match leftover.and_then(|leftover| rest.strip_prefix(*leftover)) {
                _ if rest.is_empty() => break Step::Wait,
                Some(behind) => rest = behind.trim_start(),
                // It may still become a leftover.
                None if leftover.is_some() => break Step::Wait,
                None => {
                    self.state = State::Text;
                    break Step::Again;
                }
            }
        };
        let read = self.held.len() - rest.len();
        self.held.drain(..read);
        next
    }
}

/// Returns the end of a call's body, and the beginning of the text after its closing tag; `None` if
/// more text is needed.
fn find_end(
    text: &str,
    syntax: &Syntax,
    searched: usize,
    last: bool,
    marks_left: &mut u32,
) -> Option<(usize, usize)> {
    let ends = |from: usize| {
        let found = syntax
            .close
            .iter()
            .filter_map(|close| Some((from + text[from..].find(close)?, close.len())));
        found.min_by_key(|(at, _)| *at)
    };
    let mut from = searched;
    while let Some((at, length)) = ends(from) {
        // A closing tag inside a string belongs to an argument.
        if *marks_left == 0 || !parse::is_in_string(&text[..at]) {
            return Some((at, at + length));
        }
        *marks_left -= 1;
        from = at + length;
    }
    last.then(|| ends(0).map_or((text.len(), text.len()), |(at, length)| (at, at + length)))
}

/// The result of comparing a text with a prefix.
#[derive(PartialEq, Eq)]
enum Prefix {
    Yes,
    /// The text is too short to tell.
    Maybe,
    No,
}

/// Compares the beginning of `text` with `prefix`. `last`: no more text follows.
fn starts_with(text: &str, prefix: &str, last: bool) -> Prefix {
    if text.starts_with(prefix) {
        Prefix::Yes
    } else if !last && prefix.starts_with(text) {
        Prefix::Maybe
    } else {
        Prefix::No
    }
}

/// Returns the number of bytes at the end of `text` with which `word` may begin.
fn overlap(text: &str, word: &str) -> usize {
    (1..word.len())
        .rev()
        .find(|length| text.ends_with(&word[..*length]))
        .unwrap_or(0)
}

/// Appends a segment, joined to the last one if both are text or thinking.
fn emit(out: &mut Vec<Segment>, segment: Segment) {
    match (out.last_mut(), segment) {
        (_, Segment::Text(text) | Segment::Thinking(text)) if text.is_empty() => {}
        (Some(Segment::Text(before)), Segment::Text(text))
        | (Some(Segment::Thinking(before)), Segment::Thinking(text)) => before.push_str(&text),
        (_, segment) => out.push(segment),
    }
}

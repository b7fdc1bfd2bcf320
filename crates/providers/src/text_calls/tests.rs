use adjutant_core::ToolDefinition;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tools() -> Vec<ToolDefinition> {
    let number = json!({"type": "object", "properties": {"a": {"type": "integer"}, "text": {"type": "string"}}});
    ["add", "list_tasks"]
        .iter()
        .map(|name| ToolDefinition::new(name, "A tool.", number.clone()).unwrap())
        .collect()
}

/// Reads a text in pieces of so many characters.
fn read(tools: Vec<ToolDefinition>, text: &str, size: usize) -> Vec<Segment> {
    let mut reading = TextCalls::new(tools.into());
    let (mut pieces, mut all) = (Vec::new(), Vec::new());
    let chars: Vec<char> = text.chars().collect();
    for chunk in chars.chunks(size.max(1)) {
        reading.push(&chunk.iter().collect::<String>(), &mut pieces);
        pieces.drain(..).for_each(|piece| merge(&mut all, piece));
    }
    reading.flush(&mut pieces);
    pieces.drain(..).for_each(|piece| merge(&mut all, piece));
    all
}

fn merge(all: &mut Vec<Segment>, piece: Segment) {
    super::emit(all, piece);
}

fn text(words: &str) -> Segment {
    Segment::Text(words.into())
}

fn call(name: &str, arguments: &str) -> Segment {
    Segment::Call(Call {
        name: name.into(),
        arguments: arguments.into(),
    })
}

/// Checks how a text is classified, however it is cut.
fn check(answer: &str, expected: &[Segment]) {
    for size in [1, 2, 3, 7, usize::MAX] {
        assert_eq!(
            read(tools(), answer, size),
            expected,
            "{answer:?} in pieces of {size}"
        );
    }
}

#[test]
fn calls_are_found_in_every_form() {
    let one = [call("add", r#"{"a":1}"#)];
    for answer in [
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        "\n\n<tool_call>{\"name\": \"add\", \"parameters\": {\"a\": 1}}</tool_call>\n<|im_end|>",
        "<tool_call>\n```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```\n</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}",
        "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<function=add><parameter=a> 1",
        "<function=add>{\"a\":1}</function>",
        "<|python_tag|>{\"name\": \"add\", \"parameters\": {\"a\": 1}}<|eom_id|>",
        "<|python_tag|>{\"type\": \"function\", \"name\": \"add\", \"parameters\": {\"a\": 1}}",
        "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}}]</s>",
        "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"id\": \"x\"}]",
        "[TOOL_CALLS]add[ARGS]{\"a\": 1}",
        "[TOOL_CALLS]add[CALL_ID]9[ARGS]{\"a\": 1}",
        "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]<|/tool_call|>",
        "<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
        "<tools>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tools>",
        "<function_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</function_call>",
        "{\"name\": \"add\", \"parameters\": {\"a\": 1}}",
        " {\"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": {\"a\": 1}}}\n",
        "{\"function\": \"add\", \"arguments\": {\"a\": 1}}",
        "[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]",
        "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```",
        "```xml\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>\n```",
        "{\"name\": \"add\", \"arguments\": \"{\\\"a\\\":1}\"}",
    ] {
        check(answer, &one);
    }
}

#[test]
fn several_calls_keep_their_order_and_their_words() {
    check(
        "I look.\n<tool_call>{\"name\": \"list_tasks\"}</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2}}\n</tool_call>\nDone.",
        &[
            text("I look.\n"),
            call("list_tasks", "{}"),
            call("add", "{\"a\":2}"),
            text("Done."),
        ],
    );
    check(
        "{\"name\": \"add\", \"parameters\": {\"a\": 1}}; {\"name\": \"add\", \"parameters\": {\"a\": 2}}",
        &[call("add", "{\"a\":1}"), call("add", "{\"a\":2}")],
    );
    check(
        "[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]list_tasks[ARGS]{}",
        &[call("add", "{\"a\":1}"), call("list_tasks", "{}")],
    );
    check(
        "<function=add>\n<parameter=text>\n1\n</parameter>\n<parameter=a>2</parameter></function><function=list_tasks></function>",
        &[
            call("add", "{\"text\":\"1\",\"a\":2}"),
            call("list_tasks", "{}"),
        ],
    );
}

#[test]
fn an_argument_may_speak_of_the_tags() {
    check(
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"text\": \"a </tool_call> b\"}}</tool_call>",
        &[call("add", "{\"text\":\"a </tool_call> b\"}")],
    );
}

#[test]
fn broken_calls_are_calls_and_stay_broken() {
    for (answer, arguments) in [
        (
            "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1",
            "{\"name\": \"add\", \"arguments\": {\"a\": 1",
        ),
        (
            "<tool_call>{\"name\": \"add\", \"arguments\": {a: 1}}</tool_call>",
            "{\"name\": \"add\", \"arguments\": {a: 1}}",
        ),
        ("<tool_call>{\"name\": \"add\"", "{\"name\": \"add\""),
        (
            "{\"name\": \"add\", \"parameters\": {\"a\": \"x",
            "{\"name\": \"add\", \"parameters\": {\"a\": \"x",
        ),
        ("[TOOL_CALLS]add[ARGS]{\"a\":", "{\"a\":"),
        ("<function=add>oops</function>", "oops"),
    ] {
        check(answer, &[call("add", arguments)]);
        assert!(serde_json::from_str::<serde_json::Map<_, _>>(arguments).is_err());
    }
}

#[test]
fn what_is_no_call_stays_text() {
    for answer in [
        // No tool of the request.
        "<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>",
        "{\"name\": \"fly\", \"parameters\": {}}",
        "<function=fly></function>",
        "[TOOL_CALLS]fly[ARGS]{}",
        // Talked about.
        "You write `<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>` to call it.",
        "Like this:\n```\n<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>\n```\nThat is all.",
        "```json\n{\"name\": \"add\", \"arguments\": {}}\n```\nis how it is called.",
        "Call {\"name\": \"add\", \"arguments\": {}}",
        "{\"name\": \"add\", \"arguments\": {}} is how it is called.",
        // Data.
        "{\"name\": \"add\"}",
        "{\"name\": \"add\", \"description\": \"d\", \"parameters\": {}}",
        "{\"name\": \"add\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
        "{\"title\": \"add\", \"arguments\": {}}",
        "[1, 2]",
        "[\"add\"]",
        "{}",
        "```rust\nfn add() {}\n```",
        // Not even that.
        "a < b [TOOL",
        "<tool_call",
        "<tool_call>nothing</tool_call> and on",
        "<|python_tag|>print(1)",
        "\n\n",
        "`",
    ] {
        check(answer, &[text(answer)]);
    }
    check("", &[]);
}

#[test]
fn without_tools_nothing_is_a_call() {
    let answer = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
    assert_eq!(read(Vec::new(), answer, 1), [text(answer)]);
}

#[test]
fn thinking_at_the_beginning_is_thinking() {
    let thought = || Segment::Thinking("Hm.\n".into());
    check("<think>\nHm.\n</think>\n\nYes.", &[thought(), text("Yes.")]);
    check(
        "\n<think>Hm.\n</think>\n\n<tool_call>{\"name\": \"list_tasks\"}</tool_call>",
        &[thought(), call("list_tasks", "{}")],
    );
    check(
        "<think>Hm.\n</think>{\"name\": \"add\", \"arguments\": {}}",
        &[thought(), call("add", "{}")],
    );
    check("<think>Hm.\n", &[thought()]);
    check("<think>\n\n</think>\n\nYes.", &[text("Yes.")]);
    // As recorded: without its beginning it is what the model said.
    check("Hm.\n</think>\n\nYes.", &[text("Hm.\n</think>\n\nYes.")]);
    check("Say <think>x</think>.", &[text("Say <think>x</think>.")]);
    for (open, close) in THINKING_TAGS {
        let answer = format!("{open}\nHm. <b>\n{close}\n\nYes.");
        check(
            &answer,
            &[Segment::Thinking("Hm. <b>\n".into()), text("Yes.")],
        );
        for quoted in [
            format!("`{open}x{close}` is a tag."),
            format!("```\n{open}x{close}\n```\n"),
            format!("It begins so:\n\n    {open}x{close}\n"),
        ] {
            check(&quoted, &[text(&quoted)]);
        }
    }
}

#[test]
fn nothing_of_a_call_is_said_before_it_is_one() {
    let answer = "Well. <tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>";
    let (mut reading, mut pieces, mut said) =
        (TextCalls::new(tools().into()), Vec::new(), String::new());
    for c in answer.chars() {
        reading.push(&c.to_string(), &mut pieces);
        for piece in pieces.drain(..) {
            if let Segment::Text(words) = piece {
                said += &words;
            }
        }
    }
    assert_eq!(said, "Well. ");
    // And words that need no decision are said at once.
    let (mut reading, mut pieces) = (TextCalls::new(tools().into()), Vec::new());
    reading.push("Good", &mut pieces);
    assert_eq!(pieces, [text("Good")]);
}

/// Pieces of which answers, tags and nonsense are made.
fn token() -> impl Strategy<Value = String> {
    let fixed: Vec<String> = SYNTAXES
        .iter()
        .flat_map(|syntax| syntax.close.iter().chain([&syntax.open]))
        .chain(&[
            "<think>",
            "</think>",
            "[THINK]",
            "[/THINK]",
            "```",
            "`",
            "\n",
            " ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            ":",
            ",",
            ";",
            "\\",
            "add",
            "add>",
            "<parameter=a>",
            "</parameter>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "[ARGS]",
            "{\"name\": \"add\", \"arguments\": {\"a\": 1}}",
            "\"name\"",
            "ä",
            "🦀",
            "1",
        ])
        .map(|token| (*token).to_owned())
        .collect();
    prop_oneof![proptest::sample::select(fixed), "[a-z <>`{}\\[\\]\"]{0,6}"]
}

proptest! {
    #[test]
    fn the_cuts_do_not_matter(tokens in proptest::collection::vec(token(), 0..24), size in 1usize..6) {
        let answer = tokens.concat();
        prop_assert_eq!(read(tools(), &answer, size), read(tools(), &answer, usize::MAX));
    }

    #[test]
    fn without_tools_and_thinking_every_text_stays_as_it_is(answer in ".{0,200}", size in 1usize..6) {
        let is_thinking = |(open, _): &(&str, &str)| answer.trim_start().starts_with(open);
        prop_assume!(!THINKING_TAGS.iter().any(is_thinking) && !answer.is_empty());
        prop_assert_eq!(read(Vec::new(), &answer, size), [text(&answer)]);
    }

    /// Whatever the arguments say, they come out as they went in.
    #[test]
    fn arguments_come_out_whole(words in ".{0,40}", size in 1usize..9) {
        let arguments = json!({ "text": words });
        let answer = format!("<tool_call>{}</tool_call>", json!({"name": "add", "arguments": arguments}));
        prop_assert_eq!(read(tools(), &answer, size), [call("add", &arguments.to_string())]);
    }
}

/// Each of these takes minutes if the text before is gone through for every mark or piece.
#[test]
fn megabytes_of_marks_and_blanks_are_words_in_the_end() {
    let length = |pieces: &[Segment]| {
        let lengths = pieces.iter().map(|piece| match piece {
            Segment::Text(text) | Segment::Thinking(text) => text.len(),
            Segment::Call(call) => call.arguments.len(),
        });
        lengths.sum::<usize>()
    };
    let length_of = |size: usize| if size == 1 { 256 * 1024 } else { 1024 * 1024 };
    for (begin, mark, size) in [
        ("", "<tool_call></tool_call>", usize::MAX),
        ("so: ", "<tool_call>", usize::MAX),
        (
            "<tool_call>{\"name\": \"add\", \"arguments\": {\"text\": \"",
            "</tool_call> ",
            usize::MAX,
        ),
        ("{\"name\": ", "<tool_call>x</tool_call>", usize::MAX),
        ("", "[TOOL_CALLS]add{} x ", usize::MAX),
        ("", " ", 1),
        ("[", " ", 1),
        ("```json\n", " ", 1),
        ("<think>", "<", 1),
    ] {
        let answer = format!("{begin}{}", mark.repeat(length_of(size) / mark.len()));
        let pieces = read(tools(), &answer, size);
        assert!(
            length(&pieces) > length_of(size) / 2 || begin.starts_with("<tool_call>"),
            "{begin:?} {mark:?}: {}",
            length(&pieces)
        );
    }
}

//! Trimming of the history, and fitting of a request into the context window.

use super::*;

#[test]
fn history_is_trimmed_by_whole_turns_in_blocks() {
    let said = |n: usize| Message::user(format!("u{n}")).unwrap();
    let answered = |n: usize| Message::assistant(vec![Part::ours(text(&format!("a{n}")))]).unwrap();
    let past = |turns: usize| -> Vec<Message> {
        (0..turns).flat_map(|n| [said(n), answered(n)]).collect()
    };
    assert_eq!(trim(&past(10), Some(20)).len(), 20, "20 fit");
    let trimmed = |turns| {
        let past = past(turns);
        let kept = trim(&past, Some(20));
        (kept.len(), kept[0].text())
    };
    assert_eq!(
        trimmed(11),
        (10, "u6".to_owned()),
        "one too many: a whole block goes"
    );
    // The prefix stays for the next five turns.
    assert_eq!(trimmed(12), (12, "u6".to_owned()));
    assert_eq!(trimmed(16), (20, "u6".to_owned()));
    assert_eq!(trimmed(17), (10, "u12".to_owned()));
    assert_eq!(trim(&past(50), None).len(), 100);
    assert_eq!(trim(&[], Some(20)).len(), 0);
}

#[test]
fn a_message_is_cut_at_characters_not_bytes() {
    assert_eq!(cut("äöü", 3), None);
    assert_eq!(cut("äöüß", 3).as_deref(), Some("äöü"));
    assert_eq!(cut("", 0), None);
}

#[test]
fn a_request_is_fitted_step_by_step_and_says_so() {
    let mut messages = vec![Message::system("Be brief.").unwrap()];
    (1..=3).for_each(|n| messages.extend(reading(n, 1600)));
    messages.push(Message::user("and?").unwrap());
    let request = GenerateRequest::new(messages);
    let count = |text: &str| estimate_tokens(text);
    let fitted = |window| fit(request.clone(), &capacity(window, 100, 1), &count).map(parted);

    let (same, notices) = fitted(10_000).unwrap();
    assert_eq!((same, notices), (request.clone(), Vec::new()));

    let (cleared, notices) = fitted(1_100).unwrap();
    assert_eq!(cleared.messages.len(), 11);
    crate::message::check_pairing(&cleared.messages).unwrap();
    assert_eq!(
        notices[0].text,
        "The conversation is long: 1 old tool results were left out."
    );

    let (dropped, notices) = fitted(150).unwrap();
    crate::message::check_pairing(&dropped.messages).unwrap();
    assert_eq!(dropped.messages.last().unwrap().text(), "and?");
    assert!(
        dropped.messages.len() < 11 && notices.last().unwrap().text.contains("oldest messages")
    );

    let error = fitted(20).unwrap_err();
    assert!(error.to_string().contains("20 fit"), "{error}");
}

#[test]
fn a_result_longer_than_the_window_is_shown_in_part_the_same_part_each_time() {
    let count = |text: &str| estimate_tokens(text);
    let mut request = GenerateRequest::new(
        [
            vec![Message::system("Be brief.").unwrap()],
            reading(1, 200_000),
        ]
        .concat(),
    );
    let shown = |request: &GenerateRequest, n: usize, own: usize| {
        let (fitted, notices) =
            parted(fit(request.clone(), &capacity(4_096, 1_024, own), &count).unwrap());
        assert!(request_tokens(&fitted, &count) <= 4_096 - 1_024);
        crate::message::check_pairing(&fitted.messages).unwrap();
        (
            fitted.messages[n]
                .tool_result()
                .unwrap()
                .2
                .data
                .clone()
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned(),
            notices,
        )
    };
    let (first, notices) = shown(&request, 3, 3);
    assert_eq!(codes(&notices), ["result_in_part"]);
    assert!(
        notices[0]
            .text
            .contains("read is long (about 50012 tokens)"),
        "{}",
        notices[0].text
    );
    assert!(
        first.starts_with("xxx")
            && first.ends_with("xxx")
            && first.contains("of 200000 characters are left out here ...")
    );
    request.messages.push(Message::user("and?").unwrap());
    assert_eq!(shown(&request, 3, 1).0, first);
    let schema = json!({"type": "object"});
    request.tools = request
        .tools
        .with([ToolDefinition::new(READ_RESULT, "Reads on.", schema).unwrap()]);
    assert!(
        shown(&request, 3, 1)
            .0
            .contains("read_result with call \"call_1\" and from ")
    );
}

#[test]
fn many_results_in_one_turn_are_shortened_before_it_is_given_up() {
    let count = |text: &str| estimate_tokens(text);
    let mut messages = vec![Message::system("Be brief.").unwrap()];
    for n in 1..=5 {
        // One turn: only the first reading has a question.
        messages.extend(reading(n, 40_000).into_iter().skip(usize::from(n > 1)));
    }
    let (fitted, notices) = parted(
        fit(
            GenerateRequest::new(messages),
            &capacity(32_768, 1_024, 11),
            &count,
        )
        .unwrap(),
    );
    crate::message::check_pairing(&fitted.messages).unwrap();
    assert_eq!(fitted.messages.len(), 12);
    assert!(request_tokens(&fitted, &count) <= 32_768 - 1_024);
    assert_eq!(
        codes(&notices),
        ["result_in_part"],
        "what is said once is enough"
    );
    let last = fitted
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .data
        .clone()
        .unwrap();
    assert_eq!(
        *last,
        json!("x".repeat(40_000)),
        "what was read last stays whole"
    );
}

#[test]
fn a_failed_result_is_shortened_and_still_failed() {
    let count = |text: &str| estimate_tokens(text);
    let mut messages = reading(1, 8);
    let id = CallId::new("call_1").unwrap();
    messages[2] = Message::tool(id, "read", ToolResult::failed("ü".repeat(100_000))).unwrap();
    let (fitted, _) = parted(
        fit(
            GenerateRequest::new(messages),
            &capacity(4_096, 1_024, 3),
            &count,
        )
        .unwrap(),
    );
    let (_, _, result) = fitted.messages[2].tool_result().unwrap();
    assert!(
        !result.success
            && result
                .error
                .as_ref()
                .unwrap()
                .contains("of 100000 characters"),
        "{result:?}"
    );
}

//! Decoding of answers: calls, questions and text.

use super::*;

#[test]
fn answers_become_calls_questions_and_words() {
    check_table(&[
        (
            "fed the rabbits",
            complete("Feed the rabbits"),
            r#"complete_task {"task_id":"1"}"#,
        ),
        (
            "buy oil for the lamp",
            add("Buy oil for the lamp"),
            r#"add_task {"description":"Buy oil for the lamp"}"#,
        ),
        (
            "what is done?",
            call("list_tasks", json!({ "status": "completed" })),
            r#"list_tasks {"status":"completed"}"#,
        ),
        (
            "correct bread to bake rye bread",
            update("Bake bread", "Bake rye bread"),
            r#"update_task {"task_id":"3","description":"Bake rye bread"}"#,
        ),
        (
            "take the car off the list",
            delete("Wash the car"),
            r#"delete_task {"task_id":"2"}"#,
        ),
        (
            "hello",
            call("small-talk", json!({ "text": "Hello!" })),
            "says Hello!",
        ),
        (
            "hello",
            call("small-talk", json!({ "text": "How are you?" })),
            "says How are you?",
        ),
        (
            "who is who",
            call("off-topic", json!({ "message": "Not mine." })),
            r#"decline {"message":"Not mine."}"#,
        ),
        (
            "change it",
            call("unclear", json!({ "question": "Which one?" })),
            "asks Which one?",
        ),
    ]);
}

#[test]
fn several_calls_keep_their_order_and_a_repeated_one_counts_once() {
    let text = json!([
        { "complete_task": { "task_id": "Wash the car" } },
        { "complete_task": { "task_id": "Wash the car" } },
        { "add_task": { "description": "Buy wax" } },
        { "delete_task": { "task_id": "Ring Uncle Pete" } },
    ]);
    assert_eq!(
        decoded(
            LIST,
            None,
            "car is washed, I need to buy wax, and what about the rest",
            &text.to_string()
        ),
        format!(
            "complete_task {{\"task_id\":\"2\"}}\nadd_task {{\"description\":\"Buy wax\"}}\n{UNNAMED}"
        )
    );
}

#[test]
fn an_answer_that_is_no_list_of_actions_becomes_a_question() {
    let lost = "asks I did not understand that, and changed nothing. What should I do?";
    let changes = call("small-talk", json!({ "text": "I have added it." }));
    for text in [
        "",
        "Sure!",
        "[]",
        "{\"tool\":3}",
        "[{\"tool\":\"add_task\",\"args\":{\"desc",
        &call("format_disk", json!({})),
        &changes,
    ] {
        assert_eq!(decoded(LIST, None, "buy oil", text), lost, "{text}");
    }
    let wrapped = format!("Here you go:\n```json\n{}\n```", add("Buy oil"));
    assert_eq!(
        decoded(LIST, None, "buy oil", &wrapped),
        r#"add_task {"description":"Buy oil"}"#
    );
}

#[test]
fn what_the_provider_filtered_passes_untouched_and_a_cut_answer_asks() {
    let references = references(LIST);
    let filtered = answer("", FinishReason::ContentFilter);
    assert_eq!(
        weak().decode(
            filtered.clone(),
            &request(None, "buy oil"),
            &references,
            None
        ),
        filtered
    );
    let cut = weak().decode(
        answer("[{\"tool\":\"add", FinishReason::MaxTokens),
        &request(None, "buy oil"),
        &references,
        None,
    );
    assert_eq!(
        (cut.finish, cut.usage.output_tokens),
        (FinishReason::ToolCalls, Some(7))
    );
}

#[test]
fn a_thing_must_be_spoken_of() {
    check_table(&[
        ("delete my task", delete("Wash the car"), UNNAMED),
        ("delete it", delete("Wash the car"), UNNAMED),
        ("mark it as done", complete("Wash the car"), UNNAMED),
        ("the piano is tuned", complete("Wash the car"), UNNAMED),
        (
            "change that one",
            update("Wash the car", "Wash the van"),
            UNNAMED,
        ),
        (
            "the baking is done",
            complete("Bake bread"),
            "asks Which task do you mean: 3. Bake bread, or 5. Bake cookies?",
        ),
        (
            "baked the cookies",
            complete("Bake bread"),
            "asks Which task do you mean: 3. Bake bread, or 5. Bake cookies?",
        ),
        (
            "baked a pie",
            complete("Bake bread"),
            "asks Which task do you mean: 3. Bake bread, or 5. Bake cookies?",
        ),
        (
            "fed the rabits",
            complete("Feed the rabbits"),
            r#"complete_task {"task_id":"1"}"#,
        ),
        (
            "rang uncle Pete",
            complete("Ring Uncle Pete"),
            r#"complete_task {"task_id":"4"}"#,
        ),
        (
            "the attic is tidy",
            complete("Tidy the attic"),
            r#"complete_task {"task_id":"6"}"#,
        ),
    ]);
}

#[test]
fn the_only_thing_needs_no_name() {
    assert_eq!(
        decoded(
            &["Wash the car"],
            None,
            "delete my task",
            &delete("Wash the car")
        ),
        r#"delete_task {"task_id":"1"}"#
    );
    assert_eq!(
        decoded(
            &["Wash the car"],
            None,
            "the piano is tuned",
            &complete("Wash the car")
        ),
        "asks Which task do you mean: 1. Wash the car, or another one?"
    );
    assert_eq!(
        decoded(
            &["Wash the car", "Feed the cat"],
            None,
            "delete my task",
            &delete("Wash the car")
        ),
        "asks Which task do you mean: 1. Wash the car, or 2. Feed the cat?"
    );
}

#[test]
fn a_number_may_belong_to_a_word() {
    let list = ["Sing", "Read page 1", "Read page 2"];
    assert_eq!(
        decoded(&list, None, "done with page 1", &complete("Read page 1")),
        r#"complete_task {"task_id":"2"}"#
    );
    assert!(
        decoded(&list, None, "done with page 1", &complete("Read page 2"))
            .starts_with("asks Which task")
    );
    assert_eq!(
        decoded(&list, None, "done with 1", &complete("Sing")),
        r#"complete_task {"task_id":"1"}"#
    );
}

#[test]
fn a_number_wins_over_the_model() {
    let only_two = "asks Which task do you mean: 2. Wash the car, or another one?";
    check_table(&[
        (
            "task 2 is done",
            complete("Bake bread"),
            r#"complete_task {"task_id":"2"}"#,
        ),
        (
            "finished #2",
            complete("Bake bread"),
            r#"complete_task {"task_id":"2"}"#,
        ),
        (
            "delete 2",
            delete("Bake bread"),
            r#"delete_task {"task_id":"2"}"#,
        ),
        (
            "the third task is done",
            complete("Bake bread"),
            r#"complete_task {"task_id":"3"}"#,
        ),
        (
            "drop the last one",
            delete("Bake bread"),
            r#"delete_task {"task_id":"6"}"#,
        ),
        (
            "task 15 is done",
            complete("Bake bread"),
            "asks There is no task 15. Which task do you mean?",
        ),
        (
            "baked 2 loaves of bread",
            complete("Bake bread"),
            r#"complete_task {"task_id":"3"}"#,
        ),
        (
            "change task 2 to bake 3 rolls",
            update("Bake bread", "Bake 3 rolls"),
            r#"update_task {"task_id":"2","description":"Bake 3 rolls"}"#,
        ),
    ]);
    let both = json!([
        { "complete_task": { "task_id": "Wash the car" } },
        { "complete_task": { "task_id": "Bake bread" } },
    ]);
    assert_eq!(
        decoded(LIST, None, "task 2 and 3 are done", &both.to_string()),
        "complete_task {\"task_id\":\"2\"}\ncomplete_task {\"task_id\":\"3\"}"
    );
    assert_eq!(
        decoded(LIST, None, "task 2 is done", &both.to_string()),
        format!("complete_task {{\"task_id\":\"2\"}}\n{only_two}")
    );
}

#[test]
fn things_with_the_same_words_are_not_confused() {
    let twice = ["Water the roses", "Water the roses", "Sing"];
    assert_eq!(
        decoded(
            &twice,
            None,
            "watered the roses",
            &complete("Water the roses")
        ),
        "asks Which task do you mean: 1. Water the roses, or 2. Water the roses?"
    );
    assert_eq!(
        decoded(&twice, None, "task 2 is done", &complete("Water the roses")),
        r#"complete_task {"task_id":"2"}"#
    );
    let once = ["Water the roses*", "Water the roses"];
    assert_eq!(
        decoded(
            &once,
            None,
            "watered the roses",
            &complete("Water the roses")
        ),
        r#"complete_task {"task_id":"2"}"#
    );
    assert!(
        decoded(&once, None, "delete the roses", &delete("Water the roses"))
            .starts_with("asks Which task")
    );
    let alike = ["Buy soap", "Buy soap dishes"];
    assert_eq!(
        decoded(&alike, None, "bought soap", &complete("Buy soap")),
        r#"complete_task {"task_id":"1"}"#
    );
    assert!(
        decoded(&alike, None, "bought soap dishes", &complete("Buy soap"))
            .starts_with("asks Which task")
    );
}

#[test]
fn what_is_not_so_is_not_done() {
    let sure = "asks Do you want me to complete \u{201c}Wash the car\u{201d}?";
    let done = r#"complete_task {"task_id":"2"}"#;
    let rows = [
        ("I haven't washed the car", sure),
        ("the car is not washed yet", sure),
        ("I will wash the car tomorrow", sure),
        ("we still have to wash the car", sure),
        ("have I washed the car?", sure),
        ("washed the car, but not the dog", done),
        ("mark the car as done, I will do the rest tomorrow", done),
        ("could you mark the car as done?", done),
    ];
    check_table(&rows.map(|(message, becomes)| (message, complete("Wash the car"), becomes)));
    check_table(&[(
        "don't delete the car",
        delete("Wash the car"),
        "asks Do you want me to delete \u{201c}Wash the car\u{201d}?",
    )]);
    check_table(&[(
        "gave the car a wash",
        delete("Wash the car"),
        "asks Do you want me to delete \u{201c}Wash the car\u{201d}?",
    )]);
}

#[test]
fn new_words_must_be_the_persons() {
    let what = "asks What should \u{201c}Bake bread\u{201d} say instead?";
    check_table(&[
        ("rename task 3", update("Bake bread", "Bake bread"), what),
        (
            "the bread got burnt",
            update("Bake bread", "Bake burnt bread"),
            "asks Do you want me to update \u{201c}Bake bread\u{201d}?",
        ),
        (
            "rename task 3",
            update("Bake bread", "Bake a lovely cake"),
            what,
        ),
        (
            "rename task 3 to bake rolls",
            update("Bake bread", "Bake rolls and buns"),
            what,
        ),
        (
            "rename task 3 to bake rolls",
            update("Bake bread", "Bake rolls"),
            r#"update_task {"task_id":"3","description":"Bake rolls"}"#,
        ),
        (
            "remind me to ring Ann",
            update("Ring Uncle Pete", "Ring Ann"),
            "asks Which task do you mean: 4. Ring Uncle Pete, or another one?",
        ),
        (
            "candles",
            add("Candles"),
            "asks Do you want me to add \u{201c}Candles\u{201d}?",
        ),
        (
            "correct task 3 to bake and reminder",
            update("Bake bread", "Bake and remind"),
            what,
        ),
        (
            "add a task",
            add("Add a task"),
            "asks What exactly should I add?",
        ),
        (
            "buy oil",
            add("Visit the opera"),
            "asks What exactly should I add?",
        ),
        (
            "bake cookies!",
            add("Bake cookies"),
            "asks What should I do with \u{201c}Bake cookies\u{201d}?",
        ),
        (
            "add bake cookies",
            add("bake cookies"),
            "asks \u{201c}Bake cookies\u{201d} is already there. Do you want me to add it again?",
        ),
        (
            "I will wash the car on Sunday",
            add("Wash the car on Sunday"),
            "asks \u{201c}Wash the car\u{201d} is already there. Do you want me to add it again?",
        ),
        (
            "add wash the car and the van",
            add("Wash the car and the van"),
            r#"add_task {"description":"Wash the car and the van"}"#,
        ),
        (
            "change the attic, no, the cookies to bake cookies with nuts",
            update("Tidy the attic", "Bake cookies with nuts"),
            "asks Which task do you mean: 6. Tidy the attic (done), or 5. Bake cookies?",
        ),
        (
            "out of oil",
            add("Buy oil"),
            r#"add_task {"description":"Buy oil"}"#,
        ),
    ]);
}

#[test]
fn a_bare_mention_is_a_question_whatever_the_model_says() {
    let what = "asks What should I do with \u{201c}Wash the car\u{201d}?";
    check_table(&[
        ("the car", complete("Wash the car"), what),
        ("Car?", call("list_tasks", json!({})), what),
        (
            "bake",
            delete("Bake bread"),
            "asks What should I do with \u{201c}bake\u{201d}?",
        ),
    ]);
}

#[test]
fn an_order_is_not_turned_into_another_one() {
    check_table(&[
        (
            "delete the piano",
            add("Delete the piano task"),
            r#"add_task {"description":"Delete the piano task"}"#,
        ),
        ("delete the piano", add("The piano"), UNNAMED),
        ("delete the car", complete("Wash the car"), UNNAMED),
        ("please complete the piano", add("Piano"), UNNAMED),
        (
            "add the car",
            complete("Wash the car"),
            "asks What exactly should I add?",
        ),
    ]);
}

#[test]
fn what_was_said_before_counts_where_the_message_points_back() {
    let which = Some("Which task do you mean: 3. Bake bread, or 5. Bake cookies?");
    for (before, message, text, becomes) in [
        (
            which,
            "the second one",
            complete("Bake cookies"),
            r#"complete_task {"task_id":"5"}"#,
        ),
        (
            which,
            "5",
            complete("Bake cookies"),
            r#"complete_task {"task_id":"5"}"#,
        ),
        (
            which,
            "the cookies",
            complete("Bake cookies"),
            r#"complete_task {"task_id":"5"}"#,
        ),
        (
            which,
            "yes",
            complete("Bake cookies"),
            "asks Which task do you mean: 3. Bake bread, or 5. Bake cookies?",
        ),
        (
            Some("Added \u{201c}Wash the car\u{201d}."),
            "delete it",
            delete("Wash the car"),
            r#"delete_task {"task_id":"2"}"#,
        ),
        (
            Some("Added \u{201c}Wash the car\u{201d}."),
            "delete it",
            delete("Bake bread"),
            "asks Which task do you mean: 2. Wash the car, or another one?",
        ),
        (
            Some("Shall I add candles?"),
            "yes",
            add("Candles"),
            r#"add_task {"description":"Candles"}"#,
        ),
        (
            Some("Added candles."),
            "yes",
            add("Lamps"),
            "asks What exactly should I add?",
        ),
        (
            Some("What should it say?"),
            "wash the car",
            add("Wash the car"),
            "asks \u{201c}Wash the car\u{201d} is already there. Do you want me to add it again?",
        ),
    ] {
        assert_eq!(
            decoded(LIST, before, message, &text),
            becomes,
            "for {message:?} after {before:?}"
        );
    }
}

#[test]
fn optional_arguments_nobody_asked_for_are_dropped() {
    let mut request = request(None, "book the sauna room for 3");
    let parameters = json!({
        "type": "object",
        "properties": {
            "room": { "type": "string" }, "note": { "type": "string" }, "people": { "type": "integer" },
            "hours": { "type": "integer" }, "paid": { "type": "boolean" }
        },
        "required": ["room"]
    });
    request.tools =
        request
            .tools
            .with([ToolDefinition::new("book_room", "Reserves a room.", parameters).unwrap()]);
    let args =
        json!({ "room": "sauna", "note": "With towels", "people": 3, "hours": 2, "paid": true });
    let response = weak().decode(
        answer(&call("book_room", args), FinishReason::Stop),
        &request,
        &references(LIST),
        None,
    );
    let call = response.tool_calls().next().unwrap();
    assert_eq!(
        Value::Object(call.arguments.clone()),
        json!({ "room": "sauna", "people": 3 })
    );
}

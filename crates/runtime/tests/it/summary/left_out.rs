//! Messages beyond the limit of a history: told, and summarised where summaries are on.

use super::*;

/// Says so many messages in one conversation; returns the codes of the notices of each answer.
async fn say(agent: &Agent, context: &mut RunContext, messages: usize) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for number in 0..messages {
        let message = format!("message number {number}");
        let response = agent.run_in(context, message).await.unwrap();
        assert_eq!(response.outcome, OutcomeCategory::ResponseGiven);
        all.push(codes(&response).into_iter().map(str::to_owned).collect());
    }
    all
}

/// Messages of the person and the model in a request.
fn spoken(request: &GenerateRequest) -> usize {
    let is_spoken = |message: &&Message| message.role() != Role::System;
    request.messages.iter().filter(is_spoken).count()
}

/// An agent whose requests have at most 20 messages of history.
fn bounded(model: &Reader, summarize_at: Option<WindowShare>) -> Agent {
    let limits = TurnLimits {
        history_messages_max: Some(20),
        ..limits()
    };
    agent(model, &Arc::new(InMemory::new()))
        .limits(limits)
        .summarize_at(summarize_at)
        .build()
        .unwrap()
}

#[tokio::test]
async fn messages_beyond_the_limit_are_summarised_once_per_block() {
    let model = Reader::new(32_768);
    let agent = bounded(&model, share(0.8));
    let mut context = RunContext::default();
    let codes = say(&agent, &mut context, 10).await;
    assert_eq!(
        model.requests().len(),
        10,
        "a short conversation costs no further request"
    );
    assert!(codes.iter().all(Vec::is_empty), "{codes:?}");

    let codes = say(&agent, &mut context, 20).await;
    let summaries = model.summaries();
    assert!(
        (3..=5).contains(&summaries.len()),
        "{} summaries of 40 messages",
        summaries.len()
    );
    let said = summaries[0].messages[1].text();
    assert!(
        said.contains("message number 3") && !said.contains("message number 9"),
        "what is left out is summarised, and no more: {said}"
    );
    assert!(
        summaries[1].messages[1]
            .text()
            .contains("Summary 1: pages were read"),
        "a later summary includes the earlier one"
    );
    let told = codes.iter().flatten();
    assert_eq!(
        told.filter(|code| *code == "context_summarized").count(),
        summaries.len()
    );
    assert!(!codes.iter().flatten().any(|code| code == "history_trimmed"));
    for request in &model.answers()[11..] {
        assert!(spoken(request) <= 21, "{}", spoken(request));
        assert!(
            request.messages[1].text().starts_with("[The "),
            "{}",
            request.messages[1].text()
        );
    }
    check_requests(&model);
}

#[tokio::test]
async fn messages_beyond_the_limit_are_told_where_nothing_is_summarised() {
    let model = Reader::new(32_768);
    let agent = bounded(&model, None);
    let mut context = RunContext::default();
    let codes = say(&agent, &mut context, 14).await;
    assert!(codes[..10].iter().all(Vec::is_empty), "{codes:?}");
    assert!(
        codes[11..]
            .iter()
            .all(|codes| codes == &["history_trimmed"]),
        "{codes:?}"
    );
    assert_eq!(model.requests().len(), 14);
}

#[tokio::test]
async fn a_failed_summary_leaves_the_notice_and_is_tried_again() {
    let model = Reader {
        summary: |number| match number {
            1 => Err(ModelError::Server {
                provider: ProviderId::new("reader").unwrap(),
                status: 500,
                message: "down".to_owned(),
                retry_after: None,
            }),
            number => Ok(format!("Summary {number}")),
        },
        ..Reader::new(32_768)
    };
    let agent = bounded(&model, share(0.8));
    let codes = say(&agent, &mut RunContext::default(), 16).await;
    let failed = codes.iter().position(|codes| {
        codes.contains(&"context_not_summarized".to_owned())
            && codes.contains(&"history_trimmed".to_owned())
    });
    let done = codes
        .iter()
        .position(|codes| codes.contains(&"context_summarized".to_owned()));
    assert!(failed.unwrap() < done.unwrap(), "{codes:?}");
    let second = &model.summaries()[1].messages[1].text();
    assert!(second.contains("message number 0"), "{second}");
    assert_eq!(codes[15], Vec::<String>::new());
}

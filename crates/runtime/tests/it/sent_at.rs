//! The time and zone of the person, beside their message.

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::text;
use adjutant_runtime::RunContext;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;

/// An agent at noon of a day in winter, by the clock of Greenwich.
fn agent(store: &Arc<InMemory>, weak: bool) -> (Agent, ScriptedModel) {
    let model =
        ScriptedModel::new([text("Noted."), text("Still noted.")]).with_requests_kept(usize::MAX);
    let capabilities = Capabilities {
        weak_tools: weak,
        ..model.capabilities().clone()
    };
    let model = model.with_capabilities(capabilities);
    let agent = builder(model.clone())
        .journal(store.clone(), "test")
        .clock(|| "2026-11-28T12:00:00Z".parse::<Timestamp>().unwrap())
        .build()
        .unwrap();
    (agent, model)
}

fn zone(name: &str) -> Option<TimeZone> {
    Some(TimeZone::get(name).unwrap())
}

#[tokio::test]
async fn the_local_time_stands_in_front_of_the_message_and_stays_there() {
    let store = Arc::new(InMemory::new());
    let (agent, model) = agent(&store, false);
    let mut context = RunContext {
        time_zone: zone("Asia/Kolkata"),
        ..RunContext::default()
    };
    agent.run_in(&mut context, "in 20 minutes").await.unwrap();
    // The next message comes from elsewhere, over another process's context.
    let key = agent.key(&context);
    let mut elsewhere = RunContext {
        time_zone: zone("America/New_York"),
        ..agent.context(&key).await.unwrap()
    };
    agent.run_in(&mut elsewhere, "and tomorrow").await.unwrap();
    let requests = model.requests();
    let first = "[The person sent this message on Saturday, 2026-11-28, 17:30 (Asia/Kolkata, UTC+05:30).]\n\nin 20 minutes";
    assert_eq!(requests[0].messages.last().unwrap().text(), first);
    assert!(
        requests[1].messages.starts_with(&requests[0].messages),
        "the next request begins with the same bytes"
    );
    let second = requests[1].messages.last().unwrap().text();
    assert!(
        second.contains("07:00 (America/New_York, UTC-05:00)"),
        "{second}"
    );
    assert_eq!(requests[0].messages[0], requests[1].messages[0]);
    let events = store.load(&key).await.unwrap().events;
    let said: Vec<String> = transcript(&events)
        .into_iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.content)
        .collect();
    assert_eq!(
        said,
        ["in 20 minutes", "and tomorrow"],
        "people read what they wrote"
    );
}

#[tokio::test]
async fn no_time_is_told_without_a_zone_nor_with_constrained_tool_calling() {
    for (weak, time_zone) in [
        (false, None),
        (false, Some(TimeZone::unknown())),
        (true, zone("Europe/Berlin")),
    ] {
        let (agent, model) = agent(&Arc::new(InMemory::new()), weak);
        let mut context = RunContext {
            time_zone,
            ..RunContext::default()
        };
        agent.run_in(&mut context, "hello").await.unwrap();
        let request = format!("{:?}", model.requests()[0].messages);
        assert!(!request.contains("2026"), "{request}");
    }
}

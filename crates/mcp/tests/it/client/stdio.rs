//! Servers in child processes: how they start, answer, fail and end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::{
    CancellationToken, Effect, Permission, Policy, Prepared, ProgressListener, ToolContext,
    ToolError, ToolRegistry, TraceContext, UserId,
};
use adjutant_mcp::client::{
    Backoff, Child, Health, Injected, PinnedTools, Pins, ServerName, Servers, ToolRules, Transport,
};
use serde_json::{Value, json};

use super::place::{
    LONG, call, call_with, context, name, odd, options, report, start, started, tool,
};

/// Returns true if a process with that id runs.
fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

/// The process a server runs in.
async fn pid(servers: &Servers) -> u32 {
    let seen = call(servers, "odd__variables").await.unwrap();
    u32::try_from(seen["pid"].as_u64().unwrap()).unwrap()
}

#[tokio::test]
async fn tools_join_under_names_of_ours_and_answer_with_what_is_structured() {
    let servers = started(odd("usual")).await;
    let report = report(&servers);
    assert_eq!(report.software.as_deref(), Some("odd 1"));
    assert!(
        report
            .tools
            .iter()
            .any(|tool| tool.name == "odd__delete_everything"
                && tool.original == "Delete-Everything")
    );
    assert!(report.left_out.is_empty() && report.warnings.is_empty() && report.changed.is_empty());
    let mut registry = ToolRegistry::new();
    for tool in servers.tools() {
        registry.register(tool).unwrap();
    }
    assert_eq!(
        call_with(&servers, "odd__echo", json!({"text": "hi"}))
            .await
            .unwrap(),
        json!({"text": "hi"})
    );
    let pid = pid(&servers).await;
    assert!(runs(pid));
    servers.stop().await;
    assert!(!runs(pid));
}

#[tokio::test]
async fn annotations_and_rules_decide_which_tools_are_confirmed() {
    let mut config = odd("usual");
    config.rules.confirm = vec!["hang".to_owned()];
    let servers = started(config).await;
    let ana = UserId::new("ana").unwrap();
    let policy = servers.require_confirmations(Policy::default());
    let permission = |name: &str| policy.permission(&ana, tool(&servers, name).definition());
    let effect = |name: &str| tool(&servers, name).definition().annotations.effect();
    assert_eq!(
        (permission("odd__echo"), effect("odd__echo")),
        (Permission::Allow, Effect::None)
    );
    assert_eq!(
        (permission("odd__die"), effect("odd__die")),
        (Permission::Allow, Effect::Once)
    );
    assert_eq!(permission("odd__hang"), Permission::Confirm);
    assert_eq!(permission("odd__delete_everything"), Permission::Confirm);
    let delete = tool(&servers, "odd__delete_everything");
    let Prepared::Ready { preview, .. } = delete
        .prepare(&context(), Default::default())
        .await
        .unwrap()
    else {
        panic!("it asks nothing")
    };
    assert_eq!(preview.as_deref(), Some("Delete  everything (odd)"));
}

#[tokio::test]
async fn a_failed_call_has_the_servers_message() {
    let servers = started(odd("usual")).await;
    // Control characters stay data; whoever shows them makes them harmless.
    assert_eq!(
        call(&servers, "odd__fail").await,
        Err(ToolError::failed("no such \u{1b}[2Jrepository"))
    );
    let refused = call(&servers, "odd__refuse").await.unwrap_err();
    assert!(
        matches!(&refused, ToolError::Invalid { message } if message.ends_with("text must be a haiku")),
        "{refused}"
    );
    let nonsense = call(&servers, "odd__nonsense").await.unwrap_err();
    assert!(matches!(nonsense, ToolError::Unknown { .. }), "{nonsense}");
    assert_eq!(report(&servers).health, Health::Connected);
}

#[tokio::test]
async fn large_results_are_cut_and_say_so_and_too_large_ones_end_the_connection() {
    let mut config = odd("usual");
    config.result_bytes_max = 2_000;
    let servers = started(config).await;
    let cut = call(&servers, "odd__huge").await.unwrap();
    assert_eq!(
        cut["cut"],
        "the result has 1000000 bytes; these are the first 2000"
    );
    assert_eq!(cut["begins"].as_str().unwrap().len(), 2_000);
    let lost = call(&servers, "odd__too_huge").await.unwrap_err();
    assert!(matches!(lost, ToolError::Unknown { .. }), "{lost}");
    // It is brought back.
    call(&servers, "odd__echo").await.unwrap();
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_it_in_doubt_and_is_brought_back() {
    let servers = started(odd("usual")).await;
    let lost = call(&servers, "odd__die").await.unwrap_err();
    assert!(
        matches!(&lost, ToolError::Unknown { message } if message.contains("ended before it answered die")),
        "{lost}"
    );
    assert_eq!(
        call_with(&servers, "odd__echo", json!({"text": "again"}))
            .await
            .unwrap(),
        json!({"text": "again"})
    );
    // Of a call that changes nothing there is nothing to be unsure of.
    let failed = call(&servers, "odd__die_reading").await.unwrap_err();
    assert!(
        matches!(&failed, ToolError::Failed { message } if message.contains("can be called again")),
        "{failed}"
    );
}

#[tokio::test]
async fn a_server_that_keeps_dying_has_failed_until_a_call_needs_it() {
    let mut config = odd("usual");
    config.backoff = Backoff {
        first: Duration::ZERO,
        attempts_max: 1,
        ..Backoff::default()
    };
    let servers = started(config).await;
    call(&servers, "odd__die").await.unwrap_err();
    servers
        .wait_for(&name("odd"), |health| *health == Health::Connected)
        .await;
    call(&servers, "odd__die").await.unwrap_err();
    let given_up = |health: &Health| matches!(health, Health::Failed { reason } if reason.contains("out of memory"));
    tokio::time::timeout(LONG, servers.wait_for(&name("odd"), given_up))
        .await
        .unwrap();
    call(&servers, "odd__echo").await.unwrap();
}

#[tokio::test]
async fn a_stopped_call_is_cancelled_at_the_server_and_its_answer_awaited() {
    let servers = started(odd("usual")).await;
    let (told, hangs) = (
        tool(&servers, "odd__stop_when_told"),
        tool(&servers, "odd__hang"),
    );
    let context = context();
    context.cancelled.cancel();
    assert_eq!(
        told.call(&context, Default::default()).await,
        Ok(json!("stopped half-way"))
    );
    let lost = hangs.call(&context, Default::default()).await.unwrap_err();
    assert!(
        matches!(&lost, ToolError::Unknown { message } if message.contains("may or may not")),
        "{lost}"
    );
    let reading = tool(&servers, "odd__hang_reading");
    let failed = reading
        .call(&context, Default::default())
        .await
        .unwrap_err();
    assert!(matches!(failed, ToolError::Failed { .. }), "{failed}");
}

#[tokio::test]
async fn a_servers_progress_is_forwarded_while_the_call_runs() {
    let servers = started(odd("usual")).await;
    let told = tool(&servers, "odd__tell_progress");
    let (heard, cancelled) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let (words, stop) = (heard.clone(), cancelled.clone());
    let progress = ProgressListener::new(move |progress| {
        words.lock().unwrap().push(progress.to_string());
        stop.cancel();
    });
    let context = ToolContext {
        progress,
        cancelled,
        ..context()
    };
    assert_eq!(
        told.call(&context, Default::default()).await,
        Ok(json!("stopped half-way"))
    );
    assert_eq!(*heard.lock().unwrap(), ["3 of 10: reading \\u{1b}a.txt"]);
}

#[tokio::test]
async fn an_error_of_time_names_the_setting_that_is_in_force() {
    let seconds = Duration::from_secs;
    let limits = |timeout, timeout_max| async move {
        let mut config = odd("usual");
        (config.timeout, config.timeout_max) = (timeout, timeout_max);
        let servers = started(config).await;
        let tool = tool(&servers, "odd__echo");
        let limit = tool.timeout().unwrap_or(seconds(30));
        let most = tool.timeout_with_progress(limit);
        let errors = [tool.timed_out(limit, false), tool.timed_out(most, true)];
        errors.map(|error| error.to_string())
    };
    let late = |limit: &str| format!("the tool did not finish within {limit}");
    assert_eq!(
        limits(None, None).await,
        [
            late("30 s (tool_timeout)"),
            late("300 s (max_timeout of the MCP server odd)")
        ]
    );
    assert_eq!(
        limits(Some(seconds(5)), Some(seconds(60))).await,
        [
            late("5 s (timeout of the MCP server odd)"),
            late("60 s (max_timeout of the MCP server odd)")
        ]
    );
}

#[tokio::test]
async fn only_a_server_of_ours_is_told_in_which_conversation_its_tools_are_called() {
    for (mode, is_told) in [("usual", false), ("ours", true)] {
        let servers = started(odd(mode)).await;
        let (tool, context) = (tool(&servers, "odd__received"), context());
        let received = tool.call(&context, Default::default()).await.unwrap();
        let called = messages(&received)
            .iter()
            .find(|message| message["method"] == "tools/call")
            .unwrap();
        let told = &called["params"]["_meta"]["adjutant/conversation"];
        let conversation = json!(context.conversation.to_string());
        assert_eq!(
            *told,
            if is_told { conversation } else { Value::Null },
            "{called}"
        );
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let servers = started(odd("usual")).await;
    let hang = tool(&servers, "odd__hang");
    let context = context();
    let mut waiting = Box::pin(hang.call(&context, Default::default()));
    // Until the server has it.
    let call_id = loop {
        tokio::select! {
            biased;
            ended = &mut waiting => panic!("it ended: {ended:?}"),
            received = call(&servers, "odd__received") => {
                let received = received.unwrap();
                let hanging = messages(&received).iter().find(|message| message["params"]["name"] == "hang");
                if let Some(message) = hanging {
                    break message["id"].clone();
                }
            }
        }
    };
    drop(waiting);
    let cancelled = async {
        loop {
            let received = call(&servers, "odd__received").await.unwrap();
            if messages(&received).iter().any(|message| {
                message["method"] == "notifications/cancelled"
                    && message["params"]["requestId"] == call_id
            }) {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, cancelled)
        .await
        .expect("the server is told");
}

fn messages(received: &Value) -> &Vec<Value> {
    received["received"].as_array().unwrap()
}

#[tokio::test]
async fn a_failed_start_has_the_servers_last_lines() {
    let servers = start(odd("dies")).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it does not run")
    };
    assert!(
        reason.contains("exit status: 3") && reason.contains("fatal: no token found"),
        "{reason}"
    );
    assert!(!reason.contains('\u{1b}'), "{reason:?}");
    assert!(servers.tools().is_empty());

    let mut required = odd("dies");
    required.required = true;
    let error = start(required).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the MCP server odd is required and did not start: "),
        "{error}"
    );

    let mut missing = odd("usual");
    missing.via = Transport::Child(Child {
        program: "no-such-program-anywhere".into(),
        arguments: Vec::new(),
        variables: Default::default(),
        directory: None,
    });
    let servers = start(missing).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it does not run")
    };
    assert_eq!(
        reason,
        "no-such-program-anywhere cannot be started: there is no such program"
    );

    let mut nowhere = odd("usual");
    let Transport::Child(child) = &mut nowhere.via else {
        panic!("it is a child")
    };
    child.directory = Some("/no/such/folder".into());
    let servers = start(nowhere).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it does not run")
    };
    assert_eq!(
        reason,
        "the folder it is to start in, /no/such/folder, is not there"
    );

    let mut silent = odd("silent");
    silent.start_timeout = Duration::from_millis(300);
    let servers = start(silent).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it does not run")
    };
    assert!(
        reason.contains("no sign of life for 0.3 s (start_timeout)")
            && reason.contains("it still runs"),
        "{reason}"
    );

    let servers = start(odd("refusing")).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it does not run")
    };
    assert!(reason.contains("not on Sundays"), "{reason}");
    // Both handshakes were tried, and each has its reason.
    assert!(
        reason.contains("server/discover: it refuses the handshake: no such method"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_start_that_takes_long_is_waited_for_while_something_happens() {
    let mut busy = odd("busy");
    busy.start_timeout = Duration::from_secs(2);
    started(busy).await;
}

#[tokio::test]
async fn a_server_that_starts_late_is_told_of_and_can_be_used_then() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut late = odd("waits");
    late.start_timeout = Duration::from_millis(300);
    let Transport::Child(child) = &mut late.via else {
        panic!("it is a child")
    };
    child.arguments.push(go.to_str().unwrap().to_owned());
    let servers = start(late).await.unwrap();
    let health = report(&servers).health;
    assert!(matches!(health, Health::Failed { .. }), "{health}");
    std::fs::write(go, "").unwrap();
    let told = tokio::time::timeout(LONG, servers.next_notices()).await;
    let told = format!("{:?}", told.unwrap());
    assert!(told.contains("has started now; its "), "{told}");
    assert_eq!(report(&servers).health, Health::Connected);
}

/// Keeps the definitions that a person has agreed to, for the next start.
#[derive(Default)]
struct Agreed(Mutex<BTreeMap<String, PinnedTools>>);

impl Pins for Agreed {
    fn load(&self, server: &ServerName) -> Result<Option<PinnedTools>, String> {
        Ok(self.0.lock().unwrap().get(server.as_str()).cloned())
    }

    fn save(&self, server: &ServerName, tools: &PinnedTools) -> Result<(), String> {
        let mut agreed = self.0.lock().unwrap();
        agreed.insert(server.to_string(), tools.clone());
        Ok(())
    }

    fn how_to_accept(&self, server: &ServerName) -> String {
        format!("accept {server}")
    }
}

#[tokio::test]
async fn a_server_that_a_call_needs_does_not_wait_for_its_turn_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let pins = Arc::new(Agreed::default());
    let start_all = async || {
        // At least as many as may start at once.
        let most = std::thread::available_parallelism().map_or(2, |most| most.get().max(2));
        let slow = (0..most).map(|number| {
            let mut slow = odd("waits");
            slow.name = name(&format!("slow{number}"));
            let Transport::Child(child) = &mut slow.via else {
                panic!("it is a child")
            };
            child.arguments.push(go.to_str().unwrap().to_owned());
            slow
        });
        let mut options = options().0;
        options.pins = Some(pins.clone());
        let all = slow.chain([odd("usual")]).collect();
        Servers::start(all, options).await.unwrap()
    };
    std::fs::write(&go, "").unwrap();
    start_all().await.stop().await;
    std::fs::remove_file(&go).unwrap();

    let servers = start_all().await;
    call(&servers, "odd__echo").await.unwrap();
    let states = servers.report().into_iter().map(|report| report.health);
    let waiting = states.filter(|health| *health == Health::Starting).count();
    assert_eq!(waiting + 1, servers.report().len(), "the others wait");
    std::fs::write(&go, "").unwrap();
    servers.stop().await;
}

#[tokio::test]
async fn a_result_that_breaks_its_own_schema_is_used_and_told_of_once() {
    let servers = started(odd("usual")).await;
    for _ in 0..2 {
        let result = call(&servers, "odd__misfit").await.unwrap();
        assert_eq!(result, json!({"n": "many"}));
    }
    let notices = servers.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].1.contains("a result of misfit does not fit"),
        "{notices:?}"
    );
    // Nor is no result at all a failure.
    assert_eq!(call(&servers, "odd__bare").await.unwrap(), json!([]));
}

#[tokio::test]
async fn a_list_that_leads_in_a_circle_is_told_in_one_line() {
    let servers = started(odd("circle")).await;
    let report = report(&servers);
    assert_eq!(report.tools.len(), 2);
    assert_eq!((report.left_out.len(), report.warnings.len()), (0, 1));
    assert!(
        report.warnings[0].contains("in a circle"),
        "{:?}",
        report.warnings
    );
}

#[tokio::test]
async fn a_server_of_the_newer_protocol_is_greeted_in_its_own_way() {
    let servers = started(odd("newer")).await;
    assert_eq!(
        call_with(&servers, "odd__echo", json!({"text": "hi"}))
            .await
            .unwrap(),
        json!({"text": "hi"})
    );
}

#[tokio::test]
async fn what_is_printed_beside_messages_breaks_nothing() {
    let (options, said) = options();
    let servers = Servers::start(vec![odd("noisy")], options).await.unwrap();
    assert_eq!(report(&servers).health, Health::Connected);
    call(&servers, "odd__echo").await.unwrap();
    let said = said.lock().unwrap();
    assert!(
        said.contains(&"odd: Welcome to the odd server!".to_owned()),
        "{said:?}"
    );
    assert!(said.contains(&"odd: [not, json".to_owned()), "{said:?}");
}

#[tokio::test]
async fn what_a_server_asks_for_is_declined() {
    let (options, said) = options();
    let servers = Servers::start(vec![odd("usual")], options).await.unwrap();
    let answers = call(&servers, "odd__ask").await.unwrap();
    assert_eq!(
        answers["answers"][0]["error"]["message"],
        "this client does not offer sampling/createMessage"
    );
    assert_eq!(
        answers["answers"][1]["error"]["message"],
        "this client does not offer roots/list"
    );
    assert_eq!(
        answers["answers"][2]["result"]["action"], "cancel",
        "nobody was asked, so nobody has said no"
    );
    assert!(
        said.lock()
            .unwrap()
            .iter()
            .any(|words| words.contains("elicitation")),
        "{said:?}"
    );
}

#[tokio::test]
async fn tools_that_changed_are_told_and_not_called() {
    let servers = started(odd("usual")).await;
    call(&servers, "odd__change_nothing").await.unwrap();
    call(&servers, "odd__change").await.unwrap();
    let refused = async {
        loop {
            match call(&servers, "odd__echo").await {
                // The server does as before; until it was asked again, nobody knows.
                Ok(_) => {}
                Err(error) => break error,
            }
        }
    };
    let refused = tokio::time::timeout(LONG, refused).await.unwrap();
    assert!(
        refused
            .to_string()
            .contains("changed or removed its tool echo"),
        "{refused}"
    );
    assert_eq!(report(&servers).changed, ["echo", "echo_2"]);
    // The others are as they were.
    call(&servers, "odd__received").await.unwrap();
}

#[tokio::test]
async fn tools_that_cannot_join_are_named_with_the_reason() {
    let servers = started(odd("schemas")).await;
    let report = report(&servers);
    let joined: Vec<(&str, &str)> = report
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.original.as_str()))
        .collect();
    let expected = [
        ("odd__a_b", "a-b"),
        ("odd__a_b_2", "a.b"),
        ("odd__good", "good"),
        ("odd__later_or_now", "later_or_now"),
        ("odd__php", "php"),
        ("odd__twice", "twice"),
    ];
    assert_eq!(joined, expected);
    let left_out: Vec<&str> = report
        .left_out
        .iter()
        .map(|tool| tool.original.as_str())
        .collect();
    assert_eq!(left_out, ["bad", "later", "remote", "twice"]);
    assert!(
        report
            .left_out
            .iter()
            .all(|tool| !tool.by_rule && !tool.reason.is_empty())
    );
}

#[tokio::test]
async fn lists_end_and_no_tools_are_no_failure() {
    let servers = started(odd("endless")).await;
    assert_eq!(servers.tools().len(), 512);
    assert!(
        report(&servers).warnings[0].contains("more than 512 tools"),
        "{:?}",
        report(&servers).warnings
    );
    let servers = started(odd("empty_pages")).await;
    assert_eq!(
        report(&servers).warnings,
        ["its list of tools has more than 100 pages; only the first are looked at"]
    );
    let servers = started(odd("no_tools")).await;
    assert!(servers.tools().is_empty());
    let mut unlisted = odd("unlisted");
    unlisted.start_timeout = Duration::from_millis(300);
    let servers = start(unlisted).await.unwrap();
    let Health::Failed { reason } = report(&servers).health else {
        panic!("it lists nothing")
    };
    assert!(
        reason.starts_with("no answer to the request for its tools, and no sign of life for 0.3 s"),
        "{reason}"
    );
}

#[tokio::test]
async fn rules_choose_and_what_they_miss_is_told() {
    let mut config = odd("usual");
    config.rules = ToolRules {
        allow: Some(vec![
            "echo".to_owned(),
            "whoami".to_owned(),
            "ecko".to_owned(),
        ]),
        inject: [(Injected::UserId, "who".to_owned())].into(),
        ..ToolRules::default()
    };
    let servers = started(config).await;
    let report = report(&servers);
    assert_eq!(report.tools.len(), 2);
    assert!(report.left_out.iter().all(|tool| tool.by_rule));
    assert_eq!(
        report.warnings,
        ["allow names \"ecko\", and it has no such tool; did you mean \"echo\"?"]
    );
    let whoami = tool(&servers, "odd__whoami");
    assert_eq!(
        whoami.definition().parameters,
        json!({"type": "object", "properties": {}, "required": []})
    );
    // Not even a model that guesses the argument is somebody else.
    let said = call_with(&servers, "odd__whoami", json!({"who": "bob"}))
        .await
        .unwrap();
    assert_eq!(said, json!({"who": "ana"}));
}

#[tokio::test]
async fn a_child_gets_the_variables_it_was_given_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = odd("usual");
    let Transport::Child(child) = &mut config.via else {
        panic!("it is a child")
    };
    child.directory = Some(folder.path().to_owned());
    let servers = started(config).await;
    let seen = call(&servers, "odd__variables").await.unwrap();
    assert_eq!(seen["names"], json!(["TOKEN"]));
    assert_eq!(seen["token"], "t-123");
    assert_eq!(
        Path::new(seen["place"].as_str().unwrap()),
        folder.path().canonicalize().unwrap()
    );
}

#[tokio::test]
async fn no_child_outlives_the_agent_however_stubborn() {
    let servers = started(odd("stubborn")).await;
    let stubborn = pid(&servers).await;
    servers.stop().await;
    assert!(!runs(stubborn));

    let servers = started(odd("stubborn")).await;
    let tools = servers.tools();
    let stubborn = pid(&servers).await;
    drop(servers);
    let gone = async {
        while runs(stubborn) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap();
    // Its tools are still somewhere, and say what there is to say.
    let echo = tools
        .iter()
        .find(|tool| tool.definition().name.as_str() == "odd__echo")
        .map(Arc::clone)
        .unwrap();
    let error = echo.call(&context(), Default::default()).await.unwrap_err();
    assert!(matches!(error, ToolError::Failed { .. }), "{error}");
}

#[tokio::test]
async fn one_bad_server_keeps_no_other_away() {
    let (options, _) = options();
    let mut bad = odd("dies");
    bad.name = name("bad");
    let mut off = odd("usual");
    (off.name, off.disabled) = (name("off"), true);
    let mut unset = odd("usual");
    (unset.name, unset.unusable) = (
        name("unset"),
        Some("not set in the environment: TOKEN".to_owned()),
    );
    let servers = Servers::start(vec![bad, off, unset, odd("usual")], options)
        .await
        .unwrap();
    let health: Vec<String> = servers
        .report()
        .iter()
        .map(|server| server.health.to_string())
        .collect();
    assert!(health[0].starts_with("failed: "));
    assert_eq!(
        &health[1..],
        [
            "disabled",
            "failed: not set in the environment: TOKEN",
            "connected"
        ]
    );
    call(&servers, "odd__echo").await.unwrap();
}

#[tokio::test]
async fn a_servers_output_is_bounded_over_every_channel() {
    let (options, said) = options();
    let servers = Servers::start(vec![odd("usual")], options).await.unwrap();
    call(&servers, "odd__log_much").await.unwrap();
    servers.stop().await;
    let said = said.lock().unwrap();
    let logged: Vec<&String> = said.iter().filter(|line| line.contains("xxx")).collect();
    assert!(
        !logged.is_empty() && logged.len() < 2_000,
        "{} lines",
        logged.len()
    );
    assert!(
        logged.iter().all(|line| line.len() < 2_100),
        "{} bytes",
        logged[0].len()
    );
}

#[tokio::test]
async fn the_trace_of_a_call_goes_along() {
    let servers = started(odd("usual")).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for trace in [
        None,
        TraceContext::parse(parent, None),
        TraceContext::parse(parent, Some("a=1")),
    ] {
        let state = trace
            .as_ref()
            .and_then(|trace| trace.tracestate().map(str::to_owned));
        let context = ToolContext {
            trace: trace.clone(),
            ..context()
        };
        let received = tool(&servers, "odd__received")
            .call(&context, Default::default())
            .await
            .unwrap();
        let meta = &messages(&received).last().unwrap()["params"]["_meta"];
        assert_eq!(
            meta["traceparent"].as_str(),
            trace.map(|_| parent),
            "{received}"
        );
        assert_eq!(meta["tracestate"].as_str(), state.as_deref(), "{received}");
    }
}

//! Categories of the decision log: labelled answers through the real turn and the real gate.
//!
//! `crates/core/tests/answers/README.md` says where the answers come from. The tables are exact: a
//! rule that reads one answer less rightly, or one more, changes them. `docs/decision-log.md` shows
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use adjutant_core::turn::{ASK_USER, Action, CallEnd, DECLINE, ToolStyle, Turn, TurnSetup};
use adjutant_core::*;
use expect_test::expect;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::gate::check;

/// The task assistant's tools, and whether they only read.
const TOOLS: [(&str, bool); 5] = [
    ("add_task", false),
    ("list_tasks", true),
    ("update_task", false),
    ("complete_task", false),
    ("delete_task", false),
];

/// An answer or a call with the label that a careful reader gives it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Labelled {
    id: String,
    source: String,
    #[serde(default, rename = "origin")]
    _origin: Option<String>,
    lang: String,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    call: Option<String>,
    #[serde(default)]
    arguments: Arguments,
    #[serde(default)]
    arguments_text: Option<String>,
    /// Tools that were executed before in the same turn.
    #[serde(default)]
    after: Vec<String>,
}

impl Labelled {
    /// Lines with an even number are held out.
    fn is_held_out(&self) -> bool {
        self.id.ends_with(['0', '2', '4', '6', '8'])
    }

    fn content(&self) -> Content {
        match (&self.answer, &self.call) {
            (Some(answer), None) => Content::Text {
                text: answer.clone(),
            },
            (None, Some(name)) => Content::ToolCall(match &self.arguments_text {
                Some(text) => ToolCall::from_json_text(0, None, name.clone(), text),
                None => ToolCall::from_object(0, None, name.clone(), self.arguments.clone()),
            }),
            _ => panic!("{}: words or a call", self.id),
        }
    }
}

fn read(file: &str) -> Vec<Labelled> {
    file.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn gate() -> Gate {
    /// A tool that is only looked at.
    struct Known(ToolDefinition);
    impl Tool for Known {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }
        fn call<'a>(
            &'a self,
            _: &'a ToolContext,
            _: Arguments,
        ) -> BoxFuture<'a, Result<Value, ToolError>> {
            panic!("the gate executes nothing")
        }
    }
    let mut registry = ToolRegistry::new();
    for (name, read_only) in TOOLS {
        let definition =
            ToolDefinition::new(name, "Keeps tasks.", json!({"type": "object"})).unwrap();
        let annotations = Annotations {
            read_only,
            ..Annotations::default()
        };
        registry
            .register(Arc::new(Known(definition.annotated(annotations))))
            .unwrap();
    }
    Gate {
        registry,
        policy: Policy::default(),
    }
}

/// The end of a turn, and the number of model calls.
struct Ended {
    end: TurnEnd,
    asked: usize,
}

/// Runs a turn in which the model answers with these, one after the other, and with the last one
/// again and again.
fn play(user: Option<&str>, mut replies: Vec<Content>) -> Ended {
    let gate = gate();
    let message = user.unwrap_or("Please go on.").to_owned();
    let mut turn = Turn::new(TurnSetup {
        turn: TurnId(Uuid::from_u128(7)),
        model: ModelId::new("test", "model").unwrap(),
        instruction: String::new(),
        recalled: TurnHistory::default(),
        reports_failed_calls: true,
        claims_change: None,
        choice: adjutant_core::ToolChoice::Auto,
        context: String::new(),
        call: None,
        message_chars: message.chars().count(),
        sent_at: None,
        recalled_texts: Vec::new(),
        message,
        tools: gate.registry.tool_set(),
        control_functions: true,
        config: GenerationConfig::default(),
        limits: TurnLimits::default(),
        style: ToolStyle::Native,
        output: None,
        schema_support: SchemaSupport::Native,
    })
    .unwrap();
    let mut asked = 0;
    let mut action = turn.start().unwrap();
    loop {
        action = match action {
            Action::CallModel(_) => {
                asked += 1;
                let said = if replies.len() > 1 {
                    replies.remove(0)
                } else {
                    replies[0].clone()
                };
                turn.on_model_result(Ok(GenerateResponse {
                    finish: if matches!(said, Content::ToolCall(_)) {
                        FinishReason::ToolCalls
                    } else {
                        FinishReason::Stop
                    },
                    parts: vec![Part::ours(said)],
                    usage: Usage::default(),
                    model: ModelId::new("test", "model").unwrap(),
                    counters: Counters::default(),
                    cost: None,
                    losses: Vec::new(),
                    certainty: None,
                }))
            }
            Action::CallTools(calls) => turn.on_call_ends(
                calls
                    .iter()
                    .map(|call| (call.id.clone(), end_of(&gate, call)))
                    .collect(),
            ),
            Action::AskUser { content, .. } => panic!("nothing here waits: {content}"),
            Action::Finish(end) => return Ended { end: *end, asked },
        }
        .unwrap();
    }
}

fn end_of(gate: &Gate, call: &ToolCall) -> CallEnd {
    let text = call.malformed.as_ref().map_or_else(
        || Value::Object(call.arguments.clone()).to_string(),
        |malformed| malformed.text.clone(),
    );
    match check(gate, &call.name, &text, &[]) {
        GateVerdict::Run { arguments } => CallEnd::Executed {
            arguments,
            result: ToolResult::ok(json!("ok")),
            summary: None,
        },
        GateVerdict::Refuse { refusal, message } => CallEnd::Refused { refusal, message },
        other => panic!("nothing here waits: {other:?}"),
    }
}

/// The category of a labelled answer.
fn category(labelled: &Labelled) -> String {
    let before = labelled.after.iter().map(|tool| {
        Content::ToolCall(ToolCall::from_object(
            0,
            None,
            tool.clone(),
            Arguments::new(),
        ))
    });
    play(
        labelled.user.as_deref(),
        before.chain([labelled.content()]).collect(),
    )
    .end
    .outcome
    .to_string()
}

/// Returns true if a call of an unknown tool was reported to the model, changed nothing, and is not
/// the intent of the turn.
fn is_ignored(labelled: &Labelled) -> bool {
    let sorry = Content::Text {
        text: "Something went wrong there.".to_owned(),
    };
    let Ended { end, asked } = play(labelled.user.as_deref(), vec![labelled.content(), sorry]);
    asked == 2
        && end.tools_used.is_empty()
        && end.outcome == OutcomeCategory::ToolFailure
        && end.decision.intent == UserIntent::GeneralChat
}

const SUCCESS: [&str; 2] = ["SUCCESS:RESPONSE_GIVEN", "SUCCESS:TASK_COMPLETED"];
const QUESTION: [&str; 1] = ["AMBIGUITY:UNCLEAR_INTENT"];
const REFUSAL: [&str; 1] = ["REFUSAL:OUT_OF_SCOPE"];
const FAILURE: [&str; 1] = ["ERROR:LLM_FAILURE"];

/// Kind, what is right for it, and the labelled answers.
fn kinds() -> [(&'static str, &'static [&'static str], Vec<Labelled>); 4] {
    [
        (
            "answer",
            &SUCCESS,
            read(include_str!("../answers/answer.jsonl")),
        ),
        (
            "question",
            &QUESTION,
            read(include_str!("../answers/question.jsonl")),
        ),
        (
            "refusal",
            &REFUSAL,
            read(include_str!("../answers/refusal.jsonl")),
        ),
        (
            "malformed",
            &FAILURE,
            read(include_str!("../answers/malformed.jsonl")),
        ),
    ]
}

#[derive(Default, Clone, Copy)]
struct Count {
    right: usize,
    of: usize,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.right, self.of)
    }
}

/// Compares the categories of all labelled answers with a table for each half.
#[test]
fn categories_of_labelled_answers() {
    let mut tables = String::new();
    for held_out in [false, true] {
        let _ = writeln!(
            tables,
            "{}",
            if held_out { "held out" } else { "development" }
        );
        let mut called: BTreeMap<&str, Count> = BTreeMap::new();
        for (kind, right, all) in kinds() {
            let mut became: BTreeMap<String, usize> = BTreeMap::new();
            let mut by_source: BTreeMap<String, Count> = BTreeMap::new();
            for labelled in all
                .iter()
                .filter(|labelled| labelled.is_held_out() == held_out)
            {
                let category = category(labelled);
                let is_right = right.contains(&category.as_str());
                for name in ["all", &labelled.source, &format!("{}.", labelled.lang)] {
                    let count = by_source.entry(name.to_owned()).or_default();
                    count.of += 1;
                    count.right += usize::from(is_right);
                }
                if !is_right && !held_out {
                    println!("{} {category}: {}", labelled.id, json!(labelled.answer));
                }
                for (name, words) in [("question", &QUESTION), ("refusal", &REFUSAL)] {
                    if words.contains(&category.as_str()) {
                        let count = called.entry(name).or_default();
                        count.of += 1;
                        count.right += usize::from(kind == name);
                    }
                }
                *became.entry(category).or_default() += 1;
            }
            let sources: Vec<String> = by_source
                .iter()
                .map(|(source, count)| format!("{source} {count}"))
                .collect();
            let became: Vec<String> = became
                .iter()
                .map(|(category, n)| format!("{n} {category}"))
                .collect();
            let _ = writeln!(
                tables,
                "  {kind}: {}\n    {}",
                sources.join(", "),
                became.join(", ")
            );
        }
        for (name, count) in called {
            let _ = writeln!(tables, "  called a {name}: right {count}");
        }
        // The same questions and refusals, said with the functions that models are offered for
        // them.
        for (kind, right, all) in kinds() {
            let (name, argument) = match kind {
                "question" => (ASK_USER, "question"),
                "refusal" => (DECLINE, "message"),
                _ => continue,
            };
            let half: Vec<&Labelled> = all
                .iter()
                .filter(|labelled| labelled.is_held_out() == held_out)
                .collect();
            let is_right = |labelled: &&&Labelled| {
                let words = [(argument.to_owned(), json!(labelled.answer))]
                    .into_iter()
                    .collect();
                let call =
                    Content::ToolCall(ToolCall::from_object(0, None, name.to_owned(), words));
                right.contains(
                    &play(labelled.user.as_deref(), vec![call])
                        .end
                        .outcome
                        .as_str(),
                )
            };
            let count = Count {
                right: half.iter().filter(is_right).count(),
                of: half.len(),
            };
            let _ = writeln!(tables, "  {kind} by {name}: {count}");
        }
        let unknown = read(include_str!("../answers/unknown-tool.jsonl"));
        let half = || {
            unknown
                .iter()
                .filter(|labelled| labelled.is_held_out() == held_out)
        };
        let count = Count {
            right: half().filter(|labelled| is_ignored(labelled)).count(),
            of: half().count(),
        };
        let _ = writeln!(tables, "  unknown tool: {count}");
    }
    expect![[r#"
        development
          answer: all 47 of 47, de. 2 of 2, en. 39 of 39, es. 2 of 2, fr. 1 of 1, it. 1 of 1, other author 18 of 18, own 11 of 11, pl. 1 of 1, recorded 18 of 18, zh. 1 of 1
            45 SUCCESS:RESPONSE_GIVEN, 2 SUCCESS:TASK_COMPLETED
          question: all 27 of 27, de. 2 of 2, en. 22 of 22, es. 2 of 2, it. 1 of 1, other author 18 of 18, own 8 of 8, recorded 1 of 1
            27 AMBIGUITY:UNCLEAR_INTENT
          refusal: all 29 of 30, de. 1 of 1, en. 27 of 28, fr. 1 of 1, other author 17 of 18, own 7 of 7, recorded 5 of 5
            29 REFUSAL:OUT_OF_SCOPE, 1 SUCCESS:RESPONSE_GIVEN
          malformed: all 21 of 21, de. 1 of 1, en. 20 of 20, other author 8 of 8, own 12 of 12, recorded 1 of 1
            21 ERROR:LLM_FAILURE
          called a question: right 27 of 27
          called a refusal: right 29 of 29
          question by ask_user: 27 of 27
          refusal by decline: 30 of 30
          unknown tool: 22 of 22
        held out
          answer: all 43 of 46, de. 2 of 2, en. 39 of 42, fr. 1 of 1, ja. 1 of 1, other author 14 of 17, own 11 of 11, recorded 18 of 18
            3 AMBIGUITY:UNCLEAR_INTENT, 39 SUCCESS:RESPONSE_GIVEN, 4 SUCCESS:TASK_COMPLETED
          question: all 22 of 27, de. 2 of 2, en. 18 of 22, fr. 2 of 3, other author 12 of 17, own 8 of 8, recorded 2 of 2
            22 AMBIGUITY:UNCLEAR_INTENT, 5 SUCCESS:RESPONSE_GIVEN
          refusal: all 24 of 30, de. 3 of 3, en. 18 of 23, es. 2 of 2, fr. 1 of 1, it. 0 of 1, other author 13 of 17, own 6 of 7, recorded 5 of 6
            24 REFUSAL:OUT_OF_SCOPE, 6 SUCCESS:RESPONSE_GIVEN
          malformed: all 20 of 20, en. 19 of 19, es. 1 of 1, other author 7 of 7, own 12 of 12, recorded 1 of 1
            20 ERROR:LLM_FAILURE
          called a question: right 22 of 25
          called a refusal: right 24 of 24
          question by ask_user: 27 of 27
          refusal by decline: 30 of 30
          unknown tool: 22 of 22
    "#]].assert_eq(&tables);
}

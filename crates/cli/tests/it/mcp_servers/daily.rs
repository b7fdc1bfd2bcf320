//! Ordinary days of a person with a vault, a mail server and the web: what they are asked about.

use serde_json::{Value, json};

use super::calls;
use crate::harness::{Home, arg};
use crate::service::Serving;

/// A message, the calls that a model makes for it, and whether a question about one is right: the
/// call says what the person did not say.
type Turn = (&'static str, Vec<(&'static str, Value)>, bool);

fn turns() -> Vec<Turn> {
    let note = "The rent rises to 1,200 in May.";
    vec![
        (
            "good morning, what is on my list?",
            vec![("list_tasks", json!({}))],
            false,
        ),
        (
            "add buy milk",
            vec![("add_task", json!({"description": "Buy milk"}))],
            false,
        ),
        (
            "and call the dentist tomorrow",
            vec![(
                "add_task",
                json!({"description": "Call the dentist tomorrow"}),
            )],
            false,
        ),
        (
            "any new mail?",
            vec![("daily__list_mails", json!({}))],
            false,
        ),
        (
            "what does Anna write?",
            vec![("daily__read_mail", json!({"id": 5}))],
            false,
        ),
        (
            "put lunch with Anna on Friday on my list",
            vec![(
                "add_task",
                json!({"description": "Lunch with Anna on Friday"}),
            )],
            false,
        ),
        (
            "tell her yes, I am coming",
            vec![(
                "daily__send_mail",
                json!({"to": "anna@home.example", "subject": "Lunch on Friday", "body": "Yes, I am coming."}),
            )],
            true,
        ),
        (
            "archive the mail Lunch on Friday",
            vec![("daily__archive_mail", json!({"id": 5}))],
            false,
        ),
        (
            "milk is bought",
            vec![("complete_task", json!({"task_id": "milk"}))],
            false,
        ),
        (
            "what is the weather in Oslo?",
            vec![("daily__search_web", json!({"query": "weather Oslo"}))],
            false,
        ),
        (
            "read https://weather.example/oslo",
            vec![(
                "daily__fetch",
                json!({"url": "https://weather.example/oslo"}),
            )],
            false,
        ),
        (
            "note in my diary: the dentist was kind",
            vec![(
                "write_daily_note",
                json!({"activity": "The dentist was kind."}),
            )],
            false,
        ),
        (
            "find the mails about the invoice",
            vec![("daily__search_mails", json!({"query": "invoice"}))],
            false,
        ),
        (
            "remind me to pay invoice 1207 by Friday",
            vec![(
                "add_task",
                json!({"description": "Pay invoice 1207 by Friday"}),
            )],
            false,
        ),
        (
            "what did I write about Berlin?",
            vec![("search_notes", json!({"query": "Berlin"}))],
            false,
        ),
        (
            "open the note Berlin",
            vec![("read_note", json!({"note": "Berlin"}))],
            false,
        ),
        (
            "write a note Rent: the rent rises to 1,200 in May",
            vec![("write_note", json!({"note": "Rent", "content": note}))],
            false,
        ),
        (
            "read it to me",
            vec![("read_note", json!({"note": "Rent"}))],
            false,
        ),
        (
            "rename buy milk to buy oat milk",
            vec![(
                "update_task",
                json!({"task_id": "milk", "description": "Buy oat milk"}),
            )],
            false,
        ),
        (
            "what was I told about Anna?",
            vec![("recall", json!({"query": "Anna"}))],
            false,
        ),
        (
            "how much was invoice 1207?",
            vec![("daily__search_mails", json!({"query": "1207"}))],
            false,
        ),
        (
            "send 'I have paid' to billing@shop.example, subject Invoice 1207",
            vec![(
                "daily__send_mail",
                json!({"to": "billing@shop.example", "subject": "Invoice 1207", "body": "I have paid"}),
            )],
            false,
        ),
        (
            "the invoice is done",
            vec![("complete_task", json!({"task_id": "invoice"}))],
            false,
        ),
        (
            "look for a museum in Berlin",
            vec![("daily__search_web", json!({"query": "museum Berlin"}))],
            false,
        ),
        (
            "add visit the museum",
            vec![("add_task", json!({"description": "Visit the museum"}))],
            false,
        ),
        ("what is open?", vec![("list_tasks", json!({}))], false),
        ("show my notes", vec![("list_notes", json!({}))], false),
        ("new mail?", vec![("daily__list_mails", json!({}))], false),
        (
            "write in my diary that we had lunch",
            vec![("write_daily_note", json!({"activity": "We had lunch."}))],
            false,
        ),
        ("thank you, good night", vec![], false),
    ]
}

/// In one conversation, so that everything after the first mail is after words of others.
#[test]
fn thirty_ordinary_turns_ask_about_nothing_that_the_person_said() {
    let home = Home::new();
    let server = home.file("daily.sh", include_str!("daily.sh"));
    home.config(&format!(
        "[mcp.servers.daily]\ncommand = [\"sh\", \"{}\"]\n",
        arg(&server)
    ));
    let vault = home.path("Notes");
    std::fs::create_dir_all(vault.join(".obsidian")).unwrap();
    std::fs::write(vault.join("Berlin.md"), "# Berlin\n\nA trip in May.\n").unwrap();
    let turns = turns();
    assert_eq!(turns.len(), 30);
    let mut script = Vec::new();
    for (_, made, _) in &turns {
        script.extend(made.iter().map(|(tool, args)| calls(tool, args)));
        script.push(json!({"text": "Here you are."}).to_string());
    }
    let lines: Vec<&str> = script.iter().map(String::as_str).collect();
    let mut command = home.serve_command(&home.script(&lines));
    let serving = Serving::start(command.env("ADJUTANT_VAULT_PATH", vault));
    let (mut asked, mut rightly) = (Vec::new(), 0);
    for (message, made, is_right) in &turns {
        let sent = json!({"message": message, "thread_id": "days"});
        let mut answer = serving.chat(serving.token(), &sent);
        while answer.body["decision"] == "REQUEST_CONFIRMATION" {
            match is_right {
                true => rightly += 1,
                false => asked.push((*message, answer.body["pending"].clone())),
            }
            let waits = answer.body["pending"].as_array().unwrap().iter();
            let yes: Vec<Value> = waits
                .map(|call| json!({"interrupt_id": call["interrupt_id"], "approved": true}))
                .collect();
            let sent = json!({"thread_id": "days", "resume": yes});
            answer = serving.chat(serving.token(), &sent);
        }
        assert_eq!(answer.status, 200, "{message}: {answer:?}");
        let ran = answer.body["tools_used"].as_array().map_or(0, Vec::len);
        assert_eq!(ran, made.len(), "{message}: {answer:?}");
        for used in answer.body["tools_used"].as_array().into_iter().flatten() {
            assert_eq!(used["result"]["success"], true, "{message}: {answer:?}");
        }
    }
    assert!(asked.is_empty(), "{asked:#?}");
    // An answer to a mail: the address is its sender's, and not the person's words.
    assert_eq!(rightly, 1);
}

//! Texts that a served model reads besides the words of a person: about dates, the time of a
//! message, and the part of a long conversation that is left out.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::served_memory::gemini;
use crate::service::{Reply, Serving, send};
use crate::vendor::Vendor;

fn serve(home: &Home, gemini: &Vendor, more: &[(&str, &str)]) -> Serving {
    let mut command = home.serve_command("gemini");
    command
        .env("GEMINI_API_KEY", "k")
        .env("GEMINI_BASE_URL", gemini.url())
        .env("ADJUTANT_SERVE_TITLES", "words");
    Serving::start(command.envs(more.iter().copied()))
}

fn chat(service: &Serving, body: &Value) -> Reply {
    let bearer = format!("Bearer {}", service.token());
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let reply = send(
        &service.address,
        "POST",
        "/v1/chat",
        &headers,
        &body.to_string(),
    )
    .unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

#[test]
fn a_served_model_reads_that_nothing_rings_and_when_a_message_was_sent() {
    let (home, model) = (Home::new(), gemini());
    let service = serve(&home, &model, &[]);
    let mut instructions = Vec::new();
    for (zone, line) in [
        (json!("Asia/Kolkata"), "(Asia/Kolkata, UTC+05:30).]"),
        (Value::Null, ""),
    ] {
        chat(&service, &json!({"message": "hello", "time_zone": zone}));
        let asked = model.so_far().pop().unwrap().body;
        let instruction = asked["systemInstruction"].to_string();
        assert!(instruction.contains("nothing rings"), "{instruction}");
        instructions.push(instruction);
        let said = asked["contents"].to_string();
        let is_told = said.contains("The person sent this message on");
        assert!(said.contains(line), "{said}");
        assert_eq!(is_told, !line.is_empty(), "{said}");
    }
    assert_eq!(
        instructions[0], instructions[1],
        "the time is no part of the instruction"
    );
}

#[test]
fn the_limit_of_messages_is_a_setting_and_what_it_leaves_out_is_summarised_or_told() {
    for (share, summaries) in [("0.8", true), ("0", false)] {
        let (home, model) = (Home::new(), gemini());
        let settings = [
            ("ADJUTANT_AGENT_HISTORY_MESSAGES_MAX", "10"),
            ("ADJUTANT_AGENT_SUMMARIZE_AT", share),
        ];
        let service = serve(&home, &model, &settings);
        let mut notices = Vec::new();
        for number in 0..12 {
            let body = json!({"message": format!("message {number}"), "thread_id": "t1"});
            notices.push(chat(&service, &body).json()["notices"].to_string());
        }
        let is_summary = |asked: &Value| asked.to_string().contains("You keep the record");
        let asked: Vec<Value> = model.so_far().into_iter().map(|asked| asked.body).collect();
        assert_eq!(asked.iter().any(is_summary), summaries);
        assert!(!asked[..5].iter().any(is_summary), "a short conversation");
        for answered in asked.iter().filter(|asked| !is_summary(asked)) {
            let sent = answered["contents"].as_array().unwrap().len();
            assert!(sent <= 11, "{sent}");
        }
        let told = notices.concat();
        assert!(told.contains("history_trimmed"), "{told}");
        assert_eq!(told.contains("context_summarized"), summaries, "{told}");
        assert_eq!(
            notices[11].contains("history_trimmed"),
            !summaries,
            "{notices:?}"
        );
    }
}

//! Servers of one's own that are slow, over a socket: silence is bounded, work is not.
//!
//! Time is the tests' own: it passes when the server says so, and no test waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use adjutant::{Agent, GenerateRequest, LanguageModel as _, Message, OutcomeCategory, TurnLimits};
use adjutant_providers::{Connection, HttpModel, Provider, Transport};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// The framing of a streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As Ollama does.
    Lines,
    /// As servers that speak Chat Completions do.
    Events,
}

const SERVERS: [(&str, Form); 2] = [("ollama", Form::Lines), ("llama-cpp", Form::Events)];

/// A step of a server's answer to a request.
#[derive(Debug, Clone)]
enum Act {
    /// Reads the prompt at ten tokens a second, four bytes a token.
    ReadPrompt,
    /// Does nothing for so many seconds.
    Rest(u64),
    /// Says it is there, as some servers do before there is an answer.
    Greet,
    Say(&'static str),
    End,
    /// Does nothing until the client goes away.
    Hang,
}

struct Server {
    provider: &'static str,
    base_url: String,
    asked: Arc<AtomicUsize>,
    /// Keeps time from passing by itself while a socket is waited for; dropped, it lets it go.
    _hold: mpsc::Sender<()>,
}

impl Server {
    /// Does the same for every request.
    async fn start((provider, form): (&'static str, Form), acts: Vec<Act>) -> Self {
        let (hold, held) = mpsc::channel();
        // Tokio's paused clock stands still as long as anything runs on a blocking thread.
        tokio::task::spawn_blocking(move || held.recv());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                // A client that goes away in the middle is part of the tests.
                let _ = serve(connection, form, &acts, &count).await;
            }
        });
        Self {
            provider,
            base_url,
            asked,
            _hold: hold,
        }
    }

    fn model(&self, timeout: Option<Duration>) -> HttpModel {
        let provider = Provider::find(self.provider).unwrap();
        let connection = Connection::new(Transport::new().unwrap());
        let base_url = Some(self.base_url.parse().unwrap());
        let connection = Connection {
            base_url,
            timeout,
            retries: 3,
            ..connection
        };
        provider.model("m", connection).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn serve(
    mut connection: TcpStream,
    form: Form,
    acts: &[Act],
    asked: &AtomicUsize,
) -> std::io::Result<()> {
    let request = read_request(&mut connection).await?;
    // What Ollama is asked about itself first.
    if request.contains("/api/show ") || request.contains("/api/version ") {
        return connection
            .write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
    }
    asked.fetch_add(1, Ordering::Relaxed);
    let tokens = request.len() as u64 / 4;
    let mut head =
        Some("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for act in acts {
        let text = match (act, form) {
            (Act::ReadPrompt, _) => {
                pass(tokens / 10).await;
                continue;
            }
            (Act::Rest(seconds), _) => {
                pass(*seconds).await;
                continue;
            }
            (Act::Hang, _) => {
                while connection.try_read(&mut [0]).is_err() {
                    pass(1).await;
                }
                return Ok(());
            }
            (Act::Greet, Form::Lines) => String::new(),
            (Act::Greet, Form::Events) => {
                let role = json!({"choices": [{"index": 0, "delta": {"role": "assistant"}}]});
                format!(": hello\n\ndata: {role}\n\n")
            }
            (Act::Say(words), Form::Lines) => {
                let message = json!({"role": "assistant", "content": words});
                format!(
                    "{}\n",
                    json!({"model": "m", "message": message, "done": false})
                )
            }
            (Act::Say(words), Form::Events) => {
                format!(
                    "data: {}\n\n",
                    json!({"choices": [{"index": 0, "delta": {"content": words}}]})
                )
            }
            (Act::End, Form::Lines) => {
                let message = json!({"role": "assistant", "content": ""});
                let end = json!({"model": "m", "message": message, "done": true, "done_reason": "stop",
                                 "prompt_eval_count": tokens, "eval_count": 3});
                format!("{end}\n")
            }
            (Act::End, Form::Events) => {
                let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
                format!("data: {end}\n\ndata: [DONE]\n\n")
            }
        };
        connection
            .write_all(head.take().unwrap_or_default().as_bytes())
            .await?;
        if !text.is_empty() {
            connection
                .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
                .await?;
        }
    }
    connection.write_all(b"0\r\n\r\n").await
}

/// Lets time pass, a second at a time: everybody else comes to do what is due.
async fn pass(seconds: u64) {
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

async fn read_request(connection: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = |line: &str| {
            line.to_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        };
        if body.len() >= head.lines().find_map(length).unwrap_or(0) {
            return Ok(text.into_owned());
        }
    }
}

/// An agent whose instructions take the server five minutes to read.
fn agent(model: HttpModel) -> Agent {
    Agent::builder("test")
        .model(model)
        .instruction("Be brief. ".repeat(1200))
        .build()
        .unwrap()
}

/// Words that come every half a minute, for a quarter of an hour.
fn trickle() -> Vec<Act> {
    let mut acts = vec![Act::ReadPrompt];
    acts.extend((0..30).flat_map(|_| [Act::Say("word "), Act::Rest(30)]));
    acts.extend([Act::Say("end"), Act::End]);
    acts
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_ten_tokens_a_second_answers_the_first_turn() {
    for server in SERVERS {
        let server =
            Server::start(server, vec![Act::ReadPrompt, Act::Say("Hello."), Act::End]).await;
        let began = Instant::now();
        let response = agent(server.model(None)).run("hello").await.unwrap();
        assert_eq!(
            (response.content.as_str(), &response.error),
            ("Hello.", &None),
            "{}",
            server.provider
        );
        assert_eq!(server.asked(), 1, "{}", server.provider);
        assert!(
            began.elapsed().as_secs() > 300,
            "the prompt takes longer than any silence in an answer"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_takes_the_time_it_takes() {
    let words = format!("{}end", "word ".repeat(30));
    for server in SERVERS {
        let server = Server::start(server, trickle()).await;
        let response = agent(server.model(None)).run("hello").await.unwrap();
        assert_eq!(
            (response.content, response.error),
            (words.clone(), None),
            "{}",
            server.provider
        );
        assert_eq!(server.asked(), 1, "{}", server.provider);
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_is_read_as_it_comes() {
    let words = format!("{}end", "word ".repeat(30));
    for server in SERVERS {
        let server = Server::start(server, trickle()).await;
        let request = GenerateRequest::new(vec![Message::user("hello").unwrap()]);
        // The whole answer takes fifteen times as long as a silence may.
        let model = server.model(Some(Duration::from_secs(60)));
        assert_eq!(
            model.generate(&request).await.unwrap().text(),
            words,
            "{}",
            server.provider
        );
        assert_eq!(server.asked(), 1, "{}", server.provider);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_given_up_and_the_server_not_asked_again() {
    let set = Some(Duration::from_secs(15));
    for (acts, timeout, seconds) in [
        (vec![Act::Hang], None, 600),
        // That it is there is no answer: it may still be reading.
        (vec![Act::Greet, Act::Hang], None, 600),
        (vec![Act::ReadPrompt, Act::Say("Hel"), Act::Hang], None, 120),
        (vec![Act::Hang], set, 15),
        (vec![Act::Say("Hel"), Act::Hang], set, 15),
    ] {
        for server in SERVERS {
            let server = Server::start(server, acts.clone()).await;
            let response = agent(server.model(timeout)).run("hello").await.unwrap();
            let cause = response.error.as_ref().unwrap().to_string();
            let what = format!("{} said nothing for {seconds} s", server.provider);
            assert!(cause.contains(&what), "{acts:?}: {cause}");
            assert_eq!(response.outcome, OutcomeCategory::LlmFailure);
            assert!(
                response.content.contains(&format!("for {seconds} s")),
                "{}",
                response.content
            );
            assert_eq!(server.asked(), 1, "{acts:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_slow_model_has_a_deadline_if_one_is_set() {
    for server in SERVERS {
        let server = Server::start(server, vec![Act::Hang]).await;
        let limits = TurnLimits {
            turn_deadline: Some(Duration::from_secs(30)),
            ..TurnLimits::default()
        };
        let agent = Agent::builder("test")
            .model(server.model(None))
            .instruction("Be brief.")
            .limits(limits);
        let response = agent.build().unwrap().run("hello").await.unwrap();
        assert_eq!(
            response.outcome,
            OutcomeCategory::DeadlineLimit,
            "{response:?}"
        );
    }
}

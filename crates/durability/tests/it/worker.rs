//! The worker process as the tests control it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjutant_durability::{Reply, Request, Response, Setup};
use uuid::Uuid;

use crate::world::PATIENCE;

/// The faults that a worker suffers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Harm {
    /// The boundary at which it is killed.
    pub(crate) kill_at: Option<u32>,
    /// The boundary at which it is suspended.
    pub(crate) stop_at: Option<u32>,
    /// Duration of its leases.
    pub(crate) lease_ms: Option<u32>,
    /// The largest size of its files, in KiB: a full disk.
    pub(crate) disk_kib: Option<u32>,
}

/// The worker process has ended.
#[derive(Debug)]
pub(crate) struct Gone;

type PendingReplies = Arc<Mutex<Option<HashMap<u64, Sender<Result<Response, String>>>>>>;

/// A running worker.
pub(crate) struct Worker {
    process: Mutex<Child>,
    /// Standard input of the process. `None`: it was closed.
    stdin: Mutex<Option<ChildStdin>>,
    waiting: PendingReplies,
    next: Mutex<u64>,
    words: Mutex<Receiver<String>>,
    /// The application name of its PostgreSQL sessions, if it has any.
    sessions: Option<String>,
}

impl Worker {
    pub(crate) fn start(setup: &Setup, harm: Harm) -> Self {
        Self::start_with(setup, harm, Vec::new())
    }

    /// Starts a worker with further environment variables.
    pub(crate) fn start_with(setup: &Setup, harm: Harm, variables: Vec<(&str, OsString)>) -> Self {
        let program = env!("CARGO_BIN_EXE_durability-worker");
        let mut command = Command::new(program);
        if let Some(kib) = harm.disk_kib {
            command = Command::new("sh");
            command.args([
                "-c",
                &format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$1\""),
                program,
            ]);
        }
        let mut setup = setup.clone();
        let sessions = setup
            .database
            .starts_with("postgres://")
            .then(|| format!("worker-{}", Uuid::now_v7()));
        if let Some(name) = &sessions {
            setup
                .database
                .push_str(&format!("&application_name={name}"));
        }
        // Nothing here uses TLS, and reading the system's certificates is a quarter of a start.
        command
            .env("SSL_CERT_FILE", "/dev/null")
            .arg(serde_json::to_string(&setup).unwrap());
        command.envs(variables);
        for (name, value) in [
            ("ADJUTANT_KILL_AT", harm.kill_at),
            ("ADJUTANT_STOP_AT", harm.stop_at),
            ("ADJUTANT_LEASE_MS", harm.lease_ms),
        ] {
            match value {
                Some(value) => command.env(name, value.to_string()),
                None => command.env_remove(name),
            };
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let waiting: PendingReplies = Arc::new(Mutex::new(Some(HashMap::new())));
        let replies = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let to_wake = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in replies {
                // A line that was cut off by a kill is not a reply.
                let Ok(reply) = serde_json::from_str::<Reply>(&line) else {
                    continue;
                };
                let sender = to_wake
                    .lock()
                    .unwrap()
                    .as_mut()
                    .unwrap()
                    .remove(&reply.number);
                // The test may not wait for it any more.
                let _ = sender.unwrap().send(reply.result);
            }
            // Tests that still wait are woken: no reply can come any more.
            to_wake.lock().unwrap().take();
        });
        let (say, words) = channel();
        let lines = BufReader::new(process.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        std::thread::spawn(move || lines.for_each(|line| drop(say.send(line))));
        let stdin = Mutex::new(process.stdin.take());
        let (process, next, words) = (Mutex::new(process), Mutex::new(0), Mutex::new(words));
        Self {
            process,
            stdin,
            waiting,
            next,
            words,
            sessions,
        }
    }

    /// Returns the application name of its PostgreSQL sessions, if it has any.
    pub(crate) fn sessions(&self) -> Option<&str> {
        self.sessions.as_deref()
    }

    /// Submits a request; the receiver gets the reply.
    pub(crate) fn submit(
        &self,
        request: &Request,
    ) -> Result<Receiver<Result<Response, String>>, Gone> {
        self.say_numbered(request).map(|(_, answer)| answer)
    }

    /// Submits a request. Returns the number of its reply, and a receiver of it.
    pub(crate) fn say_numbered(
        &self,
        request: &Request,
    ) -> Result<(u64, Receiver<Result<Response, String>>), Gone> {
        let number = {
            let mut next = self.next.lock().unwrap();
            *next += 1;
            *next
        };
        let (sender, receiver) = channel();
        self.waiting
            .lock()
            .unwrap()
            .as_mut()
            .ok_or(Gone)?
            .insert(number, sender);
        let request = Request {
            number,
            ..request.clone()
        };
        let line = serde_json::to_string(&request).unwrap() + "\n";
        let mut stdin = self.stdin.lock().unwrap();
        stdin
            .as_mut()
            .ok_or(Gone)?
            .write_all(line.as_bytes())
            .map_err(|_| Gone)?;
        Ok((number, receiver))
    }

    /// Submits a request and waits for the reply.
    pub(crate) fn ask(&self, request: &Request) -> Result<Result<Response, String>, Gone> {
        receive(&self.submit(request)?)
    }

    /// Returns the last output before the worker was killed or suspended.
    pub(crate) fn last_words(&self) -> String {
        self.words
            .lock()
            .unwrap()
            .recv_timeout(PATIENCE)
            .unwrap_or_default()
    }

    /// Returns the boundary at which it was suspended; `None` if it replied instead.
    pub(crate) fn stopped_before(
        &self,
        answer: &Receiver<Result<Response, String>>,
    ) -> Option<String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Ok(words) = self
                .words
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_millis(2))
            {
                return Some(words);
            }
            if let Ok(response) = answer.try_recv() {
                response.unwrap();
                return None;
            }
        }
        panic!("it neither answers nor stands still")
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.lock().unwrap().id();
        assert!(
            Command::new("kill")
                .args([name, &pid.to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Closes the input, and waits for the process to exit.
    pub(crate) fn end(&self) {
        self.stdin.lock().unwrap().take();
        let ended = self.process.lock().unwrap().wait().unwrap();
        assert!(ended.success(), "{ended}");
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        // It may have exited by itself.
        let _ = process.kill();
        process.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for a reply.
pub(crate) fn receive(
    receiver: &Receiver<Result<Response, String>>,
) -> Result<Result<Response, String>, Gone> {
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => Ok(result),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Err(Gone),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("no answer, and not dead either"),
    }
}

//! The whole run: order of the measurements, and the processes around them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Kind, Measured, Setup};
use crate::database::{Moment, Server};
use crate::figures::{About, Case, Figure, Line, Lines, NotRun};
use crate::process::{self, Speaker};
use crate::service::{self, Service};
use crate::{Result, mock, table};

/// Size of a tool result in a turn with many calls.
const RESULT_BYTES: usize = 10_000;
/// Number of tool calls in one answer in such a turn.
const CALLS_AT_ONCE: u32 = 10;

/// Options of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Small sample in less than a minute, to test the benchmark; its figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Measure only this row, or rows whose name begins with it; may be repeated. Rows: hyper,
    /// reqwest, rig, adjutant, adjutant-sqlite, adjutant-postgres, sqlite-rows, service-mock,
    /// service-sqlite, service-postgres, long-memory, long-sqlite, long-postgres, calls-memory,
    /// calls-sqlite, calls-postgres. Ratios need `reqwest`
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Seconds of one run of one row
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Number of runs of every row; the tables show medians
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Numbers of concurrent conversations
    #[arg(long, value_delimiter = ',', default_value = "1,64,512")]
    at_once: Vec<usize>,
    /// Latencies of the model, in milliseconds
    #[arg(long, value_delimiter = ',', default_value = "0,200")]
    delay_ms: Vec<u64>,
    /// Turns of the long conversation, 30 or more
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(30..))]
    long_turns: u32,
    /// Tool calls of the turn with many calls, ten in every answer of the model
    #[arg(long, default_value_t = 1000)]
    calls: u32,
    /// Program whose service is measured [default: built by cargo]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Write the raw results here, one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the plan. All child processes end with it, also after an error or a signal.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let plan = plan.in_a_hurry();
    let is_row = |name: &String| table::ROWS.iter().any(|row| row.starts_with(name.as_str()));
    if let Some(name) = plan.only.iter().find(|name| !is_row(name)) {
        return Err(format!(
            "no row is called {name}; there are: {}",
            table::ROWS.join(", ")
        )
        .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        tokio::select! {
            done = Run::new(plan).await?.all() => done,
            _ = interrupt.recv() => Err("stopped".into()),
            _ = terminate.recv() => Err("stopped".into()),
        }
    })
}

impl Plan {
    fn in_a_hurry(&self) -> Self {
        if !self.quick {
            return self.clone();
        }
        Self {
            seconds: 0.5,
            repeat: 1,
            at_once: vec![1, 64],
            delay_ms: vec![0],
            long_turns: 30,
            calls: 50,
            ..self.clone()
        }
    }

    fn wants(&self, row: &str) -> bool {
        let named =
            |name: &str| row == name || (!table::ROWS.contains(&name) && row.starts_with(name));
        self.only.is_empty() || self.only.iter().any(|name| named(name))
    }
}

/// State of a run: results so far, and the processes it needs.
struct Run {
    plan: Plan,
    lines: Lines,
    folder: TempDir,
    models: HashMap<mock::Setup, (Speaker, String)>,
    server: Option<Server>,
    files: u32,
    failed: u32,
}

impl Run {
    async fn new(plan: Plan) -> Result<Self> {
        let mut lines = Lines::begin(plan.json.as_deref())?;
        lines.add(Line::About(about(plan.seconds).await))?;
        Ok(Self {
            plan,
            lines,
            folder: TempDir::new()?,
            models: HashMap::new(),
            server: None,
            files: 0,
            failed: 0,
        })
    }

    async fn all(mut self) -> Result<()> {
        self.start_server().await?;
        let streamed = self.record().await?;
        let whole = streamed
            .iter()
            .map(|body| not_streamed(body))
            .collect::<Result<Vec<_>>>()?;
        let bodies = [whole, streamed];
        let template = self.template().await?;
        for run in 1..=self.plan.repeat {
            self.turns(run, &bodies).await?;
            self.rows(run, &template).await?;
        }
        self.service(&bodies[1]).await?;
        self.long().await?;
        self.calls().await?;
        print!("{}", table::markdown(&self.lines.all));
        if self.failed == 0 {
            Ok(())
        } else {
            Err(format!("{} measurements failed", self.failed).into())
        }
    }

    /// Starts PostgreSQL if a selected row needs it. If it is not installed, these rows are
    /// reported as not run.
    async fn start_server(&mut self) -> Result<()> {
        let rows = [
            "adjutant-postgres",
            "service-postgres",
            "long-postgres",
            "calls-postgres",
        ];
        if rows.iter().any(|row| self.plan.wants(row)) {
            match Server::start().await {
                Ok(server) => self.server = Some(server),
                Err(error) => self.not_run("rows with PostgreSQL", &error.to_string())?,
            }
        }
        Ok(())
    }

    fn not_run(&mut self, row: &str, reason: &str) -> Result<()> {
        eprintln!("NOT RUN: {row}: {reason}");
        self.lines.add(Line::NotRun(NotRun {
            row: row.to_owned(),
            reason: reason.to_owned(),
        }))
    }

    /// Measures turns with two model calls and one tool call, for all clients.
    async fn turns(&mut self, run: u32, bodies: &[Vec<String>; 2]) -> Result<()> {
        let mut cases = Vec::new();
        for delay_ms in self.plan.delay_ms.clone() {
            for at_once in self.plan.at_once.clone() {
                cases.push((delay_ms, true, at_once));
                // The additional cost of a stream shows best without latency.
                if delay_ms == 0 && at_once == 64 {
                    cases.push((delay_ms, false, at_once));
                }
            }
        }
        for (delay_ms, streamed, at_once) in cases {
            let case = Case::Turn {
                delay_ms,
                whole: !streamed,
                at_once,
            };
            let model = mock::Setup {
                delay_ms,
                calls: 1,
                calls_at_once: 1,
                record: None,
            };
            for (row, kind) in [
                ("hyper", Kind::Hyper),
                ("reqwest", Kind::Reqwest),
                ("rig", Kind::Rig),
                ("adjutant", Kind::Memory),
                ("adjutant-sqlite", Kind::Sqlite),
                ("adjutant-postgres", Kind::Postgres),
            ] {
                let bare = matches!(kind, Kind::Hyper | Kind::Reqwest);
                let adjutant = matches!(kind, Kind::Memory | Kind::Sqlite | Kind::Postgres);
                // Adjutant always streams: a pause between chunks shows that the model hangs.
                if (kind == Kind::Rig && !cfg!(feature = "rig")) || (adjutant && !streamed) {
                    continue;
                }
                let setup = Setup {
                    kind,
                    streamed,
                    at_once,
                    warm: if delay_ms == 0 { 3 } else { 1 },
                    bodies: if bare {
                        bodies[usize::from(streamed)].clone()
                    } else {
                        Vec::new()
                    },
                    ..self.setup()
                };
                self.figure(&case, row, run, setup, &model).await?;
            }
        }
        Ok(())
    }

    /// Measures the database rows of such turns in bare SQLite.
    async fn rows(&mut self, run: u32, template: &Path) -> Result<()> {
        for at_once in self.plan.at_once.clone() {
            let setup = Setup {
                kind: Kind::Rows,
                at_once,
                warm: 3,
                template: Some(template.to_owned()),
                ..self.setup()
            };
            self.figure(
                &Case::Rows { at_once },
                "sqlite-rows",
                run,
                setup,
                &one_call(),
            )
            .await?;
        }
        Ok(())
    }

    /// Measures `adjutant serve`, and the same requests sent to the model directly.
    async fn service(&mut self, bodies: &[String]) -> Result<()> {
        let rows = ["service-mock", "service-sqlite", "service-postgres"];
        if self.plan.quick && self.plan.binary.is_none()
            || !rows.iter().any(|row| self.plan.wants(row))
        {
            return Ok(());
        }
        let program = service::program(self.plan.binary.as_ref()).await?;
        let (delay_ms, at_once) = if self.plan.quick { (0, 16) } else { (200, 512) };
        let case = Case::Service { delay_ms, at_once };
        let model = mock::Setup {
            delay_ms,
            calls: 0,
            calls_at_once: 1,
            record: None,
        };
        let asking = Setup {
            kind: Kind::Reqwest,
            at_once,
            warm: 1,
            ..self.setup()
        };
        for run in 1..=self.plan.repeat {
            let direct = Setup {
                bodies: bodies[1..].to_vec(),
                ..asking.clone()
            };
            self.figure(&case, "service-mock", run, direct, &model)
                .await?;
            for row in ["service-sqlite", "service-postgres"] {
                if !self.plan.wants(row) || (row == "service-postgres" && self.server.is_none()) {
                    continue;
                }
                eprintln!("{case:?} {row}, run {run}");
                let address = self.model(&model).await?;
                let mut server = if row == "service-postgres" {
                    self.server.take()
                } else {
                    None
                };
                let measured = serve(&program, &address, &asking, &mut server).await;
                self.server = self.server.take().or(server);
                self.add(&case, row, run, measured)?;
            }
        }
        Ok(())
    }

    /// Measures a conversation with many turns.
    async fn long(&mut self) -> Result<()> {
        let turns = self.plan.long_turns;
        let kinds = [
            ("long-memory", Kind::LongMemory),
            ("long-sqlite", Kind::LongSqlite),
            ("long-postgres", Kind::LongPostgres),
        ];
        for (row, kind) in kinds {
            let setup = Setup {
                kind,
                turns,
                ..self.setup()
            };
            self.figure(&Case::Long { turns }, row, 1, setup, &one_call())
                .await?;
        }
        Ok(())
    }

    /// Measures a turn with many tool calls.
    async fn calls(&mut self) -> Result<()> {
        let (calls, at_once) = (self.plan.calls, CALLS_AT_ONCE);
        let case = Case::Calls {
            calls,
            at_once,
            result_bytes: RESULT_BYTES,
        };
        let model = mock::Setup {
            delay_ms: 0,
            calls,
            calls_at_once: at_once,
            record: None,
        };
        let kinds = [
            ("calls-memory", Kind::LongMemory),
            ("calls-sqlite", Kind::LongSqlite),
            ("calls-postgres", Kind::LongPostgres),
        ];
        for (row, kind) in kinds {
            let setup = Setup {
                kind,
                turns: 1,
                rounds_max: calls.div_ceil(at_once) + 1,
                result_bytes: RESULT_BYTES,
                ..self.setup()
            };
            self.figure(&case, row, 1, setup, &model).await?;
        }
        Ok(())
    }

    /// Records the request bodies that Adjutant sends in one turn.
    async fn record(&mut self) -> Result<Vec<String>> {
        let file = self.new_file("bodies");
        let model = mock::Setup {
            record: Some(file.clone()),
            ..one_call()
        };
        self.one_turn(
            Setup {
                kind: Kind::Memory,
                ..self.setup()
            },
            &model,
        )
        .await?;
        let bodies: Vec<String> = std::fs::read_to_string(&file)?
            .lines()
            .map(str::to_owned)
            .collect();
        match bodies.len() {
            2 => Ok(bodies),
            calls => Err(format!("a turn is two model calls, but Adjutant made {calls}").into()),
        }
    }

    /// Creates a database with the rows of one turn.
    async fn template(&mut self) -> Result<PathBuf> {
        let file = self.new_file("template.db");
        let setup = Setup {
            kind: Kind::Sqlite,
            database: file.display().to_string(),
            ..self.setup()
        };
        self.one_turn(setup, &one_call()).await?;
        Ok(file)
    }

    /// Runs a single turn in a client process.
    async fn one_turn(&mut self, setup: Setup, model: &mock::Setup) -> Result<()> {
        let address = self.model(model).await?;
        let setup = Setup {
            address,
            seconds: 0.0,
            warm: 1,
            ..setup
        };
        let (_, client) = measure(&setup, async || Ok(())).await?;
        client.end().await
    }

    /// Measures one run of a row in a client process, if the row is selected.
    async fn figure(
        &mut self,
        case: &Case,
        row: &str,
        run: u32,
        setup: Setup,
        model: &mock::Setup,
    ) -> Result<()> {
        let postgres = matches!(setup.kind, Kind::Postgres | Kind::LongPostgres);
        if !self.plan.wants(row) || (postgres && self.server.is_none()) {
            return Ok(());
        }
        eprintln!("{case:?} {row}, run {run}");
        let address = self.model(model).await?;
        let file = self.new_file("database.db").display().to_string();
        let mut server = if postgres { self.server.take() } else { None };
        let measured = observe(
            Setup {
                address,
                database: file,
                ..setup
            },
            &mut server,
        )
        .await;
        self.server = self.server.take().or(server);
        self.add(case, row, run, measured)
    }

    /// Adds a result, or the reason why there is none. After a failure the run goes on with the
    /// next row.
    fn add(
        &mut self,
        case: &Case,
        row: &str,
        run: u32,
        measured: Result<(Measured, Option<i64>)>,
    ) -> Result<()> {
        match measured {
            Ok((measured, server_cpu_us)) => {
                let figure = Figure {
                    case: case.clone(),
                    row: row.to_owned(),
                    run,
                    measured,
                    server_cpu_us,
                };
                self.lines.add(Line::Figure(Box::new(figure)))
            }
            Err(error) => {
                self.failed += 1;
                eprintln!("FAILED: {row}: {error}");
                let row = format!("{row} ({})", table::named(case));
                self.lines.add(Line::Failed(NotRun {
                    row,
                    reason: error.to_string(),
                }))
            }
        }
    }

    /// Returns the URL of a mock model with this setup, started at its first use.
    async fn model(&mut self, setup: &mock::Setup) -> Result<String> {
        if let Some((_, address)) = self.models.get(setup) {
            return Ok(address.clone());
        }
        let mut model = Speaker::start(&setup.arguments())?;
        let address = format!("http://{}/v1", model.line().await?);
        self.models.insert(setup.clone(), (model, address.clone()));
        Ok(address)
    }

    fn new_file(&mut self, name: &str) -> PathBuf {
        self.files += 1;
        self.folder.path().join(format!("{}-{name}", self.files))
    }

    fn setup(&self) -> Setup {
        Setup {
            kind: Kind::Hyper,
            address: String::new(),
            streamed: true,
            at_once: 1,
            warm: 0,
            seconds: self.plan.seconds,
            turns: 0,
            rounds_max: 5,
            result_bytes: 0,
            bodies: Vec::new(),
            token: None,
            database: String::new(),
            template: None,
        }
    }
}

/// Returns the same request body without streaming.
fn not_streamed(body: &str) -> Result<String> {
    let mut body: serde_json::Map<String, serde_json::Value> = serde_json::from_str(body)?;
    body.shift_remove("stream");
    body.shift_remove("stream_options");
    Ok(serde_json::to_string(&body)?)
}

/// Returns the setup of a model that makes one tool call and has no latency.
fn one_call() -> mock::Setup {
    mock::Setup {
        delay_ms: 0,
        calls: 1,
        calls_at_once: 1,
        record: None,
    }
}

/// Starts a client, lets it continue once it is warm, and returns its results and the process. The
/// process still runs, so that its connections are open while the counters of the server are read.
async fn measure(
    setup: &Setup,
    warm: impl AsyncFnOnce() -> Result<()>,
) -> Result<(Measured, Speaker)> {
    let mut setup = setup.clone();
    // Bare clients send to the given URL; agents append the path of the endpoint themselves.
    if matches!(setup.kind, Kind::Hyper | Kind::Reqwest) && setup.token.is_none() {
        setup.address += "/chat/completions";
    }
    let mut client = Speaker::start(&["client".to_owned(), serde_json::to_string(&setup)?])?;
    match client.line().await?.as_str() {
        "warm" => {}
        other => return Err(format!("unexpected line of a client: {other:?}").into()),
    }
    warm().await?;
    client.go_on().await?;
    Ok((client.value().await?, client))
}

/// Measures a client on an SQLite file of its own, or on a new database of the server.
async fn observe(setup: Setup, server: &mut Option<Server>) -> Result<(Measured, Option<i64>)> {
    let mut setup = setup;
    if let Some(server) = server {
        setup.database = server.create().await?;
    }
    let mut before = None;
    let (mut measured, client) = measure(&setup, async || {
        if let Some(server) = server.as_mut() {
            before = Some(server.moment().await?);
        }
        Ok(())
    })
    .await?;
    let server_cpu_us = spent(server, before.as_ref(), &mut measured).await?;
    client.end().await?;
    Ok((measured, server_cpu_us))
}

/// Measures a service while a client sends requests to it. CPU time and memory are the service's,
/// not the client's.
async fn serve(
    program: &Path,
    model: &str,
    asking: &Setup,
    server: &mut Option<Server>,
) -> Result<(Measured, Option<i64>)> {
    let database = match server {
        Some(server) => Some(server.create().await?),
        None => None,
    };
    let service = Service::start(program, model, database.as_deref())?;
    let setup = Setup {
        address: service.address.clone(),
        token: Some(service.token.clone()),
        bodies: vec![r#"{"message":"hello","thread_id":"THREAD"}"#.to_owned()],
        ..asking.clone()
    };
    let mut before = (0, None);
    let (mut measured, client) = measure(&setup, async || {
        let moment = match server.as_mut() {
            Some(server) => Some(server.moment().await?),
            None => None,
        };
        before = (service.cpu_us(), moment);
        Ok(())
    })
    .await?;
    measured.cpu_us = service.cpu_us() - before.0;
    measured.peak_kib = service.peak_kib()?;
    let server_cpu_us = spent(server, before.1.as_ref(), &mut measured).await?;
    client.end().await?;
    Ok((measured, server_cpu_us))
}

/// Adds the counters of the database server to the results, and returns its CPU time.
async fn spent(
    server: &mut Option<Server>,
    before: Option<&Moment>,
    measured: &mut Measured,
) -> Result<Option<i64>> {
    let (Some(server), Some(before)) = (server, before) else {
        return Ok(None);
    };
    let spent = server.since(before).await?;
    measured.commits = Some(spent.commits);
    measured.statements = Some(spent.statements);
    measured.bytes = Some(spent.bytes);
    Ok(Some(spent.cpu_us))
}

/// Collects date, commit and machine.
async fn about(seconds: f64) -> About {
    let first = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned);
        line.unwrap_or_default()
    };
    let folder = env!("CARGO_MANIFEST_DIR");
    let run_program = async |program: &str, arguments: &[&str]| {
        process::output(Path::new(program), arguments)
            .await
            .unwrap_or_default()
    };
    About {
        day: run_program("date", &["-u", "+%Y-%m-%d"]).await,
        commit: run_program("git", &["-C", folder, "rev-parse", "--short", "HEAD"]).await,
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        processor: first("/proc/cpuinfo", "model name")
            .rsplit(": ")
            .next()
            .unwrap_or_default()
            .to_owned(),
        load: first("/proc/loadavg", "")
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned(),
        seconds,
    }
}

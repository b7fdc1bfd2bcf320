//! Many runs in parallel, each in its own thread.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::lock::lock;
use crate::plan::Options;
use crate::run::{Report, run};

/// Time after which a run that has not ended is taken to hang.
const STUCK: Duration = Duration::from_secs(120);

/// The runs of many seeds.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The seeds to simulate, one run each.
    pub seeds: Range<u64>,
    /// The options of each run, but for its seed.
    pub options: Options,
}

impl Sweep {
    /// Simulates all seeds, as many at once as there are processors, and passes on each report when
    /// its run ends. If no run ends for a long time, prints the seeds that run and ends the
    /// process.
    pub fn run(&self, mut report: impl FnMut(Report)) {
        let next = AtomicU64::new(self.seeds.start);
        let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (sender, reports) = mpsc::channel();
        let runs = Mutex::<BTreeSet<u64>>::default();
        thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next, runs) = (sender.clone(), &next, &runs);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end {
                            return;
                        }
                        lock(runs).insert(seed);
                        let made = run(Options {
                            seed,
                            ..self.options
                        });
                        // The receiver lives until all threads have ended.
                        let _ = sender.send(made);
                    }
                });
            }
            drop(sender);
            loop {
                match reports.recv_timeout(STUCK) {
                    Ok(made) => {
                        lock(&runs).remove(&made.seed);
                        report(made);
                    }
                    Err(RecvTimeoutError::Timeout) => stuck(&lock(&runs)),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
    }
}

/// Prints the seeds that do not end, and ends the process: their threads cannot be ended.
#[expect(clippy::print_stderr, reason = "nobody else can say it any more")]
fn stuck(seeds: &BTreeSet<u64>) {
    eprintln!(
        "no run has ended for {} s, and these seeds run: {seeds:?}",
        STUCK.as_secs()
    );
    std::process::exit(1);
}

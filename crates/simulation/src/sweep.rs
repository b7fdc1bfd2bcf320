//! Many runs, beside each other: each has a thread to itself.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::plan::{Options, Plant};
use crate::run::{Report, run};

/// The runs of many seeds.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Number of processes in each run. `None`: each seed decides.
    pub workers: Option<usize>,
    /// The bug that the store has.
    pub plant: Option<Plant>,
}

impl Sweep {
    /// Makes all of them, as many at once as there are processors, and hands on each report when it is there.
    pub fn run(&self, mut report: impl FnMut(Report)) {
        let next = AtomicU64::new(self.seeds.start);
        let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (sender, reports) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.seeds.end {
                            return;
                        }
                        let made = run(Options { seed, workers: self.workers, plant: self.plant });
                        // It is received until all threads have ended.
                        let _ = sender.send(made);
                    }
                });
            }
            drop(sender);
            for made in reports {
                report(made);
            }
        });
    }
}

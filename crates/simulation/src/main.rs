//! `simulation [--seeds N] [--seed S] [--workers N] [--plant BUG] [--disasters yes]`: simulates runs, and prints
//! the invariants that do not hold.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use adjutant_simulation::{Options, Plant, Report, Sweep, run_traced};

const HELP: &str = "\
simulation [--seeds N] [--seed S] [--workers N] [--plant BUG] [--disasters yes]
    --seeds N       make the runs of the seeds from 0 to N - 1 (200)
    --seed S        make the run of one seed, and print everything that happens in it
    --workers N     processes in a run (1 to 4, as the seed says)
    --plant BUG     a bug that is to be found. epoch: the store does not compare the epochs of claims; clock: it
                    compares the end of a lease with the clock of whoever asks; loss: processes are not told that
                    it has lost commits of theirs
    --disasters yes clocks step, the store loses commits that it has confirmed, and its disk fails, too
";

/// Time between two lines of progress.
const WORDS: Duration = Duration::from_secs(5);

/// The arguments.
struct Arguments {
    seeds: u64,
    seed: Option<u64>,
    options: Options,
}

fn main() -> ExitCode {
    let Some(wanted) = parse_arguments(std::env::args().skip(1)) else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    match wanted.seed {
        Some(seed) => one(&wanted, seed),
        None => many(&wanted),
    }
}

fn parse_arguments(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut wanted = Arguments {
        seeds: 200,
        seed: None,
        options: Options::new(0),
    };
    let options = &mut wanted.options;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--seeds" => wanted.seeds = value.parse().ok()?,
            "--seed" => wanted.seed = Some(value.parse().ok()?),
            "--workers" => {
                options.workers = Some(value.parse().ok().filter(|workers| *workers > 0)?)
            }
            "--plant" => {
                let plants = [Plant::Epoch, Plant::Clock, Plant::Loss];
                let plant = plants.into_iter().find(|plant| plant.to_string() == value);
                options.plant = Some(plant?);
            }
            "--disasters" if value == "yes" => options.disasters = true,
            _ => return None,
        }
    }
    Some(wanted)
}

/// Simulates one run and prints its whole trace.
fn one(wanted: &Arguments, seed: u64) -> ExitCode {
    let options = Options {
        seed,
        ..wanted.options
    };
    let report = run_traced(options);
    report.trace.iter().for_each(|line| println!("{line}"));
    println!(
        "seed {seed}: {} lines, digest {:016x}, {:.0} simulated seconds",
        report.lines,
        report.digest,
        report.simulated.as_secs_f64()
    );
    match &report.failure {
        None => ExitCode::SUCCESS,
        Some(_) => {
            println!("{}", report.failed(options));
            ExitCode::FAILURE
        }
    }
}

/// Simulates many runs, and prints those that fail.
fn many(wanted: &Arguments) -> ExitCode {
    let (began, mut said) = (Instant::now(), Instant::now());
    let (mut done, mut lines, mut simulated, mut failed) =
        (0_u64, 0_u64, Duration::ZERO, Vec::<u64>::new());
    let mut tally = BTreeMap::new();
    let sweep = Sweep {
        seeds: 0..wanted.seeds,
        options: wanted.options,
    };
    sweep.run(|report: Report| {
        for (what, times) in &report.tally {
            *tally.entry(*what).or_insert(0_u64) += times;
        }
        (done, lines, simulated) = (done + 1, lines + report.lines, simulated + report.simulated);
        if report.failure.is_some() {
            failed.push(report.seed);
            println!("{}", report.failed(wanted.options));
        }
        if said.elapsed() >= WORDS {
            said = Instant::now();
            println!("{done} of {} seeds, {} failed", wanted.seeds, failed.len());
        }
    });
    for (what, times) in &tally {
        println!("{times:9} {what}");
    }
    println!(
        "{done} seeds in {:.1} s: {lines} things happened in {:.0} simulated hours; {} seeds failed",
        began.elapsed().as_secs_f64(),
        simulated.as_secs_f64() / 3600.0,
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

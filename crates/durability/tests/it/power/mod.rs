//! Power losses at any time while several conversations run, and defects of the disk.
//!
//! The file operations and replies of a worker are recorded in their order ([`record`],
//! [`recording`]). Then the operations up to each moment are replayed onto a disk that has kept
//! all, nothing or some of the unsynced data ([`disk`]), and the store is opened there. Everything
//! that the worker had confirmed by then must be there: the events of a turn whose response was
//! sent, and the intent of a call before the tool received it.

mod disk;
pub(crate) mod record;
mod recording;

use crate::not_run::not_run;
use crate::power::disk::Left;
use crate::power::record::{Defect, Operation, Recorder};
use crate::power::recording::Recording;
use crate::scene::{APPROVE, CALL, ONE, PLAIN, SCENES, Scene};
use crate::size;

/// Number of times that each scene is played: enough for the database to checkpoint its log
/// meanwhile.
const ROUNDS: usize = 3;
/// Operations, spread evenly, at which the power is lost in the sample. Their total depends on how
/// many commits were written together.
const OPERATIONS: usize = 60;
/// Syncs, spread evenly, at which it is lost in the sample.
const SYNCS: usize = 50;
/// Number of power losses after which a worker continues the conversations, in a long run and in
/// the sample.
const GOES_ON: [usize; 2] = [200, 30];

/// Linux error numbers (`errno`): a failed read or write, and a full disk.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// The scenes that are played on a defective disk.
const ON_A_DEFECT: [Scene; 4] = [PLAIN, ONE, APPROVE, CALL];
/// One of this many places at which a disk can fail is in the sample.
const PLACE_OF: u32 = 61;
/// Number of moments after the disk failed at which the power is lost.
const AFTER_A_DEFECT: usize = 12;

/// `None`, with a note, where it cannot be compiled.
pub(crate) fn recorder() -> Option<Recorder> {
    Recorder::new()
        .inspect_err(|reason| not_run("adjutant-durability", reason))
        .ok()
}

/// Returns moments in order, each with the part of unsynced data that survives: all of them, or a
/// sample.
fn moments(operations: &[Operation], all: bool) -> Vec<(usize, Left)> {
    let is_sync = |at: &usize| {
        matches!(
            operations[*at],
            Operation::Sync { .. } | Operation::SyncFolder
        )
    };
    let syncs: Vec<usize> = (0..operations.len()).filter(is_sync).collect();
    let step = |number: usize, wanted: usize| if all { 1 } else { (number / wanted).max(1) };
    // Until the next sync nothing more is certain to be kept, but more may have been confirmed.
    let before_sync = syncs
        .iter()
        .step_by(step(syncs.len(), SYNCS))
        .copied()
        .chain([operations.len()]);
    let mut moments: Vec<_> = before_sync.map(|at| (at, Left::Nothing)).collect();
    for at in (0..=operations.len()).step_by(step(operations.len(), OPERATIONS)) {
        moments.extend([(at, Left::Everything), (at, Left::Sectors(at as u64))]);
        if matches!(
            operations.get(at.wrapping_sub(1)),
            Some(Operation::Write { .. })
        ) {
            moments.extend([(at, Left::FirstHalf), (at, Left::LastHalf)]);
        }
    }
    moments.sort_by_key(|(at, _)| *at);
    moments
}

/// Checks that the power can be lost in every phase of a database: while it is created, while its
/// log is written, checkpointed and reset, and while it is closed.
fn covers_everything(operations: &[Operation]) {
    let first = |wanted: fn(&Operation) -> bool| operations.iter().position(wanted).unwrap();
    let last = |wanted: fn(&Operation) -> bool| operations.iter().rposition(wanted).unwrap();
    let is_told = |it: &Operation| matches!(it, Operation::Reply(_));
    let (first_told, last_told) = (first(is_told), last(is_told));
    assert!(
        first(|it| matches!(it, Operation::Create { name } if name == "adjutant.db")) < first_told
    );
    let meanwhile = &operations[first_told..last_told];
    let is_back =
        |it: &&Operation| matches!(it, Operation::Write { name, .. } if name == "adjutant.db");
    let is_anew = |it: &&Operation| matches!(it, Operation::Write { name, at: 0, .. } if name == "adjutant.db-wal");
    assert!(
        meanwhile.iter().any(|it| is_back(&it)),
        "the log was never written back"
    );
    assert!(
        meanwhile.iter().any(|it| is_anew(&it)),
        "the log was never begun anew"
    );
    assert!(
        last_told
            < last(|it| matches!(it, Operation::Unlink { name } if name == "adjutant.db-wal"))
    );
}

#[test]
fn a_power_loss_takes_nothing_that_was_confirmed() {
    let Some(recorder) = recorder() else { return };
    let recording = Recording::new(&recorder, Defect::None, &SCENES.repeat(ROUNDS));
    assert_eq!(recording.errors, []);
    covers_everything(&recording.operations);
    let moments = moments(&recording.operations, size::is_long());
    assert!(
        moments.len() > size::cases(8000, 150),
        "the power failed only {} times",
        moments.len()
    );
    let faults = recording.fail_at(&moments, Some(size::cases(GOES_ON[0], GOES_ON[1])));
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        moments.len(),
        faults.join("\n")
    );
}

/// The check above finds the losses of a disk that ignores syncs.
#[test]
fn a_disk_that_forgets_to_sync_is_found_out() {
    let Some(recorder) = recorder() else { return };
    let recording = Recording::new(&recorder, Defect::ForgetsSyncs, &SCENES);
    let moments = moments(&recording.operations, false);
    let faults = recording.fail_at(&moments, None);
    let lost = faults
        .iter()
        .filter(|fault| fault.contains("events are left"))
        .count();
    assert!(
        lost > 10,
        "only {lost} were lost at {} moments: {faults:?}",
        moments.len()
    );
}

/// One operation fails, each in turn: the client that gets the error submits its input again, and
/// no other client notices. What was confirmed is there if the power is lost right afterwards.
fn fails_at_every_place(error: i32) -> usize {
    let Some(recorder) = recorder() else { return 0 };
    let mut told = 0;
    for number in (1..).filter(|number| size::takes(*number, PLACE_OF)) {
        let recording = Recording::new(&recorder, Defect::Fails { number, error }, &ON_A_DEFECT);
        let failure = recording
            .operations
            .iter()
            .enumerate()
            .find_map(|(at, it)| match it {
                Operation::Fail { name } => Some((at, name)),
                _ => None,
            });
        let Some((failed, name)) = failure else {
            assert!(number > 200, "only {number} places to fail at");
            return told;
        };
        let about = format!("number {number}, of {name}, failed with error {error}");
        // Each client got at most one error: the disk failed once.
        let mut errors: Vec<usize> = recording.errors.iter().map(|(number, _)| *number).collect();
        errors.dedup();
        assert_eq!(
            errors.len(),
            recording.errors.len(),
            "{about}: {:?}",
            recording.errors
        );
        told += errors.len();
        recording.is_done_once(&about);
        let end = recording.operations.len();
        let after = (failed..end).take(AFTER_A_DEFECT).chain([end]);
        let moments: Vec<_> = after
            .flat_map(|at| [(at, Left::Nothing), (at, Left::Everything)])
            .collect();
        let faults = recording.fail_at(&moments, None);
        assert!(faults.is_empty(), "{about}:\n{}", faults.join("\n"));
    }
    unreachable!("there are always more numbers")
}

#[test]
fn a_failed_read_or_write_is_reported_to_its_client() {
    assert!(
        fails_at_every_place(EIO) > 0 || recorder().is_none(),
        "nobody was told"
    );
}

#[test]
fn a_disk_that_is_full_for_a_moment_loses_nothing() {
    fails_at_every_place(ENOSPC);
}

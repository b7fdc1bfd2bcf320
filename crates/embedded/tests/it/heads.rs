//! The state of a head survives cancellation, errors and kills.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use adjutant_core::PromptProgress;
use adjutant_embedded::{Answer, ChatRequest, DecodeError, Decoder, Listener};
use candle_core::quantized::gguf_file::Value;

use crate::answers::ask;
use crate::tiny::{TinyFile, TinyModel};

/// The report at which the child stands still.
const STANDS_AT: usize = 4;

/// The files of the child process, in its working folder.
const MODEL: &str = "tiny.gguf";
const CACHE: &str = "cache";

/// A head of some 700 tokens.
fn request(user: &str) -> ChatRequest {
    let mut request = ask(&"The instruction and the examples. ".repeat(22), user);
    request.output_tokens_max = 3;
    request
}

fn decoder(dir: &Path) -> Decoder {
    let mut decoder = Decoder::load(&dir.join(MODEL)).unwrap();
    decoder.set_prefix_cache_dir(dir.join(CACHE));
    decoder
}

/// The answer of a decoder that has read nothing itself.
fn fresh_answer(dir: &Path) -> Answer {
    decoder(dir).generate(&request("fresh"), &mut ()).unwrap()
}

fn head_tokens(dir: &Path) -> usize {
    let mut decoder = Decoder::load(&dir.join(MODEL)).unwrap();
    let mut whole = Reports::default();
    decoder.prepare(&request("any"), &mut whole).unwrap();
    usize::try_from(whole.seen[0].total).unwrap()
}

fn only_file(dir: &Path) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(dir.join(CACHE))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Goes away at the report after `patience` others.
#[derive(Debug)]
struct Reports {
    seen: Vec<PromptProgress>,
    patience: usize,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            seen: Vec::new(),
            patience: usize::MAX,
        }
    }
}

impl Listener for Reports {
    fn on_text(&mut self, _piece: &str) {}

    fn on_prompt_progress(&mut self, progress: PromptProgress) {
        self.seen.push(progress);
    }

    fn is_cancelled(&self) -> bool {
        self.seen.len() > self.patience
    }
}

/// Tells every report on standard output, and stands still at the one after `left` others until it
/// is killed.
struct StandsStill {
    left: usize,
}

impl Listener for StandsStill {
    fn on_text(&mut self, _piece: &str) {}

    fn on_prompt_progress(&mut self, progress: PromptProgress) {
        let mut out = std::io::stdout();
        writeln!(out, "read {} kept {}", progress.done, progress.kept).unwrap();
        out.flush().unwrap();
        if self.left == 0 {
            let _ = std::io::stdin().read(&mut [0]);
        }
        self.left = self.left.saturating_sub(1);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Not a test: the process that reads a prompt in its working folder, and never gets further than
/// some chunks.
#[test]
#[ignore = "a process that the tests beside it start and kill"]
fn child() {
    let answer = decoder(Path::new(".")).generate(
        &request("child"),
        &mut StandsStill {
            left: STANDS_AT - 1,
        },
    );
    writeln!(
        std::io::stdout(),
        "answered with {} cached",
        answer.unwrap().cached_tokens
    )
    .unwrap();
}

/// A child that stands still behind a chunk; what it said about it.
struct Reader {
    process: Child,
    /// Tokens read and kept; `None`: it answered, since there was too little left to read.
    standing: Option<(usize, usize)>,
}

impl Reader {
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "heads::child",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut reports = 0;
        for line in lines {
            // The harness begins a line of its own before the first report.
            if let Some((_, figures)) = line.split_once("read ") {
                reports += 1;
                let (read, kept) = figures.split_once(" kept ").unwrap();
                if reports == STANDS_AT {
                    let standing = Some((read.parse().unwrap(), kept.parse().unwrap()));
                    return Self { process, standing };
                }
            }
        }
        process.wait().unwrap();
        Self {
            process,
            standing: None,
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_killed_process_loses_no_chunk_it_had_read() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let reader = Reader::start(dir);
    let (read, kept) = reader.standing.unwrap();
    assert!(read > 0 && read == kept, "{read} {kept}");
    reader.kill();
    assert_eq!(fresh_answer(dir).cached_tokens, kept);
    assert_eq!(fresh_answer(dir).cached_tokens, head_tokens(dir));
}

#[test]
fn processes_that_are_killed_again_and_again_get_there() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let mut before = 0;
    // A chunk has at least one token, so this ends.
    loop {
        let reader = Reader::start(dir);
        let Some((read, kept)) = reader.standing else {
            break;
        };
        assert!(kept > before && read >= kept, "{before} {read} {kept}");
        before = kept.min(read);
        reader.kill();
        if before == head_tokens(dir) {
            break;
        }
    }
    assert_eq!(fresh_answer(dir).cached_tokens, head_tokens(dir));
}

#[test]
fn a_reading_that_is_cancelled_is_kept_in_memory_and_on_disk() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let mut decoder = decoder(dir);
    let mut listener = Reports {
        patience: 2,
        ..Reports::default()
    };
    let outcome = decoder.generate(&request("one"), &mut listener);
    assert!(
        matches!(outcome, Err(DecodeError::Cancelled)),
        "{outcome:?}"
    );
    let last = listener.seen.last().unwrap();
    assert!(
        last.done > 0 && last.done == last.kept && last.left.is_some(),
        "{last:?}"
    );
    let kept = usize::try_from(last.kept).unwrap();
    assert_eq!(
        decoder
            .generate(&request("two"), &mut ())
            .unwrap()
            .cached_tokens,
        kept
    );
    // Meanwhile the rest was read and kept too.
    assert_eq!(fresh_answer(dir).cached_tokens, head_tokens(dir));
}

/// Floating-point sums depend on how many tokens are read at once, so these must not depend on
/// where reading ended, nor on how fast the machine was.
#[test]
fn where_reading_was_interrupted_changes_no_bit() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let whole = fresh_answer(dir);
    let at_once = fs::read(only_file(dir)).unwrap();
    fs::remove_dir_all(dir.join(CACHE)).unwrap();
    let mut interruptions = 0;
    let answer = loop {
        let mut listener = Reports {
            patience: 3,
            ..Reports::default()
        };
        match decoder(dir).generate(&request("fresh"), &mut listener) {
            Ok(answer) => break answer,
            Err(DecodeError::Cancelled) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(interruptions > 2, "{interruptions}");
    assert_eq!(answer.text, whole.text);
    assert!(
        fs::read(only_file(dir)).unwrap() == at_once,
        "the files differ"
    );
}

#[test]
fn progress_begins_at_what_is_known_and_never_goes_back() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let mut first = Reports {
        patience: 3,
        ..Reports::default()
    };
    let _ = decoder(dir).generate(&request("one"), &mut first);
    assert_eq!((first.seen[0].done, first.seen[0].left), (0, None));
    let mut second = Reports::default();
    let answer = decoder(dir).generate(&request("one"), &mut second).unwrap();
    let known = first.seen.last().unwrap().done;
    assert_eq!(second.seen[0].done, known);
    assert_eq!(usize::try_from(known).unwrap(), answer.cached_tokens);
    assert_eq!(second.seen.last().unwrap().percent(), 100);
    assert!(second.seen.is_sorted_by_key(|report| report.done));
    assert!(
        second
            .seen
            .iter()
            .all(|report| usize::try_from(report.total).unwrap() == answer.input_tokens)
    );
}

#[test]
fn a_torn_end_is_cut_off_and_what_stands_before_it_is_used() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let head = head_tokens(dir);
    fresh_answer(dir);
    let path = only_file(dir);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let torn = fresh_answer(dir).cached_tokens;
    assert!(0 < torn && torn < head, "{torn} of {head}");
    assert_eq!(fresh_answer(dir).cached_tokens, head);
}

#[test]
fn two_processes_at_once_do_each_other_no_harm() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let head = head_tokens(dir);
    // It holds the file.
    let reader = Reader::start(dir);
    let (_, kept) = reader.standing.unwrap();
    assert_eq!(fresh_answer(dir).cached_tokens, kept);
    reader.kill();
    // Only who held the file has written to it.
    assert_eq!(fresh_answer(dir).cached_tokens, kept);
    assert_eq!(fresh_answer(dir).cached_tokens, head);
    only_file(dir);
}

#[test]
fn another_model_reads_for_itself() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    fresh_answer(dir);
    TinyModel::new()
        .set("qwen2.rope.freq_base", Value::F32(1e5))
        .write(&dir.join(MODEL));
    assert_eq!(fresh_answer(dir).cached_tokens, 0);
    assert_eq!(fresh_answer(dir).cached_tokens, head_tokens(dir));
    TinyModel::new().write(&dir.join(MODEL));
    assert_eq!(fresh_answer(dir).cached_tokens, head_tokens(dir));
}

#[test]
fn what_was_prepared_is_the_head_of_the_request() {
    let file = TinyFile::new();
    let mut decoder = Decoder::load(&file.path()).unwrap();
    let mut reports = Reports {
        patience: 1,
        ..Reports::default()
    };
    assert!(matches!(
        decoder.prepare(&request("…"), &mut reports),
        Err(DecodeError::Cancelled)
    ));
    // Goes on from there.
    let mut rest = Reports::default();
    decoder.prepare(&request("…"), &mut rest).unwrap();
    assert_eq!(rest.seen[0].done, reports.seen[1].done);
    let head = usize::try_from(rest.seen[0].total).unwrap();
    assert_eq!(
        decoder
            .generate(&request("one"), &mut ())
            .unwrap()
            .cached_tokens,
        head
    );
    // Once more is nothing, and takes nothing away from what was read beyond it.
    let mut again = Reports::default();
    decoder.prepare(&request("…"), &mut again).unwrap();
    assert!(again.seen.is_empty());
    let answer = decoder.generate(&request("one"), &mut ()).unwrap();
    assert_eq!(answer.cached_tokens, answer.input_tokens - 1);
}

#[test]
fn a_short_head_is_not_worth_a_file() {
    let file = TinyFile::new();
    let dir = file.dir.path();
    let mut decoder = decoder(dir);
    decoder.generate(&ask("Short.", "x"), &mut ()).unwrap();
    assert!(!dir.join(CACHE).exists());
    // The first one that is, is kept.
    decoder.generate(&request("y"), &mut ()).unwrap();
    only_file(dir);
}

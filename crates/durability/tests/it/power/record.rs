//! The recorded file operations and outputs of a process, in order (`record.c`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use adjutant_durability::{Called, Reply};
use tempfile::TempDir;

/// A recorded operation.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// A file was created.
    Create { name: String },
    /// Bytes of a file were written.
    Write {
        name: String,
        at: usize,
        bytes: Vec<u8>,
    },
    /// The length of a file was changed.
    Truncate { name: String, size: usize },
    /// A file was synced.
    Sync { name: String },
    /// A file was removed.
    Unlink { name: String },
    /// A file was renamed.
    Rename { name: String, to: String },
    /// The folder was synced.
    SyncFolder,
    /// An operation failed on purpose.
    Fail { name: String },
    /// A reply was written.
    Reply(Reply),
    /// A tool was called.
    Tool(Called),
}

/// A simulated defect of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// No defect.
    None,
    /// Syncs are accepted and not done.
    ForgetsSyncs,
    /// One sync of this many fails with an I/O error and is not done. Nothing is recorded.
    FailsSyncs { of: u32 },
    /// The operation of this number fails once, with this error of the operating system.
    Fails { number: u32, error: i32 },
}

/// The preloaded library that records, compiled for this machine.
pub(crate) struct Recorder {
    folder: TempDir,
}

impl Recorder {
    /// Compiles the library.
    ///
    /// # Errors
    /// A message: the operating system is not supported, or there is no C compiler.
    pub(crate) fn new() -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("what a process writes is recorded by a library for Linux".to_owned());
        }
        let recorder = Self {
            folder: TempDir::new().unwrap(),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/power/record.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        let compiled = compiler
            .arg(recorder.library())
            .arg(source)
            .arg("-lpthread")
            .output();
        let compiled = compiled.map_err(|error| format!("no C compiler (cc): {error}"))?;
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        Ok(recorder)
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("librecord.so")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// Returns the environment of a process whose file operations in `folder` are recorded anew.
    pub(crate) fn variables(&self, folder: &Path, defect: Defect) -> Vec<(&'static str, OsString)> {
        // Before the first recording there is none.
        let _ = std::fs::remove_file(self.log());
        let log = match defect {
            Defect::FailsSyncs { .. } => "/dev/null".into(),
            _ => self.log(),
        };
        let mut variables = vec![
            ("LD_PRELOAD", self.library().into_os_string()),
            ("RECORD_FOLDER", folder.as_os_str().to_owned()),
            ("RECORD_LOG", log.into_os_string()),
        ];
        variables.extend(match defect {
            Defect::None => None,
            Defect::ForgetsSyncs => Some(("RECORD_FORGETS_SYNCS", "1".into())),
            Defect::FailsSyncs { of } => Some(("RECORD_SYNCS_FAIL", of.to_string().into())),
            Defect::Fails { number, error } => {
                Some(("RECORD_FAILS", format!("{number} {error}").into()))
            }
        });
        variables
    }

    /// Returns the recorded operations.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let log = std::fs::read(self.log()).unwrap();
        let (mut rest, mut operations, mut line) = (&log[..], Vec::new(), Vec::new());
        while let Some((head, more)) = rest.split_first_chunk::<16>() {
            let [kind, name_length, _, _, a, b, c, d, offset @ ..] = *head;
            let data_length = u32::from_ne_bytes([a, b, c, d]) as usize;
            let at = usize::try_from(u64::from_ne_bytes(offset)).unwrap();
            let (name, more) = more.split_at(usize::from(name_length));
            let (data, more) = more.split_at(data_length);
            rest = more;
            let name = String::from_utf8(name.to_owned()).unwrap();
            operations.extend(match kind {
                b'c' => Some(Operation::Create { name }),
                b'w' => Some(Operation::Write {
                    name,
                    at,
                    bytes: data.to_owned(),
                }),
                b't' => Some(Operation::Truncate { name, size: at }),
                b's' => Some(Operation::Sync { name }),
                b'u' => Some(Operation::Unlink { name }),
                b'r' => Some(Operation::Rename {
                    name,
                    to: String::from_utf8(data.to_owned()).unwrap(),
                }),
                b'd' => Some(Operation::SyncFolder),
                b'f' => Some(Operation::Fail { name }),
                b'n' => serde_json::from_slice(data).ok().map(Operation::Tool),
                b'o' => {
                    line.extend_from_slice(data);
                    line.ends_with(b"\n").then(|| {
                        Operation::Reply(
                            serde_json::from_slice(&std::mem::take(&mut line)).unwrap(),
                        )
                    })
                }
                other => panic!("no kind of record: {other}"),
            });
        }
        assert!(rest.is_empty(), "a record is cut off");
        operations
    }
}

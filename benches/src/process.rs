//! Children of the run: started, told, asked, and ended with it, whatever ends it.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Result;

/// What the last line of a child that failed begins with.
pub(crate) const FAILED: &str = "failed: ";

/// A child that speaks in lines. It ends when this is dropped, and by itself when this process is
/// gone.
#[derive(Debug)]
pub(crate) struct Speaker {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Speaker {
    /// Starts this program once more.
    pub(crate) fn start(arguments: &[String]) -> Result<Self> {
        Self::start_as(Command::new(std::env::current_exe()?).args(arguments))
    }

    fn start_as(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (
            child.stdin.take().ok_or("no input")?,
            child.stdout.take().ok_or("no output")?,
        );
        Ok(Self {
            child,
            input,
            lines: BufReader::new(output).lines(),
        })
    }

    /// Waits for its next line.
    pub(crate) async fn line(&mut self) -> Result<String> {
        match self.lines.next_line().await? {
            Some(line) => match line.strip_prefix(FAILED) {
                Some(words) => Err(words.into()),
                None => Ok(line),
            },
            None => Err(format!("a child ended too soon: {}", self.child.wait().await?).into()),
        }
    }

    /// Waits for its next line, which is JSON.
    pub(crate) async fn value<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.line().await?;
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}").into())
    }

    /// Tells it to go on.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        Ok(self.input.write_all(b"\n").await?)
    }

    /// Has it end in order, and waits for that.
    pub(crate) async fn end(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let status = child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a child failed: {status}").into())
        }
    }
}

/// Prints a line for the process that started this one.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// Waits until the process that started this one says so.
pub(crate) fn wait_for_word() -> Result<()> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line)? {
        0 => Err("nobody waits any more".into()),
        _ => Ok(()),
    }
}

/// Waits until the process that started this one closes its end, which it does when it has asked
/// all it wants.
pub(crate) fn wait_for_end() -> Result<()> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// Ends this process with the one that started it.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        // An error is an end too.
        let _ = wait_for_end();
        std::process::exit(0);
    });
}

/// Returns what a short command prints.
pub(crate) async fn output(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

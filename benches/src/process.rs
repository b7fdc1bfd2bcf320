//! Child processes that exchange lines with this process, and end with it.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Result;

/// Prefix of the line in which a child process reports its error.
pub(crate) const FAILED: &str = "failed: ";

/// A child process that exchanges lines with this one. It is killed on drop, and ends by itself if
/// this process is killed.
#[derive(Debug)]
pub(crate) struct Speaker {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Speaker {
    /// Starts this program again, with other arguments.
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

    /// Waits for the next line of the child.
    pub(crate) async fn line(&mut self) -> Result<String> {
        match self.lines.next_line().await? {
            Some(line) => match line.strip_prefix(FAILED) {
                Some(words) => Err(words.into()),
                None => Ok(line),
            },
            None => Err(format!(
                "a child process ended too early: {}",
                self.child.wait().await?
            )
            .into()),
        }
    }

    /// Waits for the next line and parses it as JSON.
    pub(crate) async fn value<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.line().await?;
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}").into())
    }

    /// Lets the child continue from [`wait_for_word`].
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        Ok(self.input.write_all(b"\n").await?)
    }

    /// Closes the child's standard input and waits until it has ended.
    pub(crate) async fn end(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let status = child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a child process failed: {status}").into())
        }
    }
}

/// Prints a line for the parent process, without buffering.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// Waits for [`Speaker::go_on`] of the parent process.
pub(crate) fn wait_for_word() -> Result<()> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line)? {
        0 => Err("the parent process is gone".into()),
        _ => Ok(()),
    }
}

/// Waits until the parent process closes its end of the pipe or ends itself.
pub(crate) fn wait_for_end() -> Result<()> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// Starts a thread that ends this process as soon as the parent process has ended.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        // An error while reading also means that the parent is gone.
        let _ = wait_for_end();
        std::process::exit(0);
    });
}

/// Runs a short command and returns its standard output.
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

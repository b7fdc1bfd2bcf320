//! The prompt of a command: words of the command line, standard input, and attached files.

mod file; // text files
mod frame; // frames around attached text
pub(crate) mod mention; // names after @
mod stdin; // standard input
mod text; // decoding and cleaning of text

use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::limits::MESSAGE_BYTES_MAX;

use crate::config::format_duration;
use crate::error::CliError;
use crate::terminal::screen::Screen;
use file::NamedBy;
use text::{Text, Unusable};

pub(crate) use adjutant_core::attachment::notes_in;
pub(crate) use frame::framed;
use stdin::Input;
pub(crate) use stdin::Stdin;

/// Stands for standard input among words and files.
const DASH: &str = "-";

/// Name of standard input in its frame and in messages.
const STDIN: &str = "standard input";

/// A prompt that can be sent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// True if the user typed the text, so that its mentions are attached. Text from a pipe may
    /// have any author.
    pub(crate) typed: bool,
    /// Frames of the attached texts.
    pub(crate) attached: String,
    /// Notes for the user: changes to the text, and attachments.
    pub(crate) notices: Vec<String>,
}

/// Sources of a prompt on the command line.
#[derive(Debug, Default)]
pub(crate) struct PromptSources {
    pub(crate) words: Vec<String>,
    /// Values of `--file`.
    pub(crate) files: Vec<String>,
}

/// A text to attach, with its name.
pub(crate) struct Attachment {
    what: String,
    text: Text,
}

/// Assembles the prompt: the words; standard input, which is the prompt if there are no words and
/// is attached otherwise; and files.
///
/// Beside words or files, the first byte of standard input is awaited for the time `wait` only,
/// because an open pipe may have no writer; zero ignores standard input. For `-` it is read to its
/// end without a bound.
///
/// # Errors
/// There is no prompt or a too long one, or a source cannot be read or is not text.
pub(crate) async fn prompt(
    given: PromptSources,
    stdin: Stdin,
    wait: Duration,
    screen: &Screen,
) -> Result<Prompt, CliError> {
    let PromptSources {
        mut words,
        mut files,
    } = given;
    let named = words.len() + files.len();
    words.retain(|word| word != DASH);
    files.retain(|file| file != DASH);
    let demanded = words.len() + files.len() < named;
    let alone = words.is_empty() && files.is_empty();
    if alone && !demanded && stdin.is_terminal() {
        return Err(empty("there is no prompt"));
    }
    // Before standard input: a wrong file name is an error at once, however long the input takes.
    let files = read_files(with_paths(files), NamedBy::Option).await?;
    let typed = if words.is_empty() {
        None
    } else {
        Some(parse_prompt(words.join(" ").into_bytes(), "the prompt")?)
    };
    let patience = (!demanded && !alone).then_some(wait);
    // At a terminal the words are the whole prompt, unless `-` asks for more.
    let leaves_alone = patience.is_some_and(|wait| stdin.is_terminal() || wait.is_zero());
    let mut input = None;
    if !leaves_alone {
        match stdin.read(patience, screen).await? {
            Input::Nothing => screen.note(&format!(
                "no standard input after {}: going on without it (`-` among the words waits for it)",
                format_duration(wait)
            )),
            Input::Bytes(bytes) => {
                input = Some(Attachment {
                    what: STDIN.to_owned(),
                    text: usable(bytes, STDIN)?,
                });
            }
        }
    }
    // Where it is the prompt, an empty input is an error.
    if let Some(empty) = input.take_if(|input| input.is_empty() && !alone)
        && (demanded || screen.verbose())
    {
        screen.note(&empty.left_out());
    }
    let (files, left_out): (Vec<Attachment>, Vec<Attachment>) =
        files.into_iter().partition(|file| !file.is_empty());
    left_out
        .iter()
        .for_each(|file| screen.note(&file.left_out()));
    assemble(typed, input, files)
}

/// Combines the sources: the words are the prompt, else standard input, else the files, which then
/// are not attached again.
fn assemble(
    typed: Option<Prompt>,
    input: Option<Attachment>,
    files: Vec<Attachment>,
) -> Result<Prompt, CliError> {
    let (mut prompt, along) = match (typed, input) {
        (Some(typed), input) => (typed, input.into_iter().chain(files).collect()),
        (None, Some(input)) => (input.prompt()?, files),
        (None, None) => {
            let notices = files
                .iter()
                .filter_map(|file| file.text.notice(&file.what))
                .collect();
            let texts: Vec<String> = files.into_iter().map(|file| file.text.text).collect();
            let text = texts.join("\n\n");
            if text.is_empty() {
                return Err(empty("there is nothing in the files"));
            }
            (
                Prompt {
                    text,
                    notices,
                    ..Prompt::default()
                },
                Vec::new(),
            )
        }
    };
    for attachment in along {
        prompt.attach(&attachment);
    }
    Ok(prompt)
}

/// Resolves files by the names given on the command line.
fn with_paths(files: Vec<String>) -> Vec<(PathBuf, String)> {
    files
        .into_iter()
        .map(|name| (PathBuf::from(&name), name))
        .collect()
}

/// Reads files on a blocking thread: a file may be a pipe of the shell, as in `-f <(command)`.
async fn read_files(
    files: Vec<(PathBuf, String)>,
    by: NamedBy,
) -> Result<Vec<Attachment>, CliError> {
    let read = tokio::task::spawn_blocking(move || {
        let read = |(path, name): (PathBuf, String)| {
            let text = file::read_text_file(&path, &name, by)?;
            Ok(Attachment {
                what: file::display_name(&name),
                text,
            })
        };
        files.into_iter().map(read).collect()
    });
    read.await
        .map_err(|error| CliError::failed("the files cannot be read").because(error.to_string()))?
}

/// Reads a text file. `name` is the name for the user.
///
/// # Errors
/// It cannot be read, is no text, or is longer than a message may be.
pub(crate) fn text_of_file(path: &Path, name: &str) -> Result<String, CliError> {
    Ok(file::read_text_file(path, name, NamedBy::Option)?.text)
}

/// Reads the files attached to the first message of a conversation and frames them.
///
/// # Errors
/// A file cannot be read or is no text; or standard input is named, which the conversation itself
/// is read from.
pub(crate) async fn files_for_chat(
    files: Vec<String>,
    screen: &Screen,
) -> Result<String, CliError> {
    if files.iter().any(|file| file == DASH) {
        return Err(CliError::usage(
            "in a conversation, standard input is what you say: it cannot be a file too",
        )
        .or_try("adjutant ask \"…\" -f -"));
    }
    let mut prompt = Prompt::default();
    for file in read_files(with_paths(files), NamedBy::Option).await? {
        match file.is_empty() {
            true => screen.note(&file.left_out()),
            false => prompt.attach(&file),
        }
    }
    prompt.notices.iter().for_each(|notice| screen.note(notice));
    prompt.message("")
}

impl Attachment {
    /// Reads a text file that a message names. `name` is the name for the user.
    ///
    /// # Errors
    /// It cannot be read, is no file or no text, or is longer than a message may be.
    pub(crate) async fn read(path: PathBuf, name: String) -> Result<Self, CliError> {
        let mut read = read_files(vec![(path, name)], NamedBy::Message).await?;
        read.pop()
            .ok_or_else(|| CliError::failed("the file cannot be read"))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.text.trim().is_empty()
    }

    /// Returns the text in a frame.
    pub(crate) fn frame(&self) -> String {
        framed(&self.what, &self.text.text)
    }

    /// Returns notes for the user about the attachment.
    pub(crate) fn notices(&self) -> Vec<String> {
        let attached = format!("  attached: {}, {}", self.what, self.text.lines());
        self.text
            .notice(&self.what)
            .into_iter()
            .chain([attached])
            .collect()
    }

    fn left_out(&self) -> String {
        format!("{} is empty; nothing is attached", self.what)
    }

    fn prompt(self) -> Result<Prompt, CliError> {
        if self.is_empty() {
            return Err(empty(&format!("{} is empty", self.what)));
        }
        let notices = self.text.notice(&self.what).into_iter().collect();
        Ok(Prompt {
            text: self.text.text,
            notices,
            ..Prompt::default()
        })
    }
}

impl Prompt {
    fn attach(&mut self, attachment: &Attachment) {
        self.notices.extend(attachment.notices());
        self.attached.push_str(&attachment.frame());
    }

    /// Returns the text to send. `mentioned` holds the frames of mentioned notes and files.
    ///
    /// # Errors
    /// The message would be too long.
    pub(crate) fn message(&self, mentioned: &str) -> Result<String, CliError> {
        let message = [self.text.as_str(), mentioned, &self.attached].concat();
        match message.len() > MESSAGE_BYTES_MAX {
            true => Err(too_long("the prompt with all that goes along")),
            false => Ok(message),
        }
    }
}

/// Decodes typed bytes, cleans them and checks their length.
///
/// # Errors
/// They are empty, too long, or no text.
pub(crate) fn parse_prompt(bytes: Vec<u8>, what: &str) -> Result<Prompt, CliError> {
    let text = usable(bytes, what)?;
    let prompt = Attachment {
        what: what.to_owned(),
        text,
    }
    .prompt()?;
    Ok(Prompt {
        typed: true,
        ..prompt
    })
}

fn usable(bytes: Vec<u8>, what: &str) -> Result<Text, CliError> {
    text::decode(bytes).map_err(|unusable| match unusable {
        Unusable::TooLong => too_long(what),
        Unusable::NotText(reason) => CliError::usage(format!("{what} is not text"))
            .because(reason)
            .or_try("send UTF-8 text"),
    })
}

fn too_long(what: &str) -> CliError {
    CliError::usage(format!(
        "{what} is longer than {MESSAGE_BYTES_MAX} bytes (1 MiB), the most that is taken"
    ))
    .or_try("send the part that matters, such as: … | head -c 100000 | adjutant …")
}

fn empty(message: &str) -> CliError {
    CliError::usage(message)
        .or_try("adjutant \"add buy milk\"")
        .or_try("echo \"what is still open?\" | adjutant")
}

#[cfg(test)]
mod tests;

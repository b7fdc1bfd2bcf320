//! Notes and files mentioned after `@` in a message, read and framed before anything is sent.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use adjutant_memory::{MemoryError, NoteText, VaultError, open_regular_file};

use super::Session;
use crate::config::{Settings, attachment_folders, expand_home};
use crate::error::CliError;
use crate::terminal::display::{clean_line, clip, plural, shell_quoted};
use crate::terminal::input::{Attachment, framed, mention};
use crate::terminal::yes_no::ask_yes_no;

/// Notes and files attached to one message at most.
const ATTACHED_MAX: usize = 20;

/// Characters of a name shown in messages.
const NAME_MAX: usize = 80;

impl Session<'_> {
    /// Returns frames with the notes and files that the text mentions after `@`: a note of the
    /// vault, else a file. A word that is neither and does not look like a path stays a word.
    ///
    /// # Errors
    /// A file cannot be read or is no text, or its folder is not trusted and the user does not
    /// confirm it. Nothing was sent then.
    pub(crate) async fn mentioned(
        &mut self,
        text: &str,
        settings: &Settings,
    ) -> Result<String, CliError> {
        let mut frames = Vec::new();
        for name in mention::mentions(text) {
            let frame = match self.note(&name).await {
                Ok(note) => Some(frame(&note)),
                Err(Some(MemoryError::Vault(VaultError::Excluded { .. }))) => {
                    return Err(excluded(&clip(&name, NAME_MAX)));
                }
                Err(no_note) => {
                    let no_note = no_note.map(|error| clip(&error.to_string(), 300));
                    self.file(&name, no_note, settings).await?
                }
            };
            frames.extend(frame);
            if frames.len() > ATTACHED_MAX {
                return Err(CliError::usage(format!(
                    "more than {ATTACHED_MAX} notes and files are named with @"
                ))
                .or_try("name fewer, or attach files with -f"));
            }
        }
        Ok(frames.concat())
    }

    /// Returns the note of that name.
    ///
    /// # Errors
    /// The reason why it cannot be attached; `None` without a vault.
    async fn note(&self, name: &str) -> Result<NoteText, Option<MemoryError>> {
        let memory = self.user_memory.memory().ok_or(None)?;
        let notes = memory.notes().ok_or(None)?;
        let note = notes.read(name, None).await?;
        self.screen
            .note(&format!("  attached: {}", attachment_notice(&note)));
        Ok(note)
    }

    /// Returns the file of that name in a frame; `None` if it is just a word. `no_note` is the
    /// reason why it is no note.
    async fn file(
        &mut self,
        name: &str,
        no_note: Option<String>,
        settings: &Settings,
    ) -> Result<Option<String>, CliError> {
        let path = expand_home(PathBuf::from(name));
        let shown = clip(name, NAME_MAX);
        let meant = mention::looks_like_path(name, &path);
        match path.metadata() {
            Ok(about) if about.is_dir() && !meant => {
                self.screen.note(&format!(
                    "  @{shown} is a folder and is not attached: it is sent as a word"
                ));
                return Ok(None);
            }
            Ok(_) => {}
            Err(error)
                if !meant
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                match no_note {
                    Some(why) => self
                        .screen
                        .note(&format!("  @{shown} is not attached: {why}")),
                    // A name with a folder was probably meant as a file.
                    None if name.contains('/') => {
                        self.screen.note(&format!(
                            "  @{shown} is not a file here; it is sent as it stands"
                        ));
                    }
                    None => {}
                }
                return Ok(None);
            }
            Err(error) => {
                let error =
                    CliError::usage(format!("@{shown} cannot be read")).because(error.to_string());
                return Err(error.or_try(AS_A_WORD));
            }
        }
        // Nobody is asked about what could not be attached anyway.
        if let Err(cause) = open_regular_file(&path)
            && cause.kind() == ErrorKind::InvalidInput
        {
            let error = CliError::usage(format!("@{shown} cannot be read"));
            return Err(error.because(cause.to_string()).or_try(AS_A_WORD));
        }
        // The same note under the path of its file.
        let vault = self.user_memory.vault();
        if vault.is_some_and(|vault| vault.excludes_file(&path)) {
            return Err(excluded(&shown));
        }
        self.ask_for_folder(&path, &shown, settings).await?;
        let file = Attachment::read(path, name.to_owned())
            .await
            .map_err(|error| error.or_try(AS_A_WORD))?;
        if file.is_empty() {
            self.screen
                .note(&format!("  @{shown} is empty; nothing is attached"));
            return Ok(None);
        }
        file.notices()
            .iter()
            .for_each(|notice| self.screen.note(notice));
        Ok(Some(file.frame()))
    }

    /// Asks once per folder if its files may be attached, unless the folder is trusted.
    ///
    /// # Errors
    /// The user declines or cannot be asked.
    async fn ask_for_folder(
        &mut self,
        path: &Path,
        shown: &str,
        settings: &Settings,
    ) -> Result<(), CliError> {
        // A symbolic link may lead to another folder; the one of its target has to be trusted.
        let file = path.canonicalize().map_err(|error| {
            CliError::usage(format!("@{shown} cannot be read")).because(error.to_string())
        })?;
        let state = &settings.dirs.state;
        if attachment_folders::is_allowed(state, &file)
            || self
                .allowed
                .iter()
                .any(|folder| attachment_folders::contains(folder, &file))
        {
            return Ok(());
        }
        let working = std::env::current_dir()
            .and_then(|folder| folder.canonicalize())
            .unwrap_or_default();
        let folder = attachment_folders::folder_to_allow(&file, &working);
        let name = clean_line(&folder.to_string_lossy());
        let refused = CliError::usage(format!("@{shown} is not attached, and nothing was sent"))
            .or_try(format!(
                "adjutant -f {} …    attaches it without a question",
                shell_quoted(shown)
            ));
        if !self.screen.asks() {
            return Err(refused
                .because(format!("{name} is not trusted, and you cannot be asked"))
                .or_try("run it again at a terminal, which asks once"));
        }
        let question = format!("? Allow @ to attach files from {name}?");
        let yes = tokio::select! {
            yes = ask_yes_no(self.screen, &question, false) => yes,
            () = self.interrupts.next() => {
                self.screen.side("\n");
                false
            }
            () = self.endings.next() => {
                self.screen.side("\n");
                return Err(CliError::terminated());
            }
        };
        match (yes, settings.bounds.temp) {
            (false, _) => return Err(refused.because(format!("{name} is not trusted"))),
            // `--temp` leaves nothing behind: the folder is allowed for this run only.
            (true, true) => self.allowed.push(folder),
            (true, false) => attachment_folders::allow(state, &folder)?,
        }
        Ok(())
    }
}

/// Returns the error for a note that its owner keeps from the assistant.
fn excluded(shown: &str) -> CliError {
    CliError::usage(format!(
        "@{shown} is excluded from what the assistant may see"
    ))
    .or_try("attach its file with -f, which names it yourself")
}

/// A hint for messages in which `@` does not mean a file.
const AS_A_WORD: &str = "if it is no file: leave out the @";

fn attachment_notice(note: &NoteText) -> String {
    let lines = plural(note.lines as u64, "line", "lines");
    match note.cut {
        None => format!("{}, {lines}", note.path),
        Some(_) => format!(
            "{}, lines {} to {} of {lines}",
            note.path, note.first_line, note.last_line
        ),
    }
}

fn frame(note: &NoteText) -> String {
    let text = match &note.cut {
        Some(cut) => &format!("{}\n({cut})", note.text),
        None => &note.text,
    };
    framed(&format!("note \"{}\"", note.path), text)
}

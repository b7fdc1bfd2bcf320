//! Pinned tool definitions of MCP servers, as the user agreed to them: a file per server in the
//! state folder.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use adjutant_mcp::client::{PinnedTools, Pins, ServerName};

use crate::config::{Dirs, Settings, write_private};

/// The folder of the files, in the state folder.
const FOLDER: &str = "mcp-tools";

/// Reads and writes the files.
pub(crate) struct PinFiles {
    folder: PathBuf,
    /// True if a server's first start pins its tools; listing servers must not.
    pins_first: bool,
}

impl PinFiles {
    /// Creates pins for servers in use, whose tools are pinned at the first start.
    pub(crate) fn pinning(settings: &Settings) -> Arc<Self> {
        Self::new(settings, true)
    }

    /// Creates pins for listing servers: only [`PinFiles::write`] writes.
    pub(crate) fn listing(settings: &Settings) -> Arc<Self> {
        Self::new(settings, false)
    }

    fn new(settings: &Settings, pins_first: bool) -> Arc<Self> {
        Arc::new(Self {
            pins_first,
            ..Self::of(&settings.dirs)
        })
    }

    /// Returns the files in these folders, for removing them.
    pub(crate) fn of(dirs: &Dirs) -> Self {
        Self {
            folder: dirs.state.join(FOLDER),
            pins_first: false,
        }
    }

    fn file(&self, server: &ServerName) -> PathBuf {
        self.folder.join(format!("{server}.json"))
    }

    /// Removes what was agreed to of a server.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn remove(&self, server: &ServerName) -> Result<(), String> {
        let file = self.file(server);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("{}: {error}", file.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes the definitions that the user agreed to.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, server: &ServerName, tools: &PinnedTools) -> Result<(), String> {
        let text = serde_json::to_string_pretty(tools).map_err(|error| error.to_string())?;
        let written = write_private(&self.file(server), &format!("{text}\n"));
        written.map_err(|error| match error.cause {
            Some(cause) => format!("{}: {cause}", error.message),
            None => error.message,
        })
    }
}

impl Pins for PinFiles {
    fn load(&self, server: &ServerName) -> Result<Option<PinnedTools>, String> {
        let file = self.file(server);
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", file.display())),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    fn save(&self, server: &ServerName, tools: &PinnedTools) -> Result<(), String> {
        // A listing must not agree in the user's place to tools that were never used.
        if self.pins_first {
            self.write(server, tools)
        } else {
            Ok(())
        }
    }

    fn how_to_accept(&self, server: &ServerName) -> String {
        format!("adjutant tools accept {server}")
    }
}

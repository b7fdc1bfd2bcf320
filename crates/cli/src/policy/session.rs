use adjutant_core::{ConversationId, PendingCall, PendingKind};
use adjutant_mcp::client::{ServerConfig, ServerReport};
use uuid::Uuid;

use super::file;
use super::grant::{Grant, Lifetime, ToolOrigin};
use crate::clock::now;
use crate::config::{Dirs, Settings};
use crate::error::CliError;
use crate::terminal::display::clip;

/// The permissions that apply in one conversation.
pub(crate) struct Permissions {
    dirs: Dirs,
    /// The configured servers.
    configured: Vec<ServerConfig>,
    /// The running servers, and the current conversation.
    running: Vec<ServerReport>,
    conversation: Option<ConversationId>,
    /// True with `--temp`: permissions are kept in memory only.
    temporary: bool,
    /// Permissions given with `--temp`.
    in_memory: Vec<Grant>,
}

/// The result of looking for a permission.
#[derive(Debug, PartialEq)]
pub(crate) enum Allowed {
    /// A permission covers the call, with a note for the user.
    Yes(String),
    /// No permission covers the call. The note says so if one nearly does.
    No(Option<String>),
}

impl Permissions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            dirs: settings.dirs.clone(),
            configured: settings.mcp.clone(),
            running: Vec::new(),
            conversation: None,
            temporary: settings.bounds.temp,
            in_memory: Vec::new(),
        }
    }

    /// Sets the current conversation and servers. Required before calls are checked.
    pub(crate) fn set_conversation(
        &mut self,
        conversation: ConversationId,
        running: Vec<ServerReport>,
    ) {
        (self.conversation, self.running) = (Some(conversation), running);
    }

    /// Returns true in [`Allowed`] if a permission covers the call. A call in doubt is never
    /// covered: a permission cannot tell if it was done.
    pub(crate) fn allow(&self, call: &PendingCall) -> Allowed {
        let Some(conversation) = self
            .conversation
            .filter(|_| call.kind() == PendingKind::Confirmation)
        else {
            return Allowed::No(None);
        };
        // Loaded for each call: a permission that was taken back in another terminal has no effect
        // any more.
        let grants = match file::load(&self.dirs) {
            Ok(grants) => grants,
            Err(error) => {
                let cause = error
                    .cause
                    .map(|cause| format!(" ({cause})"))
                    .unwrap_or_default();
                return Allowed::No(Some(format!("{}{cause}", error.message)));
            }
        };
        let named: Vec<&Grant> = grants
            .iter()
            .chain(&self.in_memory)
            .filter(|grant| grant.matches(call, conversation))
            .collect();
        let identity = ToolOrigin::determine(call, &self.running, &self.configured);
        // The name is matched first, so that a changed tool can be distinguished from one that was
        // never allowed.
        match named.iter().find(|grant| grant.is_for(&identity)) {
            Some(grant) => Allowed::Yes(format!(
                "allowed by policy: {} (adjutant policy rm {})",
                grant.describe(),
                grant.id
            )),
            None if named.is_empty() => Allowed::No(None),
            None => Allowed::No(Some(format!(
                "{} has changed since you allowed it (its server or its definition), so you are asked again",
                clip(&call.tool, 64)
            ))),
        }
    }

    /// Returns true if a permission can be given at the confirmation of this call.
    pub(crate) fn can_grant(&self, call: &PendingCall) -> bool {
        call.kind() == PendingKind::Confirmation
            && self.conversation.is_some()
            && ToolOrigin::determine(call, &self.running, &self.configured) != ToolOrigin::Unknown
    }

    /// Returns true if permissions can outlive the conversation.
    pub(crate) fn can_last(&self) -> bool {
        !self.temporary
    }

    /// Adds a permission for any arguments or exactly these. Returns a note for the user.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(crate) fn grant(
        &mut self,
        call: &PendingCall,
        exactly: bool,
        lasting: Lifetime,
    ) -> Result<String, CliError> {
        let foreign = match ToolOrigin::determine(call, &self.running, &self.configured) {
            ToolOrigin::Own => None,
            ToolOrigin::Foreign(tool) => Some(tool),
            ToolOrigin::Unknown => {
                return Err(CliError::failed("this tool cannot be allowed beforehand")
                    .because("its server is not running, or did not describe the tool"));
            }
        };
        let grant = Grant {
            id: new_id(),
            tool: call.tool.clone(),
            arguments: exactly.then(|| call.arguments.clone()),
            conversation: self
                .conversation
                .filter(|_| lasting == Lifetime::Conversation || self.temporary),
            foreign,
            granted_at: now(),
        };
        let note = format!("allowed: {}", grant.describe());
        // With `--temp` nothing may be written, so it ends with the process.
        if self.temporary {
            self.in_memory.push(grant);
            return Ok(note);
        }
        let note = format!("{note} (adjutant policy rm {})", grant.id);
        file::change(&self.dirs, |grants| grants.push(grant))?;
        Ok(note)
    }
}

/// Creates a short id.
pub(crate) fn new_id() -> String {
    let id = Uuid::now_v7().simple().to_string();
    // The random end of a UUID; its beginning is the time.
    id.get(24..).unwrap_or(&id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::waiting;
    use super::*;

    fn permissions(state: &std::path::Path, temporary: bool, conversation: u128) -> Permissions {
        let folder = |name: &str| state.join(name);
        let dirs = Dirs {
            config: folder("config"),
            data: folder("data"),
            cache: folder("cache"),
            state: folder("state"),
            os_user: "ana".to_owned(),
        };
        Permissions {
            dirs,
            configured: Vec::new(),
            running: Vec::new(),
            conversation: Some(ConversationId(Uuid::from_u128(conversation))),
            temporary,
            in_memory: Vec::new(),
        }
    }

    fn yes(allowed: &Allowed) -> bool {
        matches!(allowed, Allowed::Yes(_))
    }

    #[test]
    fn a_grant_survives_the_process_and_a_temporary_one_does_not() {
        let place = tempfile::tempdir().unwrap();
        let call = waiting("delete_task", "1", None);
        permissions(place.path(), false, 1)
            .grant(&call, true, Lifetime::Conversation)
            .unwrap();
        assert!(yes(&permissions(place.path(), false, 1).allow(&call)));
        assert!(!yes(&permissions(place.path(), false, 2).allow(&call)));
        assert!(!yes(&permissions(place.path(), false, 1).allow(&waiting(
            "delete_task",
            "2",
            None
        ))));

        let other = waiting("add_task", "1", None);
        let mut temporary = permissions(place.path(), true, 3);
        temporary.grant(&other, false, Lifetime::ForGood).unwrap();
        assert!(yes(&temporary.allow(&other)));
        assert!(!yes(&permissions(place.path(), false, 3).allow(&other)));
    }

    #[test]
    fn a_doubt_is_always_asked() {
        let place = tempfile::tempdir().unwrap();
        let mut call = waiting("delete_task", "1", None);
        let mut permissions = permissions(place.path(), false, 1);
        permissions.grant(&call, false, Lifetime::ForGood).unwrap();
        assert!(yes(&permissions.allow(&call)));
        call.doubt = Some(adjutant_core::Doubt {
            attempt: 1,
            since: jiff::Timestamp::UNIX_EPOCH,
        });
        assert!(!yes(&permissions.allow(&call)) && !permissions.can_grant(&call));
    }

    #[test]
    fn a_file_that_cannot_be_read_allows_nothing_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        let permissions = permissions(place.path(), false, 1);
        for broken in [
            "{",
            "[{\"tool\":\"delete_task\"}]",
            "[{\"id\":\"1\",\"tool\":\"x\",\"granted_at\":\"2026-01-01T00:00:00Z\",\"for_all\":true}]",
        ] {
            write(&permissions.dirs, broken);
            let Allowed::No(Some(note)) = permissions.allow(&waiting("delete_task", "1", None))
            else {
                panic!("{broken}");
            };
            assert!(note.contains("policy.json"), "{note}");
        }
    }

    fn write(dirs: &Dirs, text: &str) {
        crate::config::write_private(&dirs.state.join("policy.json"), text).unwrap();
    }
}

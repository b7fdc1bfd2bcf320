//! A vault in a temporary folder, and a clock that stands still until it is set.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use adjutant_core::{
    AgentName, CallId, CancellationToken, ConversationId, IdempotencyKey, ProgressListener,
    ToolContext, TurnId, UserId,
};
use adjutant_memory::{
    Cause, FactChange, InMemoryLedger, Memory, MemoryOptions, NewFact, RecallLimits, Vault,
    VaultError,
};
use jiff::{Span, Zoned};

pub(crate) struct Home {
    pub(crate) memory: Memory,
    pub(crate) ledger: Arc<InMemoryLedger>,
    pub(crate) time: Arc<Mutex<Zoned>>,
    pub(crate) folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with(MemoryOptions::default())
    }

    pub(crate) fn with(options: MemoryOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("vault")).unwrap();
        let time: Zoned = "2025-12-10T14:05:00[Europe/Berlin]".parse().unwrap();
        let time = Arc::new(Mutex::new(time));
        let ledger = Arc::new(InMemoryLedger::new());
        let memory = memory(folder.path(), options, &ledger, &time);
        Self {
            memory,
            ledger,
            time,
            folder,
        }
    }

    /// The same vault, opened anew with an empty history: a restart without a database.
    pub(crate) fn forgetful(&self) -> Memory {
        memory(
            self.folder.path(),
            MemoryOptions::default(),
            &Arc::new(InMemoryLedger::new()),
            &self.time,
        )
    }

    /// The same vault with other settings.
    pub(crate) fn open(&self, options: MemoryOptions) -> Result<Memory, VaultError> {
        try_memory(self.folder.path(), options, &self.ledger, &self.time)
    }

    /// The facts in a model's instruction.
    pub(crate) async fn instruction(&self) -> String {
        self.memory.facts().instruction(&tokens).await.unwrap().text
    }

    /// The facts that are recalled for a message at the beginning of a conversation.
    pub(crate) async fn recalled(&self, message: &str) -> Vec<String> {
        let recalled = self
            .memory
            .recall_for_message(message, &[], RecallLimits::default(), &tokens)
            .await
            .unwrap();
        recalled.into_iter().map(|fact| fact.text).collect()
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.vault().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.vault().join(path)).unwrap()
    }

    pub(crate) fn facts(&self) -> String {
        self.read("memory/facts.md")
    }

    pub(crate) fn later(&self, span: Span) {
        let mut time = self.time.lock().unwrap();
        *time = time.checked_add(span).unwrap();
    }

    pub(crate) async fn remember(&self, fact: &str) -> String {
        self.memory
            .facts()
            .add(fact, false, &Cause::person())
            .await
            .unwrap()
            .message()
    }

    /// Remembers what the person said as a correction.
    pub(crate) async fn correct(&self, fact: &str) -> String {
        self.correct_because(fact, &Cause::person()).await.message()
    }

    pub(crate) async fn correct_because(&self, words: &str, cause: &Cause) -> FactChange {
        let new = NewFact {
            words,
            said: "Correction!",
            ..NewFact::default()
        };
        self.memory.facts().remember(&new, cause).await.unwrap()
    }

    pub(crate) async fn contents(&self) -> Vec<String> {
        self.memory
            .facts()
            .list()
            .await
            .unwrap()
            .into_iter()
            .map(|fact| fact.content)
            .collect()
    }
}

fn memory(
    folder: &Path,
    options: MemoryOptions,
    ledger: &Arc<InMemoryLedger>,
    time: &Arc<Mutex<Zoned>>,
) -> Memory {
    try_memory(folder, options, ledger, time).unwrap()
}

fn try_memory(
    folder: &Path,
    options: MemoryOptions,
    ledger: &Arc<InMemoryLedger>,
    time: &Arc<Mutex<Zoned>>,
) -> Result<Memory, VaultError> {
    let vault = Vault::open(folder.join("vault"))?.with_work_folder(folder.join("work"));
    let time = time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    Memory::new(vault, UserId::local(), options, ledger.clone(), clock)
}

/// A context of this user; every `call` number is another call.
pub(crate) fn context(user: &str, call: u32) -> ToolContext {
    let (conversation, turn) = (ConversationId(uuid::Uuid::nil()), TurnId(uuid::Uuid::nil()));
    let call = CallId::new(format!("call_{call}")).unwrap();
    ToolContext {
        agent: AgentName::adjutant(),
        user: UserId::new(user).unwrap(),
        conversation,
        turn,
        key: IdempotencyKey::for_call(conversation, turn, &call),
        call,
        message: "".into(),
        from_others: false,
        cancelled: CancellationToken::new(),
        trace: None,
        progress: ProgressListener::default(),
    }
}

/// All files below a folder with their bytes, hidden ones too.
pub(crate) fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.insert(
                    entry.path().strip_prefix(folder).unwrap().to_owned(),
                    fs::read(entry.path()).unwrap(),
                );
            }
        }
    }
    found
}

/// Small, seeded, the same on every machine. The seed is not 0.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Counts four characters as a token.
pub(crate) fn tokens(text: &str) -> u32 {
    adjutant_core::turn::estimate_tokens(text)
}

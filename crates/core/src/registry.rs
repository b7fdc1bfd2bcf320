//! The tools of an agent: found by name, described to models, validated once.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::id::UserId;
use crate::repair::fitting;
use crate::schema::Schema;
use crate::tool::{Arguments, InvalidTool, Reference, Tool, ToolDefinition, ToolError, ToolName};
use crate::tool_set::ToolSet;

/// Names that no tool can have: control functions of the turn, and actions of constrained tool
/// calling.
pub const RESERVED: &[&str] = &["ask_user", "decline", "reply", "unclear"];

/// The tools of an agent, in the order of registration.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<Entry>,
    /// Cached definitions of all tools.
    all: OnceLock<ToolSet>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    schema: Arc<Schema>,
}

impl std::fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl ToolRegistry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a tool and compiles its schema.
    ///
    /// # Errors
    ///
    /// [`InvalidTool`] for a name that providers reject, that is taken or reserved, for a blank
    /// description, and for parameters that are not an object schema.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), InvalidTool> {
        let definition = tool.definition();
        // Again: a definition may have a name of `ToolName::foreign`, which is more lenient.
        let name = ToolName::new(definition.name.as_str())?.to_string();
        if definition.description.trim().is_empty() {
            return Err(InvalidTool::Description { name });
        }
        // A call of it would be taken for one of the turn's own functions.
        if RESERVED.contains(&name.as_str()) {
            return Err(InvalidTool::Reserved { name });
        }
        if self.has(&name) {
            return Err(InvalidTool::Duplicate { name });
        }
        // Providers take nothing else for the parameters of a tool.
        if definition.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(InvalidTool::Schema {
                name,
                reason: "its type must be \"object\"".to_owned(),
            });
        }
        let schema =
            Schema::compile(&definition.parameters).map_err(|error| InvalidTool::Schema {
                name,
                reason: error.to_string(),
            })?;
        self.tools.push(Entry {
            tool,
            schema: Arc::new(schema),
        });
        self.all = OnceLock::new();
        Ok(())
    }

    /// Returns the tool with that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// Returns true if a tool has that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Returns all names in order of registration.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.tools.iter().map(|entry| &entry.tool.definition().name)
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns true if there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the definitions in order, of the tools in `names` or of all.
    #[must_use]
    pub fn definitions(&self, names: Option<&[&str]>) -> Vec<ToolDefinition> {
        self.tools
            .iter()
            .map(|entry| entry.tool.definition())
            .filter(|definition| {
                names.is_none_or(|names| names.contains(&definition.name.as_str()))
            })
            .cloned()
            .collect()
    }

    /// Returns the definitions of all tools. Every call returns the same set until another tool is
    /// registered.
    #[must_use]
    pub fn tool_set(&self) -> ToolSet {
        self.all
            .get_or_init(|| self.definitions(None).into())
            .clone()
    }

    /// Returns a Markdown list of the tools, for an instruction.
    #[must_use]
    pub fn descriptions(&self) -> String {
        self.tools
            .iter()
            .map(|entry| entry.tool.definition())
            .map(|definition| format!("- `{}`: {}\n", definition.name, definition.description))
            .collect()
    }

    /// Validates arguments against the schema of a tool.
    ///
    /// # Errors
    ///
    /// The paths that do not fit; see [`Schema::check`].
    pub fn check_arguments(&self, name: &str, arguments: &Arguments) -> Result<(), String> {
        match self.entry(name) {
            Some(entry) => entry.schema.check(&Value::Object(arguments.clone())),
            None => Err(self.unknown(name)),
        }
    }

    /// Returns arguments as they fit the schema of a tool, and a note for the model if they were
    /// corrected for it.
    ///
    /// # Errors
    ///
    /// The paths that do not fit, if not exactly one correction does; see [`Schema::check`].
    pub(crate) fn fitting_arguments(
        &self,
        name: &str,
        arguments: Arguments,
    ) -> Result<(Arguments, Option<String>), String> {
        match self.entry(name) {
            Some(entry) => fitting(&entry.schema, entry.tool.definition(), arguments),
            None => Err(self.unknown(name)),
        }
    }

    /// Returns arguments without optional ones that are empty strings, which models write for
    /// "none". Arguments of tools that others run stay unchanged.
    #[must_use]
    pub fn without_blanks(&self, name: &str, arguments: &Arguments) -> Arguments {
        let mut arguments = arguments.clone();
        // Tools of MCP servers are called `server__tool`, and what an empty text means to them is
        // not known.
        let Some(entry) = self.entry(name).filter(|_| !name.contains("__")) else {
            return arguments;
        };
        let definition = entry.tool.definition();
        let is_required = |name: &str| definition.required().any(|required| required == name);
        let is_text = |name: &str| definition.parameters["properties"][name]["type"] == "string";
        arguments.retain(|name, value| {
            !(value.as_str().is_some_and(|text| text.trim().is_empty())
                && is_text(name)
                && !is_required(name))
        });
        arguments
    }

    /// Returns an error for a model that called an unknown tool, with the nearest names.
    #[must_use]
    pub fn unknown(&self, name: &str) -> String {
        self.unknown_beside(name, &[])
    }

    /// Returns the error of [`ToolRegistry::unknown`] where `others` are offered beside the registry's
    /// tools.
    #[must_use]
    pub fn unknown_beside(&self, name: &str, others: &[&str]) -> String {
        let names = self.names().map(ToolName::as_str);
        unknown_among(name, names.chain(others.iter().copied()))
    }

    /// Returns the user's items that reference arguments of any tool may name, each once.
    ///
    /// # Errors
    ///
    /// [`ToolError`] of the first tool that cannot list them.
    pub async fn references(&self, user: &UserId) -> Result<Vec<Reference>, ToolError> {
        let mut all: Vec<Reference> = Vec::new();
        // One tool after another: tools of one pack list the same entities, which count once.
        for entry in &self.tools {
            if entry.tool.definition().references.is_empty() {
                continue;
            }
            for reference in entry.tool.references(user).await? {
                if !all
                    .iter()
                    .any(|known| known.kind == reference.kind && known.id == reference.id)
                {
                    all.push(reference);
                }
            }
        }
        Ok(all)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools
            .iter()
            .find(|entry| entry.tool.definition().name.as_str() == name)
    }
}

/// Maximum number of names in an error about an unknown tool.
const NAMES_MAX: usize = 5;

/// Returns an error for a model that called a tool that is not among `names`, with the nearest of
/// them.
pub(crate) fn unknown_among<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let list = if names.len() <= NAMES_MAX {
        names.join(", ")
    } else {
        let word = name.to_lowercase();
        let mut by_distance = names.clone();
        by_distance.sort_by_cached_key(|candidate| distance(&word, candidate));
        by_distance.truncate(NAMES_MAX);
        format!(
            "{} (the nearest of {})",
            by_distance.join(", "),
            names.len()
        )
    };
    match nearest(name, names.iter().copied()) {
        Some(near) => {
            format!("there is no tool {name:?}; did you mean {near:?}? Tools: {list}")
        }
        None if names.is_empty() => format!("there is no tool {name:?}; there are no tools"),
        None => format!("there is no tool {name:?}. Tools: {list}"),
    }
}

/// Returns the nearest of `known` to `word`, if it may be meant: at most a third of the letters
/// differ, or one contains the other.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.chars().count().max(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns how far a name is from a word in lower case: 1 if one contains the other, else their
/// edit distance.
fn distance(word: &str, candidate: &str) -> usize {
    let candidate = candidate.to_lowercase();
    // One or two letters are part of nearly every name.
    let inside = word.len() > 2 && (candidate.contains(word) || word.contains(&candidate));
    if inside {
        1
    } else {
        edit_distance(word, &candidate)
    }
}

/// Returns the number of insertions, deletions, substitutions and swaps of neighbouring characters
/// that turn one text into the other (the optimal string alignment distance).
pub fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

//! The tools of a request, shared between requests with their encoded forms.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};

use crate::tool::ToolDefinition;

/// An ordered set of tool definitions. Clones share one set and its cached encodings.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<Set>);

#[derive(Default)]
struct Set {
    tools: Vec<ToolDefinition>,
    /// Cached JSON text of each tool's parameters.
    parameters: OnceLock<Vec<String>>,
    /// Cached set of the same tools followed by the control functions of a turn.
    with_controls: OnceLock<ToolSet>,
}

impl ToolSet {
    /// Returns a new set with more tools appended.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.iter().cloned().chain(more).collect()
    }

    /// Returns true if both are clones of one set, without comparing tools.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the JSON text of each tool's parameters, in order. Computed once.
    pub(crate) fn parameter_texts(&self) -> &[String] {
        self.0.parameters.get_or_init(|| {
            self.iter()
                .map(|tool| tool.parameters.to_string())
                .collect()
        })
    }

    /// Returns the set followed by `controls`. Computed once: later calls return the same set.
    pub(crate) fn with_controls(&self, controls: impl FnOnce() -> Vec<ToolDefinition>) -> &Self {
        self.0.with_controls.get_or_init(|| self.with(controls()))
    }
}

impl Deref for ToolSet {
    type Target = [ToolDefinition];

    fn deref(&self) -> &Self::Target {
        &self.0.tools
    }
}

impl From<Vec<ToolDefinition>> for ToolSet {
    fn from(tools: Vec<ToolDefinition>) -> Self {
        Self(Arc::new(Set {
            tools,
            ..Set::default()
        }))
    }
}

impl FromIterator<ToolDefinition> for ToolSet {
    fn from_iter<I: IntoIterator<Item = ToolDefinition>>(tools: I) -> Self {
        tools.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a ToolSet {
    type Item = &'a ToolDefinition;
    type IntoIter = std::slice::Iter<'a, ToolDefinition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for ToolSet {
    fn eq(&self, other: &Self) -> bool {
        // Nearly all comparisons are of clones.
        self.is_same(other) || **self == **other
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for ToolSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition::new(name, "Does it.", json!({ "type": "object" })).unwrap()
    }

    #[test]
    fn a_clone_is_the_same_set_and_an_equal_one_is_not() {
        let (one, other) = (
            ToolSet::from(vec![tool("a")]),
            ToolSet::from(vec![tool("a")]),
        );
        assert!(one.is_same(&one.clone()) && !one.is_same(&other));
        assert_eq!(one, other);
        assert_ne!(one, one.with([tool("b")]));
        assert_eq!(format!("{one:?}"), format!("{:?}", [tool("a")]));
    }

    #[test]
    fn what_every_request_needs_is_made_once() {
        let set = ToolSet::from(vec![tool("a")]);
        let with = set.with_controls(|| vec![tool("b")]).clone();
        let again = set.clone().with_controls(|| panic!("made twice")).clone();
        assert!(with.is_same(&again));
        assert_eq!(
            with.iter()
                .map(|tool| tool.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(
            set.parameter_texts().as_ptr(),
            set.clone().parameter_texts().as_ptr()
        );
        assert_eq!(set.parameter_texts(), [r#"{"type":"object"}"#]);
    }
}

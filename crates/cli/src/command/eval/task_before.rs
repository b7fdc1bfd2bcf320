//! A task before the turn of a case.

use std::fmt;

use adjutant_tools::TaskDescription;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A task before the turn. A plain string in JSON is the description of an open one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskBefore {
    pub(crate) description: TaskDescription,
    pub(crate) completed: bool,
}

impl<'de> Deserialize<'de> for TaskBefore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            description: TaskDescription,
            completed: bool,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = TaskBefore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a description or {\"description\": ..., \"completed\": ...}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TaskBefore, E> {
                Ok(TaskBefore {
                    description: TaskDescription::new(text).map_err(E::custom)?,
                    completed: false,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TaskBefore, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TaskBefore {
                    description: fields.description,
                    completed: fields.completed,
                })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Returns the state of a task as reports name it.
pub(crate) fn open_or_done(completed: bool) -> &'static str {
    if completed { "done" } else { "open" }
}

//! Deserialization of JSON objects that refuses arrays.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Deserializes `T` from a JSON object only. The `Deserialize` that serde derives for a struct also
/// accepts an array of its fields, which the OpenAPI document does not allow.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(OfMap(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Named {
        name: String,
    }

    #[test]
    fn an_object_is_taken_and_an_array_of_its_fields_is_not() {
        let Object(named) = serde_json::from_str::<Object<Named>>(r#"{"name": "a"}"#).unwrap();
        assert_eq!(
            named,
            Named {
                name: "a".to_owned()
            }
        );
        for wrong in ["[]", r#"["a"]"#, "null", "1", r#""a""#, r#"{"other": 1}"#] {
            assert!(
                serde_json::from_str::<Object<Named>>(wrong).is_err(),
                "{wrong}"
            );
        }
        let error = serde_json::from_str::<Object<Named>>("[]")
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected a JSON object"), "{error}");
    }
}

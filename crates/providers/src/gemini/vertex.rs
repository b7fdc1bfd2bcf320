//! Addresses of models on Vertex AI. Pure.
//!
//! The project is either in the base URL (`https://HOST/v1/projects/PROJECT/locations/LOCATION`) or
//! in the model's full name as the vendor's reference has it
//! (`projects/PROJECT/locations/LOCATION/publishers/google/models/M`). With neither it is express
//! mode: the global host and an API key instead of an access token. Source: the vendor's references
//! of `generateContent` and of express mode, and the hosts in its published client (checked
//! 2026-11-22).

use url::Url;

/// The host of express mode and of the location `global`.
pub(super) const GLOBAL: &str = "https://aiplatform.googleapis.com";

const VERSION: &str = "v1";

/// The address of a model, before the method's name is appended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModelAddress {
    pub(super) base: Url,
    /// Inserted between base and path unless the base ends in a version; empty if the base has one
    /// in the middle.
    pub(super) version: &'static str,
    pub(super) path: String,
    /// True if the model is used in a project, which takes an access token instead of an API key.
    pub(super) in_project: bool,
}

impl ModelAddress {
    /// Returns the address of a model. `base` is the user's base URL, or [`GLOBAL`].
    pub(super) fn new(model: &str, base: Url) -> Self {
        let base_in_project = base.path().contains("/projects/");
        let full = model.starts_with("projects/");
        Self {
            version: if base_in_project { "" } else { VERSION },
            path: if full || model.starts_with("publishers/") {
                model.to_owned()
            } else {
                format!("publishers/google/models/{model}")
            },
            in_project: base_in_project || full,
            base: match location(model).and_then(|location| host(location).parse().ok()) {
                Some(host) if base.as_str().trim_end_matches('/') == GLOBAL => host,
                _ => base,
            },
        }
    }
}

/// Returns the location in a model's name. It becomes a part of the host that the key is sent to,
/// so it is restricted to the characters of locations: a model's name must not select another host.
fn location(model: &str) -> Option<&str> {
    let location = model
        .strip_prefix("projects/")?
        .split_once("/locations/")?
        .1
        .split('/')
        .next()?;
    let is_location = location
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_location && !location.is_empty()).then_some(location)
}

fn host(location: &str) -> String {
    match location {
        "global" => GLOBAL.to_owned(),
        // Locations that span several regions.
        "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        region => format!("https://{region}-aiplatform.googleapis.com"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_in_a_project_or_in_express_mode() {
        for (model, base, expected) in [
            (
                "gemini-x",
                GLOBAL,
                "https://aiplatform.googleapis.com/ v1 publishers/google/models/gemini-x key",
            ),
            (
                "publishers/google/models/gemini-x",
                GLOBAL,
                "https://aiplatform.googleapis.com/ v1 publishers/google/models/gemini-x key",
            ),
            (
                "gemini-x",
                "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/",
                "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/  publishers/google/models/gemini-x token",
            ),
            (
                "projects/p/locations/us-central1/publishers/google/models/gemini-x",
                GLOBAL,
                "https://us-central1-aiplatform.googleapis.com/ v1 projects/p/locations/us-central1/publishers/google/models/gemini-x token",
            ),
            (
                "projects/p/locations/global/publishers/google/models/gemini-x",
                GLOBAL,
                "https://aiplatform.googleapis.com/ v1 projects/p/locations/global/publishers/google/models/gemini-x token",
            ),
            (
                "projects/p/locations/eu/endpoints/7",
                GLOBAL,
                "https://aiplatform.eu.rep.googleapis.com/ v1 projects/p/locations/eu/endpoints/7 token",
            ),
            (
                "projects/p/locations/eu/endpoints/7",
                "http://localhost:1/v1beta1",
                "http://localhost:1/v1beta1 v1 projects/p/locations/eu/endpoints/7 token",
            ),
        ] {
            let ModelAddress {
                base,
                version,
                path,
                in_project,
            } = ModelAddress::new(model, base.parse().unwrap());
            let key = if in_project { "token" } else { "key" };
            assert_eq!(format!("{base} {version} {path} {key}"), expected);
        }
    }

    #[test]
    fn no_name_of_a_model_leads_to_another_host() {
        for location in [
            "evil.example?",
            "evil.example#",
            "evil.example:443#",
            "evil.example\\",
            "user@evil.example?",
            "127.0.0.1?",
            "",
            "evil.example%2F",
            "us-central1.evil.example#",
            "US",
            "\u{e9}",
            "\t",
            "evil.example\n",
            "[::1]?",
        ] {
            let model =
                format!("projects/p/locations/{location}/publishers/google/models/gemini-x");
            let ModelAddress { base, .. } = ModelAddress::new(&model, GLOBAL.parse().unwrap());
            assert_eq!(
                base.host_str(),
                Some("aiplatform.googleapis.com"),
                "{location:?}"
            );
        }
    }
}

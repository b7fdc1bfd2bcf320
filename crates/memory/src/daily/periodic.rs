//! Settings of the community plugin Periodic Notes, which many people use in place of Obsidian's
//! own daily notes.
//!
//! Versions 0.x have `daily: { enabled, format, folder, template }`; the beta of 1.0 has
//! `calendarSets`, each with `day: { enabled, format, folder, templatePath }`, and the id of the
//! set in use. Source: github.com/liamcain/obsidian-periodic-notes, `src/settings`, `src/types.ts`
//! and `src/calendarSetManager.ts`. Where the plugin's daily notes are enabled they precede
//! Obsidian's own, as in the plugin's library for other plugins (obsidian-daily-notes-interface,
//! `src/settings.ts`).

use serde_json::{Map, Value};

use super::settings::DailySettings;
use crate::vault::Vault;

const PLUGIN: &str = "periodic-notes";
const DATA: &str = "plugins/periodic-notes/data.json";

/// The state of the plugin in a vault.
#[derive(Debug, PartialEq)]
pub(super) enum PeriodicNotes {
    /// The plugin is not installed, not enabled, or makes no daily notes.
    Off,
    /// The plugin makes the daily notes.
    On(DailySettings),
    /// The plugin is enabled, and its settings cannot be read.
    Damaged,
}

pub(super) fn load(vault: &Vault) -> PeriodicNotes {
    let plugins = vault.obsidian_setting("community-plugins.json");
    if !plugins.is_some_and(|plugins| is_enabled(&plugins)) {
        return PeriodicNotes::Off;
    }
    match vault.obsidian_setting(DATA) {
        Some(text) => parse_settings(&text),
        None if vault.has_obsidian_setting(DATA) => PeriodicNotes::Damaged,
        // No setting was saved yet: daily notes are off by default.
        None => PeriodicNotes::Off,
    }
}

fn is_enabled(plugins: &str) -> bool {
    let plugins: Vec<Value> =
        serde_json::from_str(plugins.trim_start_matches('\u{FEFF}')).unwrap_or_default();
    plugins.iter().any(|plugin| plugin == PLUGIN)
}

fn parse_settings(text: &str) -> PeriodicNotes {
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return PeriodicNotes::Off;
    }
    let Ok(settings) = serde_json::from_str::<Map<String, Value>>(text) else {
        return PeriodicNotes::Damaged;
    };
    let sets = settings
        .get("calendarSets")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let active = settings.get("activeCalendarSet");
    let set = sets
        .iter()
        .find(|set| active.is_some() && set.get("id") == active)
        .or_else(|| sets.first());
    // Version 1.0 has sets of calendars; 0.x has its settings at the top, under other names.
    let (daily, template) = match set {
        Some(set) => (set.get("day"), "templatePath"),
        None => (settings.get("daily"), "template"),
    };
    match daily.and_then(Value::as_object) {
        Some(daily) if daily.get("enabled") == Some(&Value::Bool(true)) => {
            PeriodicNotes::On(DailySettings::from_keys(daily, template))
        }
        _ => PeriodicNotes::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &str, Option<&str>)>) {
        let on = expected.map(|(folder, format, template)| DailySettings {
            folder: folder.to_owned(),
            format: format.to_owned(),
            template: template.map(str::to_owned),
        });
        assert_eq!(
            parse_settings(text),
            on.map_or(PeriodicNotes::Off, PeriodicNotes::On),
            "{text}"
        );
    }

    #[test]
    fn both_versions_are_read() {
        check(
            r#"{"showGettingStartedBanner":false,"daily":{"format":"YYYY/MM-DD","folder":" Journal ","template":"T/Day","enabled":true}}"#,
            Some(("Journal", "YYYY/MM-DD", Some("T/Day"))),
        );
        check(
            r#"{"daily":{"format":"","folder":"","template":"","enabled":true}}"#,
            Some(("", "YYYY-MM-DD", None)),
        );
        check(
            r#"{"daily":{"format":"DD","enabled":false},"weekly":{"enabled":true}}"#,
            None,
        );
        check(
            r#"{"activeCalendarSet":"work","daily":{"enabled":true,"format":"old"},"calendarSets":[
                {"id":"home","day":{"enabled":true,"format":"DD","folder":"Home"}},
                {"id":"work","ctime":"2022","day":{"enabled":true,"format":"","folder":"Work","templatePath":"T.md"}}]}"#,
            Some(("Work", "YYYY-MM-DD", Some("T.md"))),
        );
        check(
            r#"{"calendarSets":[{"id":"a","day":{"enabled":true,"folder":"A"}}]}"#,
            Some(("A", "YYYY-MM-DD", None)),
        );
        check(
            r#"{"calendarSets":[{"id":"a","week":{"enabled":true}}],"daily":{"enabled":true}}"#,
            None,
        );
        // As the beta moves the settings of 0.x into a first set.
        check(
            r#"{"calendarSets":[],"daily":{"enabled":true,"folder":"D"}}"#,
            Some(("D", "YYYY-MM-DD", None)),
        );
    }

    #[test]
    fn what_cannot_be_read_is_damaged_and_odd_kinds_are_off() {
        for text in ["{", "[]", "7", "\"x\""] {
            assert_eq!(parse_settings(text), PeriodicNotes::Damaged, "{text}");
        }
        for text in [
            "",
            "{}",
            r#"{"daily":7}"#,
            r#"{"daily":{"enabled":"true"}}"#,
            r#"{"calendarSets":{}}"#,
        ] {
            assert_eq!(parse_settings(text), PeriodicNotes::Off, "{text}");
        }
        assert!(is_enabled(r#"["calendar","periodic-notes"]"#));
        for text in [
            "",
            "{}",
            "[",
            r#"["calendar"]"#,
            r#"{"periodic-notes":true}"#,
        ] {
            assert!(!is_enabled(text), "{text}");
        }
    }
}

//! Settings of the community plugin Periodic Notes, which many use in the place of Obsidian's own
//! daily notes.
//!
//! Versions 0.x have `daily: { enabled, format, folder, template }`; the beta of 1.0 has
//! `calendarSets`, each with `day: { enabled, format, folder, templatePath }`, and the id of the
//! set in use. Source: github.com/liamcain/ obsidian-periodic-notes, `src/settings`, `src/types.ts`
//! and `src/calendarSetManager.ts`; that the plugin goes before the core's settings where its daily
//! notes are on is what its library for other plugins does (obsidian-daily-notes-interface,
//! `src/settings.ts`).

use serde_json::{Map, Value};

use super::settings::DailySettings;
use crate::vault::Vault;

const PLUGIN: &str = "periodic-notes";
const DATA: &str = "plugins/periodic-notes/data.json";

/// What the plugin says.
#[derive(Debug, PartialEq)]
pub(super) enum Periodic {
    /// It is not installed, not on, or makes no daily notes.
    Off,
    /// It makes them.
    On(DailySettings),
    /// It is on, and its settings cannot be read.
    Damaged,
}

pub(super) fn read(vault: &Vault) -> Periodic {
    let plugins = vault.obsidian_setting("community-plugins.json");
    if !plugins.is_some_and(|plugins| is_on(&plugins)) {
        return Periodic::Off;
    }
    match vault.obsidian_setting(DATA) {
        Some(text) => of_json(&text),
        None if vault.has_obsidian_setting(DATA) => Periodic::Damaged,
        // Nothing was set yet: its daily notes are off unless somebody turns them on.
        None => Periodic::Off,
    }
}

fn is_on(plugins: &str) -> bool {
    let plugins: Vec<Value> =
        serde_json::from_str(plugins.trim_start_matches('\u{FEFF}')).unwrap_or_default();
    plugins.iter().any(|plugin| plugin == PLUGIN)
}

fn of_json(text: &str) -> Periodic {
    let text = text.trim_start_matches('\u{FEFF}');
    if text.trim().is_empty() {
        return Periodic::Off;
    }
    let Ok(settings) = serde_json::from_str::<Map<String, Value>>(text) else {
        return Periodic::Damaged;
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
    let (daily, template) = match set {
        Some(set) => (set.get("day"), "templatePath"),
        None => (settings.get("daily"), "template"),
    };
    match daily.and_then(Value::as_object) {
        Some(daily) if daily.get("enabled") == Some(&Value::Bool(true)) => {
            Periodic::On(DailySettings::of_keys(daily, template))
        }
        _ => Periodic::Off,
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
            of_json(text),
            on.map_or(Periodic::Off, Periodic::On),
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
            assert_eq!(of_json(text), Periodic::Damaged, "{text}");
        }
        for text in [
            "",
            "{}",
            r#"{"daily":7}"#,
            r#"{"daily":{"enabled":"true"}}"#,
            r#"{"calendarSets":{}}"#,
        ] {
            assert_eq!(of_json(text), Periodic::Off, "{text}");
        }
        assert!(is_on(r#"["calendar","periodic-notes"]"#));
        for text in [
            "",
            "{}",
            "[",
            r#"["calendar"]"#,
            r#"{"periodic-notes":true}"#,
        ] {
            assert!(!is_on(text), "{text}");
        }
    }
}

//! Formats, compared with what moment.js itself writes (`fixtures/moment.json` says how it was
//! made).

use adjutant_memory::{LOCALES, Locale, format_moment, format_moment_in};
use jiff::Span;
use jiff::civil::DateTime;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

#[test]
fn every_format_reads_as_moment_js_writes_it() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/moment.json")).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert!(cases.len() > 400, "the fixture is cut");
    let mut wrong = Vec::new();
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let time: DateTime = text("time").parse().unwrap();
        let time = time.in_tz(text("zone")).unwrap();
        let ours = format_moment(text("format"), &time);
        if ours != text("text") {
            wrong.push(format!(
                "{:?} of {time}: {ours:?}, moment.js: {:?}",
                text("format"),
                text("text")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_language_reads_as_moment_js_writes_it() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/locales.json")).unwrap();
    let rows = fixture.as_array().unwrap();
    assert_eq!(rows.len() % LOCALES.len(), 0, "the fixture is cut");
    // As `locales/generate.mjs` has them: every day of three years, at a time that goes round the
    // clock.
    let first: DateTime = "2024-01-01T00:00".parse().unwrap();
    let days: Vec<_> = (0..1096_i64)
        .map(|day| {
            (first + Span::new().days(day).minutes(day * 37 % 1440))
                .in_tz("UTC")
                .unwrap()
        })
        .collect();
    let mut wrong = Vec::new();
    for row in rows {
        let text = |column: usize| row[column].as_str().unwrap();
        let (locale, format) = (text(0).parse::<Locale>().unwrap(), text(1));
        let texts: Vec<String> = days
            .iter()
            .map(|time| format_moment_in(format, time, locale))
            .collect();
        let digest: String = Sha256::digest(texts.join("\n"))
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if digest != text(3) {
            wrong.push(format!(
                "{} {format:?}: {:?}, moment.js: {:?}",
                text(0),
                texts[1056],
                text(2)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

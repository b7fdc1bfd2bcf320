//! Formats, compared with what moment.js itself writes (`fixtures/moment.json` says how it was made).

use adjutant_memory::format_moment;
use jiff::civil::DateTime;
use serde_json::Value;

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
            wrong.push(format!("{:?} of {time}: {ours:?}, moment.js: {:?}", text("format"), text("text")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

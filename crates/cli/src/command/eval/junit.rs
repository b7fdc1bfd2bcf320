//! The results as JUnit XML, which systems of continuous integration show.

use std::fmt::Write as _;

use super::report::CaseReport;

/// Formats the runs as a suite for each model, in which each run of a case is a test.
pub(crate) fn to_xml(reports: &[CaseReport]) -> String {
    let mut models: Vec<&str> = Vec::new();
    for report in reports {
        if !models.contains(&report.model.as_str()) {
            models.push(&report.model);
        }
    }
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"adjutant eval\" {}>\n",
        totals(&reports.iter().collect::<Vec<_>>())
    );
    for model in models {
        let of_model: Vec<&CaseReport> = reports
            .iter()
            .filter(|report| report.model == model)
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{}\" {}>",
            escaped(model),
            totals(&of_model)
        );
        for report in of_model {
            push_test(&mut xml, report);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn totals(reports: &[&CaseReport]) -> String {
    let seconds: f64 = reports.iter().map(|report| report.seconds).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\"",
        reports.len(),
        reports.iter().filter(|report| !report.passed).count()
    )
}

fn push_test(xml: &mut String, report: &CaseReport) {
    let run = match report.run {
        1 => String::new(),
        run => format!(" (run {run})"),
    };
    let test = format!(
        "    <testcase classname=\"{}\" name=\"{}{run}\" time=\"{:.3}\"",
        escaped(&report.file),
        escaped(&report.id),
        report.seconds
    );
    // Writing to a String cannot fail.
    let _ = if report.passed {
        writeln!(xml, "{test}/>")
    } else {
        writeln!(
            xml,
            "{test}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>",
            escaped(report.verdict.label()),
            escaped(&report.reasons.join("; ")),
            escaped(&format!("reply: {}", report.reply))
        )
    };
}

/// Escapes a text for content and attributes. Characters that XML 1.0 cannot have, not even as
/// references (section 2.2), are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // Parsers turn them into spaces in attributes unless they are references.
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::super::verdict::Verdict;
    use super::*;

    #[test]
    fn every_run_is_a_test_of_its_models_suite() {
        let mut failed = report(false, 0.25);
        failed.id = "a<\"b\">".to_owned();
        failed.run = 2;
        failed.verdict = Verdict::WrongChange;
        failed.reasons = vec!["the reply lacks \"x\" & 'y'".to_owned()];
        failed.reply = "1\n\u{1b}[31m\u{ffff}2 ]]>".to_owned();
        let mut other = report(true, 0.5);
        other.model = "m&n".to_owned();
        assert_eq!(
            to_xml(&[report(true, 1.0), failed, other]),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="adjutant eval" tests="3" failures="1" errors="0" skipped="0" time="1.750">
  <testsuite name="scripted/x" tests="2" failures="1" errors="0" skipped="0" time="1.250">
    <testcase classname="-" name="a" time="1.000"/>
    <testcase classname="-" name="a&lt;&quot;b&quot;&gt; (run 2)" time="0.250">
      <failure type="wrong change" message="the reply lacks &quot;x&quot; &amp; &apos;y&apos;">reply: 1&#10;�[31m�2 ]]&gt;</failure>
    </testcase>
  </testsuite>
  <testsuite name="m&amp;n" tests="1" failures="0" errors="0" skipped="0" time="0.500">
    <testcase classname="-" name="a" time="0.500"/>
  </testsuite>
</testsuites>
"#
        );
    }
}

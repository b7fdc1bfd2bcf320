//! Descriptions from doc comments.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of doc comments: lines of a paragraph are joined, paragraphs separated by a
/// blank line. `None`: there is no text.
pub(crate) fn description(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let lines = lines
        .iter()
        // A block comment is one attribute with several lines.
        .flat_map(|text| text.split('\n'))
        .map(str::trim);
    let mut paragraphs: Vec<String> = vec![String::new()];
    for line in lines {
        match paragraphs.last_mut() {
            Some(last) if !line.is_empty() => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
            Some(_) | None => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// Returns the text of one `#[doc = "..."]`. Other attributes, such as `#[doc(hidden)]`, have none.
fn line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        Meta::NameValue(_) | Meta::Path(_) | Meta::List(_) => None,
    }
}

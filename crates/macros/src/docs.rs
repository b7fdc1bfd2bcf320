//! Doc comments as descriptions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of doc comments: lines of a paragraph joined, paragraphs apart. `None` if there is
/// nothing in it.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let lines = lines
        .iter()
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

/// The text of one `#[doc = "..."]`. Others, such as `#[doc(hidden)]`, have none.
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

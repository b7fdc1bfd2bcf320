use super::*;

/// Fragments, complete and broken, that test documents are made of.
const FRAGMENTS: &[&str] = &[
    "# Heading\n",
    "Setext\n===\n",
    "A line of words, **bold** and `code`.\n",
    "A second line\n",
    "\n",
    "\n\n",
    "- item\n",
    "- item\n  that goes on\n",
    "  - inner\n",
    "1. first\n",
    "2) other\n",
    "- [x] done\n",
    "> quoted\n",
    "> - list in quote\n>\n> after\n",
    "lazy\n",
    "| a | b |\n|---|--:|\n",
    "| 1 | ü |\n",
    "```rust\nfn main() {}\n",
    "```\n",
    "~~~~\n",
    "    indented\n",
    "   ```\n",
    "---\n",
    "***\n",
    "<div>\n",
    "<!-- no end\n",
    "[ref]: https://example.org 'title'\n",
    "[ref] and [link](https://example.org)\n",
    "牛奶 🥛 e\u{301}\n",
    "\t\ttabs\n",
    "no end",
    "\\",
    "`",
    "  ",
];

/// Returns a deterministic generator of pseudo-random numbers.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    }
}

fn document(seed: u64) -> String {
    let mut number = numbers(seed);
    (0..=number(14))
        .map(|_| FRAGMENTS[number(FRAGMENTS.len())])
        .collect()
}

/// Cuts a text into pieces of `bytes` bytes, or one character if that is longer.
fn pieces(text: &str, bytes: usize) -> Vec<&str> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let end = (start + bytes..text.len())
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(text.len());
        pieces.push(&text[start..end]);
        start = end;
    }
    pieces
}

fn blocks<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Block> {
    let mut blocks = Blocks::default();
    let mut done: Vec<Block> = pieces
        .into_iter()
        .flat_map(|piece| blocks.push(piece))
        .collect();
    done.extend(blocks.finish());
    assert_eq!(blocks.unfinished(99), "");
    done
}

fn text(content: &Content) -> &str {
    match content {
        Content::Markdown(text)
        | Content::FenceOpen(text)
        | Content::Code(text)
        | Content::FenceClose(text) => text,
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn blocks_do_not_depend_on_the_pieces_and_lose_nothing() {
    for seed in 0..500 {
        let document = document(seed);
        let whole = blocks([document.as_str()]);
        for bytes in [1, 2, 3, 5, 7, 11] {
            assert_eq!(
                blocks(pieces(&document, bytes)),
                whole,
                "{seed}: {document:?}"
            );
        }
        let given: String = whole.iter().map(|block| text(&block.content)).collect();
        assert_eq!(
            without_blanks(&given),
            without_blanks(&document),
            "{seed}: {document:?}"
        );
    }
}

/// Checks the blocks given out after each of these lines.
#[track_caller]
fn check(lines: &[(&str, &[&str])]) {
    let mut blocks = Blocks::default();
    for (line, expected) in lines {
        let given = blocks.push(&format!("{line}\n"));
        let given: Vec<&str> = given.iter().map(|block| text(&block.content)).collect();
        assert_eq!(given, *expected, "after {line:?}");
    }
}

#[test]
fn code_comes_line_by_line() {
    check(&[
        ("Look:", &[]),
        ("```rust", &["Look:", "```rust"]),
        ("fn main() {", &["fn main() {"]),
        ("", &[""]),
        ("``", &["``"]),
        ("```", &["```"]),
        ("after", &[]),
        ("", &["after"]),
    ]);
}

#[test]
fn lists_come_item_by_item() {
    check(&[
        ("- one", &[]),
        ("- two", &["- one"]),
        ("  - inner", &[]),
        ("- three", &["- two\n  - inner"]),
        ("", &[]),
        ("Words.", &["- three"]),
    ]);
    check(&[
        ("9. nine", &[]),
        ("10. ten", &["9. nine"]),
        ("", &[]),
        ("11. eleven", &["10. ten"]),
    ]);
}

#[test]
fn a_heading_comes_at_once_and_a_table_when_it_is_over() {
    check(&[
        ("# Title", &["# Title"]),
        ("a | b", &[]),
        ("--|--", &[]),
        ("1 | 2", &[]),
        ("", &["a | b\n--|--\n1 | 2"]),
    ]);
}

#[test]
fn a_blank_line_is_kept_once_and_only_between() {
    let given = blocks(["\n\n# A\ntext\n\n\n\n- x\n- y\n\n```\ncode\n```\nend"]);
    let gaps: Vec<(bool, &str)> = given
        .iter()
        .map(|block| (block.gap, text(&block.content)))
        .collect();
    assert_eq!(
        gaps,
        [
            (false, "# A"),
            (false, "text"),
            (true, "- x"),
            (false, "- y"),
            (true, "```"),
            (false, "code"),
            (false, "```"),
            (true, "end"),
        ]
    );
}

#[test]
fn a_fence_that_never_closes_gives_its_lines() {
    assert_eq!(blocks(["~~~\n```\na"]).len(), 3);
    // Indented less than its fence inside of an item: still part of the code block.
    let given = blocks(["  ```\n    a\n b\n  ```\n"]);
    let given: Vec<&str> = given.iter().map(|block| text(&block.content)).collect();
    assert_eq!(given, ["```", "  a", "b", "```"]);
}

#[test]
fn a_block_without_end_does_not_stall_for_ever() {
    let line = "> a quote that never ends, line after line\n";
    let mut blocks = Blocks::default();
    let mut first = None;
    for number in 0..5_000 {
        if !blocks.push(line).is_empty() {
            first = first.or(Some(number));
        }
    }
    assert!(first.is_some_and(|number| number < 1_000), "{first:?}");
    assert!(blocks.unfinished(usize::MAX).len() <= KEPT_BYTES_MAX + line.len());
}

#[test]
fn the_unfinished_end_is_cut_between_characters() {
    let mut blocks = Blocks::default();
    blocks.push("done\n\nwords 牛奶");
    assert_eq!(blocks.unfinished(100), "words 牛奶");
    assert_eq!(blocks.unfinished(4), "奶");
    assert_eq!(blocks.unfinished(0), "");
}

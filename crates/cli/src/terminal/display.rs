//! Formats text for a terminal, and makes text from models, tools and users safe for it: no escape
//! sequence moves the cursor, writes the clipboard, hides text or reverses it.

pub(crate) use adjutant_core::{clean, clean_line, clip, json_line};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use termimad::StrFit;

/// Quotes a word for a shell, so that a command that is shown can be pasted.
pub(crate) fn shell_quoted(word: &str) -> String {
    let word = clean_line(word);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@/+:,=%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Returns a path as it is shown: a name may hold sequences that a terminal obeys.
pub(crate) fn shown_path(path: &std::path::Path) -> String {
    clean_line(&path.to_string_lossy())
}

/// Wraps a line at blanks into lines of at most `columns` columns.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<&str> {
    let (mut rest, mut lines) = (line, Vec::new());
    loop {
        let (bytes, _) = StrFit::count_fitting(rest, columns.max(1));
        // Where not even one character fits, the rest stays whole: the loop would not end.
        if bytes >= rest.len() || bytes == 0 {
            lines.push(rest);
            return lines;
        }
        // A blank that follows the fitting part allows a cut there.
        let cut = if rest[bytes..].starts_with(' ') {
            Some(bytes)
        } else {
            rest[..bytes].rfind(' ')
        };
        let cut = cut.filter(|at| *at > 0).unwrap_or(bytes);
        lines.push(rest[..cut].trim_end_matches(' '));
        rest = rest[cut..].trim_start_matches(' ');
    }
}

/// Wraps text at blanks. Continued lines are indented to the second column of a list (after two
/// blanks), else by two columns. Long words and JSON stay whole, so that they can be copied; so do
/// numbers with their units, so that they can be read. Escape sequences of styles count no columns.
pub(crate) fn fold(text: &str, columns: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        let begin = bare.trim_start();
        // `[y] yes` is a key and no list.
        let is_key = begin.starts_with('[') && begin.get(2..4) == Some("] ");
        let is_json = begin.starts_with(['{', '[', '"', '}', ']']) && !is_key;
        if is_json || visible_width(bare) <= columns {
            folded.push_str(line);
            continue;
        }
        let blanks_before = bare.len() - begin.len();
        let second = begin.find("  ").map(|gap| {
            let blanks = begin[gap..].len() - begin[gap..].trim_start_matches(' ').len();
            blanks_before + visible_width(&begin[..gap]) + blanks
        });
        let indent = second
            .filter(|column| *column <= columns / 2)
            .unwrap_or(blanks_before + 2)
            // Half of the line stays for text, in a terminal of any width.
            .min(columns / 2);
        let (mut used, mut blanks, mut begun) = (0, 0, false);
        for part in with_units(bare) {
            let word = part.trim_end_matches(' ');
            let width = visible_width(word);
            if !word.is_empty() {
                if begun && used + blanks + width > columns {
                    folded.push('\n');
                    folded.push_str(&" ".repeat(indent));
                    used = indent;
                } else {
                    folded.push_str(&" ".repeat(blanks));
                    used += blanks;
                }
                folded.push_str(word);
                used += width;
                blanks = 0;
                begun = true;
            }
            blanks += part.len() - word.len();
        }
        folded.push_str(&" ".repeat(blanks));
        folded.push_str(&line[bare.len()..]);
    }
    folded
}

/// Splits a line after its blanks, except after those between a number and its unit: `1.1 GB`.
fn with_units(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in line.match_indices(' ') {
        let (before, after) = (&line[begin..at], &line[at + 1..]);
        let unit = after.split([' ', ',', '.', ')', ';', '/']).next();
        let is_unit = unit.is_some_and(|unit| {
            matches!(unit.chars().count(), 1..=3)
                && unit.chars().all(|c| c.is_alphabetic() || c == '%')
        });
        if !(before.ends_with(|c: char| c.is_ascii_digit()) && is_unit) {
            parts.push(&line[begin..=at]);
            begin = at + 1;
        }
    }
    parts.push(&line[begin..]);
    parts
}

/// Joins parts by ` · ` into lines of at most `columns` columns. A part is not divided: one that is
/// wider has a line of its own.
pub(crate) fn join_parts(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 3 + visible_width(part) <= columns => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// Returns the beginning of a line that fits into `columns` columns, whole words of it, with an
/// ellipsis if something is left out.
pub(crate) fn clip_words(line: &str, columns: usize) -> String {
    match wrap(line, columns.saturating_sub(2)).as_slice() {
        _ if visible_width(line) <= columns => line.to_owned(),
        [first, ..] => format!("{first} …"),
        [] => String::new(),
    }
}

/// Returns the columns of a text without its colour sequences.
pub(crate) fn visible_width(text: &str) -> usize {
    StrFit::count_fitting(&anstream::adapter::strip_str(text).to_string(), usize::MAX).1
}

/// Formats a number with its noun: `1 model`, `2 models`.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {many}")
    }
}

/// Formats a time in the local time zone: `2026-11-30 09:15:00 +01:00`.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S %:z")
        .to_string()
}

/// Formats a number of tokens: `80`, `1.2k`, `3.4M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=999_949 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// Formats a short duration: `2 ms`, `1.4 s`, `3 min`.
pub(crate) fn millis(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=119_999 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min", ms / 60_000),
    }
}

/// Formats a duration in its largest fitting unit: `5 s`, `3 min`, `2 h`, `6 d`.
pub(crate) fn rough(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{} s", seconds.max(0)),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats a number of bytes: `491 MB`, `1.1 GB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Texts that attack terminals or their readers, for tests.
#[cfg(test)]
pub(crate) mod hostile {
    /// Introducers of escape sequences, in seven and in eight bits.
    const BEGINNINGS: &[&str] = &[
        "\u{1b}[",
        "\u{9b}",
        "\u{1b}]",
        "\u{9d}",
        "\u{1b}P",
        "\u{90}",
        "\u{1b}_",
        "\u{9f}",
        "\u{1b}^",
        "\u{9e}",
        "\u{1b}X",
        "\u{98}",
        "\u{1b}",
        "\u{1b}\u{1b}[",
        "\u{1b}\u{0}[",
    ];

    /// Bodies of escape sequences: colours, hidden text, clearing, cursor movement, scrolling, the
    /// alternate screen, mouse reports, titles, the clipboard, links, pictures, reports that are
    /// typed as input, resets, character sets.
    const ORDERS: &[&str] = &[
        "31mred",
        "8mhidden",
        "2J",
        "H",
        "1A",
        "999D",
        "3J",
        "?1049h",
        "?1000h",
        "?25l",
        "0;title\u{7}",
        "52;c;cm0gLXJmIC8=\u{7}",
        "8;;http://evil.example\u{1b}\\click",
        "1337;File=:AAAA\u{7}",
        "6n",
        "21t",
        "c",
        "(0",
        "200~paste",
        "1;2q\u{1b}\\",
    ];

    /// Control and formatting characters that need no introducer.
    const OTHERS: &[&str] = &[
        "fine\rOverwritten",
        "back\u{8}\u{8}\u{8}\u{8}space",
        "bell\u{7}",
        "form\u{c}feed\u{b}",
        "\u{202e}txt.exe",
        "\u{2066}a\u{2069}\u{2067}b\u{2069}",
        "\u{202a}\u{202b}\u{202c}\u{202d}",
        "\u{0}nul",
        "\u{7f}del",
        "\u{e}shift\u{f}",
        "\u{85}next line",
        "del\u{200b}ete",
        "del\u{ad}ete",
        "\u{feff}mark",
        "word\u{2060}joiner",
        "\u{e0044}\u{e0045}\u{e004c}tags",
        "\u{3164}\u{115f}fillers",
        "\u{fff9}annotation\u{fffb}",
    ];

    pub(crate) fn texts() -> Vec<String> {
        let orders = BEGINNINGS
            .iter()
            .flat_map(|begin| ORDERS.iter().map(move |order| format!("{begin}{order}")));
        orders
            .chain(OTHERS.iter().map(|text| (*text).to_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::is_hidden;

    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        let texts = hostile::texts();
        assert!(texts.len() >= 200);
        for text in &texts {
            for shown in [
                clean(text),
                clean_line(text),
                clip(text, 8),
                json_line(text),
            ] {
                assert!(!shown.chars().any(is_hidden), "{text:?} became {shown:?}");
            }
        }
    }

    #[test]
    fn no_line_breaks_within_a_size_or_a_part() {
        let text = "model (1.1 GB, once) in 12 min at 40 % of 3 tasks";
        let folded = fold(text, 10);
        assert_eq!(
            folded,
            "model\n  (1.1 GB,\n  once) in\n  12 min\n  at 40 %\n  of 3\n  tasks"
        );
        for columns in 8..60 {
            let folded = fold(text, columns);
            let words: Vec<&str> = folded.split_whitespace().collect();
            assert_eq!(words.join(" "), text);
            for whole in ["1.1 GB", "12 min", "40 %"] {
                assert!(folded.contains(whole), "{folded:?}");
            }
        }
        assert_eq!(
            fold("  [y] delete all  [n] keep all  [o] one by one ", 32),
            "  [y] delete all  [n] keep all\n    [o] one by one "
        );
        assert_eq!(fold("[\"a\", \"b\"]", 5), "[\"a\", \"b\"]");
        let parts = ["adjutant 0.1.0", "ctx 4096", "no vault (adjutant init)"].map(str::to_owned);
        assert_eq!(
            join_parts(&parts, 28),
            ["adjutant 0.1.0 · ctx 4096", "no vault (adjutant init)"]
        );
        assert_eq!(join_parts(&parts, 80).len(), 1);
        assert_eq!(join_parts(&parts, 5).len(), 3);
        assert_eq!(clip_words("the first with a key", 12), "the first …");
        assert_eq!(clip_words("the first", 9), "the first");
    }

    #[test]
    fn cleaning_does_not_depend_on_where_the_text_is_cut() {
        for text in &hostile::texts() {
            for (cut, _) in text.char_indices() {
                let (before, after) = text.split_at(cut);
                assert_eq!(clean(before) + &clean(after), clean(text));
            }
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let text = "Grüße,\n\t“milk” 牛奶 حليب 🥛 e\u{301}\u{200f}";
        assert_eq!(clean(text), text);
        assert_eq!(clean_line("a\nb\tc"), "a b c");
    }

    #[test]
    fn json_keeps_what_it_hides() {
        for text in &hostile::texts() {
            let back: String = serde_json::from_str(&json_line(text)).unwrap();
            assert_eq!(back, *text);
        }
    }

    #[test]
    fn long_lines_are_folded_at_blanks() {
        assert_eq!(fold("one two three\n", 9), "one two\n  three\n");
        assert_eq!(
            fold("    try: \u{1b}[2mabc\u{1b}[0m def", 12),
            "    try: \u{1b}[2mabc\u{1b}[0m\n      def"
        );
        assert_eq!(fold("name    value ", 20), "name    value ");
        assert_eq!(
            fold(" name    value words", 18),
            " name    value\n         words"
        );
        assert_eq!(
            fold("a long name    value words", 18),
            "a long name\n  value words"
        );
        assert_eq!(
            fold("see https://example.org/a", 10),
            "see\n  https://example.org/a"
        );
        assert_eq!(fold("{\"a\": \"b c\"}\n", 4), "{\"a\": \"b c\"}\n");
        assert_eq!(fold("\n\n", 4), "\n\n");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [tokens(80), tokens(1_234), tokens(2_000_000)],
            ["80", "1.2k", "2.0M"]
        );
        assert_eq!(
            [millis(2), millis(1_400), millis(180_000)],
            ["2 ms", "1.4 s", "3 min"]
        );
        assert_eq!(
            [rough(-1), rough(61), rough(86_400), rough(604_800)],
            ["0 s", "1 min", "24 h", "7 d"]
        );
        assert_eq!(clip("four words are here", 10), "four word…");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(
            [size(0), size(1), size(491_400_064), size(1_117_320_768)],
            ["0 kB", "1 kB", "491 MB", "1.1 GB"]
        );
    }
}

//! Newline-delimited JSON: bytes in, lines out. Knows no socket and no vendor.

/// Cuts a byte stream into lines. Bytes may be split anywhere, even inside a character or a line
/// end.
#[derive(Debug, Default)]
pub(crate) struct LineParser {
    line: Vec<u8>,
    /// The first line was read, so no byte order mark can follow.
    begun: bool,
}

impl LineParser {
    /// Takes more bytes and returns the lines they complete, without blank ones.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            lines.extend(self.end_line());
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        lines
    }

    /// Returns the unfinished line at the end of the stream, if there is one.
    pub(crate) fn finish(&mut self) -> Option<String> {
        self.end_line()
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        // A byte that is not UTF-8 costs a character, not the whole answer.
        let line = String::from_utf8_lossy(&line);
        let line = if self.begun {
            &line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        self.begun = true;
        let line = line.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(bytes: &[u8], size: usize) -> Vec<String> {
        let mut parser = LineParser::default();
        let mut lines: Vec<String> = bytes
            .chunks(size)
            .flat_map(|bytes| parser.push(bytes))
            .collect();
        lines.extend(parser.finish());
        lines
    }

    #[test]
    fn line_ends_blank_lines_and_a_mark_at_the_beginning_do_not_matter() {
        let text = "\u{feff}{\"a\": \"ä\"}\r\n\r\n{\"b\": 1}\n \n{\"c\": 2}";
        for size in 1..text.len() {
            assert_eq!(
                lines(text.as_bytes(), size),
                ["{\"a\": \"ä\"}", "{\"b\": 1}", "{\"c\": 2}"]
            );
        }
    }

    proptest! {
        #[test]
        fn the_cuts_do_not_matter(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..9) {
            prop_assert_eq!(lines(&bytes, size), lines(&bytes, usize::MAX));
        }
    }
}

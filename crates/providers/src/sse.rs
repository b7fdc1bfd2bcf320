//! Server-sent events: bytes in, frames out. Knows no socket and no vendor.
//!
//! Source: WHATWG HTML, "Parsing an event stream". Two differences: a frame that the end of the stream cuts off before its
//! blank line is delivered (some vendors leave that line out), and lines that are no field at all are kept as
//! [`SseParser::stray`], because a vendor may break into its stream with a plain JSON error.

/// Bytes of stray lines that are kept.
const STRAY_MAX: usize = 64 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its data lines, joined with line feeds.
    pub(crate) data: String,
}

/// Cuts a byte stream into frames. Bytes may be split anywhere, even inside a character or a line end.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    /// Lines of the event so far; `None`: no data line yet.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_cr: bool,
    /// The first line was read, so no byte order mark can follow.
    begun: bool,
    stray: Vec<u8>,
}

impl SseParser {
    /// Takes bytes as they come; returns the frames they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let line_feed_of_cr = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            match byte {
                b'\n' if line_feed_of_cr => {}
                b'\n' | b'\r' => frames.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        frames
    }

    /// The frame that the end of the stream leaves behind, if it left one.
    pub(crate) fn finish(&mut self) -> Option<Frame> {
        let line_left = if self.line.is_empty() { None } else { self.end_line() };
        line_left.or_else(|| self.end_frame())
    }

    /// The lines so far that are no field of an event stream.
    pub(crate) fn stray(&self) -> String {
        String::from_utf8_lossy(&self.stray).into_owned()
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        let line = match line.strip_prefix("\u{feff}".as_bytes()) {
            Some(rest) if !self.begun => rest,
            _ => &line,
        };
        self.begun = true;
        if line.is_empty() {
            return self.end_frame();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            // A comment, and the fields no vendor's meaning depends on: events name themselves in their JSON too.
            b"" | b"event" | b"id" | b"retry" => {}
            _ if self.stray.len() + line.len() < STRAY_MAX => {
                self.stray.extend_from_slice(line);
                self.stray.push(b'\n');
            }
            _ => {}
        }
        None
    }

    fn end_frame(&mut self) -> Option<Frame> {
        self.data.take().map(|data| Frame { data: String::from_utf8_lossy(&data).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data of all frames, with the bytes cut at these places.
    fn frames(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut frames = Vec::new();
        let mut from = 0;
        for &cut in cuts {
            let to = (from + cut).min(bytes.len());
            frames.extend(parser.push(&bytes[from..to]));
            from = to;
        }
        frames.extend(parser.push(&bytes[from..]));
        frames.extend(parser.finish());
        frames.into_iter().map(|frame| frame.data).collect()
    }

    #[test]
    fn all_line_ends_mean_the_same() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["data: a", "data: b", "", "data: c", "", ""].join(end);
            assert_eq!(frames(stream.as_bytes(), &[]), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn only_data_counts() {
        let stream = "\u{feff}retry: 3000\n\n: keep-alive\n\nevent: x\nid: 7\ndata:{\"a\": 1}\n\ndata\n\nevent: nothing\n\n";
        assert_eq!(frames(stream.as_bytes(), &[]), ["{\"a\": 1}", ""]);
    }

    #[test]
    fn the_end_of_the_stream_ends_a_frame() {
        assert_eq!(frames(b"data: a\n\ndata: [DONE]", &[]), ["a", "[DONE]"]);
        assert_eq!(frames(b"data: a\n\ndata: b\n", &[]), ["a", "b"]);
    }

    #[test]
    fn what_is_no_field_is_kept_apart() {
        let mut parser = SseParser::default();
        assert_eq!(parser.push(b"data: a\n\n{\n  \"error\": {\"code\": 499}\n}\n").len(), 1);
        assert_eq!(parser.stray(), "{\n  \"error\": {\"code\": 499}\n}\n");
    }

    proptest! {
        #[test]
        fn the_cuts_do_not_matter(
            texts in proptest::collection::vec("[a-zäöü秋🦀{}\": ]{0,12}", 1..5),
            end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(0usize..7, 0..60),
        ) {
            let stream: String = texts.iter().map(|text| format!(": c{end}data: {text}{end}{end}")).collect();
            prop_assert_eq!(frames(stream.as_bytes(), &cuts), texts);
        }

        #[test]
        fn no_bytes_break_it(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            cuts in proptest::collection::vec(0usize..9, 0..40),
        ) {
            prop_assert_eq!(frames(&bytes, &cuts), frames(&bytes, &[]));
        }
    }
}

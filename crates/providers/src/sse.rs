//! Server-sent events: bytes in, frames out. Knows no socket and no vendor.
//!
//! Source: WHATWG HTML, "Parsing an event stream". Two differences: a frame that the end of the
//! stream cuts off before its blank line is delivered (some vendors leave that line out), and lines
//! that are no field at all are kept as [`SseParser::stray`], because a vendor may break into its
//! stream with a plain JSON error.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Bytes of stray lines that are kept, enough for any error message.
const STRAY_MAX: usize = 64 * 1024;

/// Cuts a byte stream into frames. Bytes may be split anywhere, even inside a character or a line
/// end.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The beginning of a line whose end did not arrive yet.
    line: Vec<u8>,
    /// Data lines of the current event from earlier bytes; `None` if there are none.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return, so a line feed now belongs to the same line end.
    after_cr: bool,
    /// The first line was read, so no byte order mark can follow.
    begun: bool,
    stray: Vec<u8>,
}

/// A line of an event stream, classified.
enum Line<'a> {
    /// The end of an event.
    Blank,
    Data(&'a [u8]),
    /// A comment, another field, or no field at all.
    Other,
}

impl SseParser {
    /// Takes bytes off the front up to the end of a frame, and returns the frame's data, its lines
    /// joined with line feeds. `None` if no frame ends in these bytes, which are all taken then. A
    /// frame of one line that lies in them completely is not copied.
    pub(crate) fn next<'b>(&mut self, bytes: &mut &'b [u8]) -> Option<Cow<'b, str>> {
        // The event's data, as long as it is one line within these bytes.
        let mut whole: Option<&'b [u8]> = None;
        loop {
            if self.after_cr
                && let Some(first) = bytes.first()
            {
                self.after_cr = false;
                *bytes = &bytes[usize::from(*first == b'\n')..];
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                *bytes = &[];
                // The bytes are gone after this call, so data of an unfinished frame has to be
                // copied now.
                self.push_data(whole);
                return None;
            };
            let here: &'b [u8] = bytes;
            let line = &here[..end];
            self.after_cr = here[end] == b'\r';
            *bytes = &here[end + 1..];
            // The line lies in these bytes completely, so it is parsed without a copy.
            if self.line.is_empty() {
                match self.parse_line(line) {
                    Line::Blank => match whole.take() {
                        Some(data) => return Some(decode_utf8(data)),
                        None => match self.end_frame() {
                            Some(data) => return Some(Cow::Owned(data)),
                            None => continue,
                        },
                    },
                    // The usual frame: its only line of data stays where it is until the blank
                    // line.
                    Line::Data(data) if whole.is_none() && self.data.is_none() => {
                        whole = Some(data)
                    }
                    Line::Data(data) => {
                        self.push_data(whole.take());
                        self.push_data(Some(data));
                    }
                    Line::Other => {}
                }
            } else {
                self.line.extend_from_slice(line);
                if let Some(data) = self.end_line() {
                    return Some(Cow::Owned(data));
                }
            }
        }
    }

    /// Returns the unfinished frame at the end of the stream, if there is one.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let line_left = if self.line.is_empty() {
            None
        } else {
            self.end_line()
        };
        line_left.or_else(|| self.end_frame())
    }

    /// Returns the lines so far that are no field of an event stream.
    pub(crate) fn stray(&self) -> String {
        String::from_utf8_lossy(&self.stray).into_owned()
    }

    /// Ends a line that began in earlier bytes, and returns the frame that it ends.
    fn end_line(&mut self) -> Option<String> {
        // Taken out, cleared and put back, so that its buffer is reused.
        let mut line = std::mem::take(&mut self.line);
        let frame = match self.parse_line(&line) {
            Line::Blank => self.end_frame(),
            Line::Data(data) => {
                self.push_data(Some(data));
                None
            }
            Line::Other => None,
        };
        line.clear();
        self.line = line;
        frame
    }

    /// Appends a data line to those of the current event.
    fn push_data(&mut self, data: Option<&[u8]>) {
        match (&mut self.data, data) {
            (_, None) => {}
            (Some(lines), Some(data)) => {
                lines.push(b'\n');
                lines.extend_from_slice(data);
            }
            (None, Some(data)) => self.data = Some(data.to_vec()),
        }
    }

    fn parse_line<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = match line.strip_prefix("\u{feff}".as_bytes()) {
            Some(rest) if !self.begun => rest,
            _ => line,
        };
        self.begun = true;
        if line.is_empty() {
            return Line::Blank;
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        match field {
            b"data" => return Line::Data(value.strip_prefix(b" ").unwrap_or(value)),
            // Comments, and fields that carry no information of their own: every vendor repeats the
            // event's name in its JSON.
            b"" | b"event" | b"id" | b"retry" => {}
            _ if self.stray.len() + line.len() < STRAY_MAX => {
                self.stray.extend_from_slice(line);
                self.stray.push(b'\n');
            }
            _ => {}
        }
        Line::Other
    }

    fn end_frame(&mut self) -> Option<String> {
        let data = self.data.take()?;
        Some(
            String::from_utf8(data)
                .unwrap_or_else(|error| decode_utf8(error.as_bytes()).into_owned()),
        )
    }
}

/// Decodes bytes as UTF-8, with replacement characters for what is invalid.
fn decode_utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data of all frames, with the bytes cut at these places.
    fn frames(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut frames = Vec::new();
        let mut rest = bytes;
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (mut piece, behind) = rest.split_at(cut.min(rest.len()));
            while let Some(frame) = parser.next(&mut piece) {
                frames.push(frame.into_owned());
            }
            rest = behind;
        }
        frames.extend(parser.finish());
        frames
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
    fn a_frame_that_lies_in_the_bytes_is_not_copied() {
        let mut parser = SseParser::default();
        let mut bytes = &b"data: a\n\ndata: b\ndata: c\n\ndata: d\n"[..];
        let borrowed =
            |frame: Option<Cow<'_, str>>| frame.map(|frame| matches!(frame, Cow::Borrowed(_)));
        assert_eq!(borrowed(parser.next(&mut bytes)), Some(true));
        assert_eq!(borrowed(parser.next(&mut bytes)), Some(false));
        assert_eq!((parser.next(&mut bytes), bytes), (None, &[][..]));
        assert_eq!(parser.next(&mut &b"\n"[..]).as_deref(), Some("d"));
    }

    #[test]
    fn what_is_no_field_is_kept_apart() {
        let mut parser = SseParser::default();
        let mut bytes = &b"data: a\n\n{\n  \"error\": {\"code\": 499}\n}\n"[..];
        assert_eq!(
            (parser.next(&mut bytes).as_deref(), parser.next(&mut bytes)),
            (Some("a"), None)
        );
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

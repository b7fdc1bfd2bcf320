//! Text files attached to a message.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use adjutant_memory::open_regular_file;

use super::text::{Text, Unusable, decode};
use crate::error::CliError;
use crate::terminal::display::{clean_line, clip, shell_quoted};

/// Characters of a file's name in messages.
const NAME_MAX: usize = 300;

/// File extensions of pictures.
const PICTURES: [&str; 10] = [
    "png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "avif",
];

/// The way in which a file was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// By an option of the command line: it may be a pipe, such as that of `<(command)`.
    Option,
    /// By a word of a message, which may be copied from anywhere.
    Message,
}

/// Reads a text file. `name` is the name for the user.
///
/// # Errors
/// The file does not exist, cannot be read, is a folder, is no text, or is longer than a message
/// may be; or a message names a pipe or a device.
pub(super) fn read_text_file(path: &Path, name: &str, by: NamedBy) -> Result<Text, CliError> {
    let name = clip(name, NAME_MAX);
    let quoted = shell_quoted(&name);
    let unreadable =
        |cause: String| CliError::usage(format!("{name} cannot be read")).because(cause);
    if path.is_dir() {
        return Err(CliError::usage(format!(
            "{name} is a folder, and only files can be attached"
        ))
        .or_try(format!(
            "name its files, each with -f, such as -f {}",
            shell_quoted(&format!("{}/FILE", name.trim_end_matches('/')))
        )));
    }
    let opened = match by {
        NamedBy::Option => File::open(path),
        NamedBy::Message => open_regular_file(path),
    };
    let file = opened.map_err(|error| {
        let starts = std::env::current_dir().unwrap_or_default();
        unreadable(error.to_string()).or_try(format!(
            "check the name; a relative one starts at {}",
            clean_line(&starts.to_string_lossy())
        ))
    })?;
    let mut bytes = Vec::new();
    // One byte more than allowed detects a too long file without reading all of it.
    file.take(MESSAGE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    // Enough for the beginning of a PDF and of the pictures that are recognised.
    let head = bytes.get(..5).unwrap_or_default().to_owned();
    decode(bytes).map_err(|unusable| match unusable {
        Unusable::TooLong => CliError::usage(format!(
            "{name} is longer than {MESSAGE_BYTES_MAX} bytes (1 MiB), the most that is taken"
        ))
        .or_try(format!(
            "send the part that matters: head -c 100000 {quoted} | adjutant …"
        )),
        Unusable::NotText(_) if is_picture(path, &head) => CliError::usage(format!(
            "{name} is a picture, and pictures are not read yet"
        ))
        .or_try("describe in words what is to be seen in it"),
        Unusable::NotText(_) if head == *b"%PDF-" => {
            CliError::usage(format!("{name} is a PDF, and only text is read"))
                .or_try(format!("pdftotext {quoted} - | adjutant …"))
        }
        Unusable::NotText(reason) => CliError::usage(format!("{name} is not text"))
            .because(reason)
            .or_try("attach UTF-8 text")
            .or_try(format!(
                "in another encoding: iconv -f LATIN1 -t UTF-8 {quoted} | adjutant …"
            )),
    })
}

/// Returns the name of a file for its frame and for messages.
pub(super) fn display_name(name: &str) -> String {
    format!("file \"{}\"", clip(name, NAME_MAX))
}

fn is_picture(path: &Path, head: &[u8]) -> bool {
    let end = path
        .extension()
        .map(|end| end.to_string_lossy().to_lowercase());
    end.is_some_and(|end| PICTURES.contains(&end.as_str()))
        || [&b"\x89PNG"[..], b"\xff\xd8\xff", b"GIF8"]
            .iter()
            .any(|magic| head.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "\u{feff}one\r\ntwo\x1b[1m\n\n").unwrap();
        let text = read_text_file(&file, "a.txt", NamedBy::Message).unwrap();
        assert_eq!((text.text.as_str(), text.removed), ("one\ntwo[1m", 1));
    }

    #[test]
    fn what_is_no_text_file_is_named_with_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let cases: [(&str, &[u8], &str); 6] = [
            ("photo", b"\x89PNG\r\n\x1a\n\0", "pictures are not read yet"),
            (
                "photo.JPG",
                b"\xff\xd8\xff\xe0",
                "pictures are not read yet",
            ),
            ("paper.pdf", b"%PDF-1.7\n\xe2\xe3", "is a PDF"),
            ("program", b"\x7fELF\x02\xff", "is not text"),
            ("zero", b"a\0b", "is not text"),
            ("long", &vec![b'x'; MESSAGE_BYTES_MAX + 1], "1048576 bytes"),
        ];
        for (name, content, words) in cases {
            std::fs::write(place(name), content).unwrap();
            let error = read_text_file(&place(name), name, NamedBy::Option).unwrap_err();
            assert_eq!(error.exit as u8, 2);
            assert!(
                error.message.starts_with(name) && error.message.contains(words),
                "{}",
                error.message
            );
            assert!(!error.tries.is_empty(), "{name}");
        }
        assert!(
            read_text_file(folder.path(), "notes/", NamedBy::Option)
                .unwrap_err()
                .message
                .contains("is a folder")
        );
        let gone = read_text_file(&place("gone"), "gone", NamedBy::Message).unwrap_err();
        assert!(gone.cause.unwrap().contains("No such file"));
    }
}

use std::io::Read;

use anstream::ColorChoice;

use super::*;
use crate::terminal::screen::Verbosity;

const WAIT: Duration = Duration::from_secs(600);

fn sources(words: &[&str], files: &[&str]) -> PromptSources {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    PromptSources {
        words: owned(words),
        files: owned(files),
    }
}

/// A reader that fails the test if it is read.
struct Untouchable;

impl Read for Untouchable {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("standard input was read");
    }
}

async fn prompt_from(given: PromptSources, stdin: Stdin) -> Result<Prompt, CliError> {
    prompt(
        given,
        stdin,
        WAIT,
        &Screen::new(ColorChoice::Never, Verbosity::Quiet, true),
    )
    .await
}

async fn piped(words: &[&str], stdin: &'static [u8]) -> Result<Prompt, CliError> {
    prompt_from(sources(words, &[]), Stdin::from_reader(stdin, false)).await
}

async fn typed(words: &[&str]) -> Result<Prompt, CliError> {
    prompt_from(sources(words, &[]), Stdin::from_reader(Untouchable, true)).await
}

#[tokio::test]
async fn at_a_terminal_words_are_joined_and_nothing_is_read() {
    let prompt = typed(&["add", "buy", "milk"]).await.unwrap();
    assert_eq!(
        prompt,
        Prompt {
            text: "add buy milk".to_owned(),
            typed: true,
            ..Prompt::default()
        }
    );
    assert_eq!(typed(&[]).await.unwrap_err().exit as u8, 2);
}

#[tokio::test]
async fn a_dash_or_nothing_reads_standard_input() {
    for words in [&["-"][..], &[]] {
        let prompt = piped(words, b"hello\r\nthere\r\n").await.unwrap();
        assert_eq!(
            (prompt.text.as_str(), prompt.typed),
            ("hello\nthere", false)
        );
        assert!(prompt.attached.is_empty() && prompt.notices.is_empty());
    }
}

#[tokio::test]
async fn standard_input_goes_along_with_words_in_a_frame() {
    for words in [
        &["what", "is this?"][..],
        &["what", "is this?", "-"],
        &["-", "what", "is this?"],
    ] {
        let prompt = piped(words, b"one\ntwo\n").await.unwrap();
        assert_eq!(
            (prompt.text.as_str(), prompt.typed),
            ("what is this?", true)
        );
        assert_eq!(prompt.attached, framed("standard input", "one\ntwo"));
        assert_eq!(prompt.notices, ["  attached: standard input, 2 lines"]);
        assert_eq!(
            prompt.message("").unwrap(),
            format!("what is this?{}", prompt.attached)
        );
    }
}

#[tokio::test]
async fn input_without_words_in_it_leaves_the_words_as_they_are() {
    for stdin in [&b""[..], b" \n\t\n"] {
        assert_eq!(
            piped(&["yes"], stdin).await.unwrap().message("").unwrap(),
            "yes"
        );
        assert_eq!(
            piped(&["yes", "-"], stdin)
                .await
                .unwrap()
                .message("")
                .unwrap(),
            "yes"
        );
    }
}

#[tokio::test]
async fn a_wait_of_zero_leaves_standard_input_alone_unless_it_is_named() {
    let screen = Screen::new(ColorChoice::Never, Verbosity::Quiet, true);
    let alone = prompt(
        sources(&["x"], &[]),
        Stdin::from_reader(Untouchable, false),
        Duration::ZERO,
        &screen,
    )
    .await;
    assert_eq!(alone.unwrap().message("").unwrap(), "x");
    let named = prompt(
        sources(&["x", "-"], &[]),
        Stdin::from_reader(&b"y"[..], false),
        Duration::ZERO,
        &screen,
    )
    .await;
    assert_eq!(named.unwrap().attached, framed("standard input", "y"));
}

#[tokio::test]
async fn files_go_along_in_their_order_after_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, two, none) = (file("one", "1\n"), file("two", "2"), file("none", "\n"));
    let files = [one.as_str(), &none, &two];
    let frames = framed(&format!("file \"{one}\""), "1") + &framed(&format!("file \"{two}\""), "2");
    let with_input = prompt_from(
        sources(&["sum"], &files),
        Stdin::from_reader(&b"0"[..], false),
    )
    .await
    .unwrap();
    assert_eq!(
        with_input.message("").unwrap(),
        format!("sum{}{frames}", framed("standard input", "0"))
    );
    let asked_by_input = prompt_from(sources(&[], &files), Stdin::from_reader(&b"sum"[..], false))
        .await
        .unwrap();
    assert_eq!(asked_by_input.message("").unwrap(), format!("sum{frames}"));
    let alone = prompt_from(
        sources(&[], &files),
        Stdin::from_reader(std::io::empty(), false),
    )
    .await
    .unwrap();
    assert_eq!(
        alone.message("").unwrap(),
        "1\n\n2",
        "without anything else the files are the prompt"
    );
    let nothing = prompt_from(
        sources(&[], &[&none]),
        Stdin::from_reader(std::io::empty(), false),
    )
    .await;
    assert_eq!(nothing.unwrap_err().exit as u8, 2);
    let dash = prompt_from(
        sources(&["sum"], &["-"]),
        Stdin::from_reader(&b"0"[..], true),
    )
    .await
    .unwrap();
    assert_eq!(dash.attached, framed("standard input", "0"));
}

#[tokio::test]
async fn nothing_to_ask_is_an_error_with_an_example() {
    for text in ["", " \n\t ", "\u{1b}\u{7}"] {
        let error = piped(&["-"], text.as_bytes()).await.unwrap_err();
        assert_eq!(error.exit as u8, 2);
        assert!(error.tries.iter().any(|way| way.contains("buy milk")));
    }
}

#[tokio::test]
async fn a_mebibyte_is_taken_and_no_byte_more() {
    let most = "x".repeat(MESSAGE_BYTES_MAX);
    let whole = prompt_from(
        sources(&[], &[]),
        Stdin::from_reader(std::io::Cursor::new(most.clone()), false),
    )
    .await
    .unwrap();
    assert_eq!(whole.text.len(), MESSAGE_BYTES_MAX);
    for words in [&[][..], &["x"]] {
        let error = prompt_from(
            sources(words, &[]),
            Stdin::from_reader(std::io::repeat(b'x'), false),
        )
        .await
        .unwrap_err();
        assert!(
            error
                .message
                .contains("standard input is longer than 1048576"),
            "{}",
            error.message
        );
    }
    let together = prompt_from(
        sources(&["x"], &[]),
        Stdin::from_reader(std::io::Cursor::new(most), false),
    )
    .await
    .unwrap();
    assert!(
        together
            .message("")
            .unwrap_err()
            .message
            .contains("1048576")
    );
}

#[tokio::test]
async fn binary_is_refused_with_its_place() {
    for words in [&[][..], &["x"]] {
        for (bytes, place) in [(&b"ab\xff"[..], "byte 3"), (b"a\0b", "byte 2")] {
            let error = piped(words, bytes).await.unwrap_err();
            assert_eq!(error.exit as u8, 2);
            assert!(error.cause.unwrap().contains(place));
        }
    }
}

#[tokio::test]
async fn control_characters_are_removed_and_counted() {
    let prompt = typed(&["a\u{1b}[31mb\u{7}\tc"]).await.unwrap();
    assert_eq!(prompt.text, "a[31mb\tc");
    assert_eq!(
        prompt.notices,
        ["2 control characters were removed from the prompt"]
    );
}

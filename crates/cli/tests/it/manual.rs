//! Completions and manual: made for every command, and right.

use std::process::{Command, Stdio};

use crate::harness::{Home, arg};

#[test]
fn every_shell_gets_a_script_and_bash_can_read_its_own() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = home.run(&["completions", shell]).succeeds();
        for word in ["doctor", "no-input", "trust"] {
            assert!(run.stdout.contains(word), "{shell}: no {word}");
        }
    }
    let script = home.file("complete.bash", home.run(&["completions", "bash"]).stdout);
    let status = Command::new("bash").arg("-n").arg(&script).status().unwrap();
    assert!(status.success());
    // What a person gets who types `adjutant doc` and presses Tab.
    let asked = "source \"$1\"; COMP_WORDS=(adjutant doc); COMP_CWORD=1; _adjutant adjutant doc adjutant; echo \"${COMPREPLY[@]}\"";
    let output =
        Command::new("bash").args(["-c", asked, "bash"]).arg(&script).stderr(Stdio::inherit()).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap().trim(), "doctor");
    home.run(&["completions", "tcsh"]).ends_with(2);
}

#[test]
fn every_command_has_a_page() {
    let home = Home::new();
    let folder = home.path("man");
    home.run(&["man", arg(&folder)]).succeeds();
    for page in ["adjutant.1", "adjutant-doctor.1", "adjutant-config-trust.1", "adjutant-keys-set.1"] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH adjutant"), "{page}");
    }
    assert!(home.run(&["man"]).succeeds().stdout.contains(".SH NAME"));
    home.file("taken", "");
    home.run(&["man", arg(&home.path("taken/x"))]).ends_with(1).says("cannot be written");
}

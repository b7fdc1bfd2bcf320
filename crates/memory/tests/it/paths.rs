//! No path leaves the vault, and nothing hidden is touched.

use adjutant_memory::{Cause, MemoryError, NotePath, VaultError};

use crate::harness::{Home, files};

/// Names that a model might try, to read and to write.
const HOSTILE: &[&str] = &[
    "../secret",
    "a/../../secret",
    "..",
    "a/..",
    "a/ .. /b",
    "/etc/passwd",
    "//etc/passwd",
    "~",
    "~/x",
    "~root/x",
    "C:/x",
    "c:",
    "C:\\x",
    "\\\\host\\share",
    "a\\..\\b",
    "..\\x",
    ".obsidian/app",
    ".OBSIDIAN/app",
    "a/.git/config",
    ".trash/x",
    ".hidden",
    "a/.hidden",
    "x\0y",
    "x\ny",
    "a/b\u{7}",
    "",
    " ",
    "/",
    ".",
    "./",
    ".md",
    "a/.md",
    "name.",
    "name ./x",
    "a./b",
    "x\u{202E}dm",
    "\u{200B}x",
    "[[../secret]]",
    "[[/etc/passwd]]",
    "[[.obsidian/app|x]]",
    "![[../secret]]",
    "[[../secret#Part|words]]",
    "a//../../secret",
    "./../secret",
    "a/./../../secret",
    "..\u{a0}/x",
    "\u{a0}../x",
    ".Obsidian/App.MD",
    "a/..md/../../x",
    "...",
    "a/...",
    "..md",
    "name.md.",
    "name.md ./x",
    "//?/C:/x",
    "file:\\x",
    "x\u{85}y",
    "x\u{7f}y",
    "\u{2066}x",
    "\u{FEFF}x",
];

#[test]
fn hostile_names_are_refused_by_their_words() {
    for name in HOSTILE {
        let (read, write) = (NotePath::parse(name), NotePath::for_new(name));
        assert!(read.is_err(), "{name:?} reads {read:?}");
        assert!(write.is_err(), "{name:?} writes {write:?}");
    }
    // Blank space in a title is folded; a path to read has none.
    assert!(NotePath::parse("a /b").is_err() && NotePath::parse("a/ b").is_err());
    assert_eq!(NotePath::for_new("a / b").unwrap().as_str(), "a/b.md");
    let long = "x".repeat(244);
    assert!(NotePath::parse(&long).is_err());
    assert!(NotePath::parse(&"a/".repeat(40)).is_err());
    for reserved in ["CON", "nul", "a/com1", "LPT9.txt", "Aux"] {
        assert!(NotePath::for_new(reserved).is_err(), "{reserved}");
    }
}

#[test]
fn names_become_what_obsidian_allows() {
    for (title, path) in [
        ("Meeting: plans?", "Meeting plans.md"),
        ("a*b\"c<d>e|f#g^h[i]j", "a b c d e f g h i j.md"),
        ("Folder/Note", "Folder/Note.md"),
        ("./Folder//Note.md", "Folder/Note.md"),
        ("v1.2", "v1.2.md"),
        ("日本語/ノート", "日本語/ノート.md"),
        ("Cafe\u{301}", "Café.md"),
        ("Note.MD", "Note.MD"),
        ("[[Linked]]", "Linked.md"),
    ] {
        assert_eq!(NotePath::for_new(title).unwrap().as_str(), path, "{title}");
    }
}

#[tokio::test]
async fn hostile_names_touch_nothing() {
    let home = Home::new();
    home.write(".obsidian/app.md", "settings");
    std::fs::write(home.folder.path().join("secret.md"), "secret").unwrap();
    let before = files(home.folder.path());
    let notes = home.memory.notes().unwrap();
    for name in HOSTILE {
        assert!(notes.read(name, None).await.is_err(), "{name:?}");
        assert!(
            notes
                .write(name, "x", false, &Cause::person())
                .await
                .is_err(),
            "{name:?}"
        );
        assert!(
            notes
                .write(name, "x", true, &Cause::person())
                .await
                .is_err(),
            "{name:?}"
        );
    }
    assert_eq!(files(home.folder.path()), before);
}

#[cfg(unix)]
#[tokio::test]
async fn links_out_of_the_vault_are_not_followed_and_links_inside_are_kept() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let outside = home.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.md"), "secret word").unwrap();
    home.write(".obsidian/inner.md", "hidden word");
    home.write("Real/note.md", "inside\n");
    let at = |path: &str| home.vault().join(path);
    symlink(&outside, at("out")).unwrap();
    symlink(outside.join("secret.md"), at("leak.md")).unwrap();
    symlink(outside.join("new.md"), at("dangling.md")).unwrap();
    symlink(at(".obsidian"), at("settings")).unwrap();
    symlink(at("Real"), at("alias")).unwrap();
    symlink("Real/note.md", at("linked.md")).unwrap();
    let notes = home.memory.notes().unwrap();
    for name in [
        "out/secret",
        "leak",
        "dangling",
        "settings/inner",
        "out/new",
        "settings/new",
    ] {
        assert!(notes.read(name, None).await.is_err(), "{name}");
        let error = notes
            .write(name, "x", true, &Cause::person())
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                MemoryError::Vault(VaultError::Name { .. } | VaultError::NoSuchNote { .. })
            ),
            "{name}: {error}"
        );
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    let found = notes
        .search(
            "word",
            &adjutant_memory::NoteFilter {
                limit: 9,
                ..Default::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(found.total, 0);
    assert_eq!(
        notes.read("alias/note", None).await.unwrap().text,
        "inside\n"
    );
    notes
        .write("linked", "more", true, &Cause::person())
        .await
        .unwrap();
    assert!(
        std::fs::symlink_metadata(at("linked.md"))
            .unwrap()
            .is_symlink(),
        "the link stays a link"
    );
    assert_eq!(home.read("Real/note.md"), "inside\n\nmore\n");
}

#[cfg(unix)]
#[tokio::test]
async fn a_facts_file_that_leads_out_is_refused() {
    let home = Home::new();
    let outside = home.folder.path().join("bashrc");
    std::fs::write(&outside, "export X=1\n").unwrap();
    std::fs::create_dir(home.vault().join("memory")).unwrap();
    std::os::unix::fs::symlink(&outside, home.vault().join("memory/facts.md")).unwrap();
    let error = home
        .memory
        .facts()
        .add("x", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a symbolic link leads it out of the vault"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "export X=1\n");
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_no_note() {
    let home = Home::new();
    std::fs::create_dir(home.vault().join("folder.md")).unwrap();
    let status = std::process::Command::new("mkfifo")
        .arg(home.vault().join("pipe.md"))
        .status()
        .unwrap();
    assert!(status.success());
    for name in ["folder", "pipe"] {
        let error = home
            .memory
            .notes()
            .unwrap()
            .read(name, None)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("not a file"), "{name}: {error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_in_circles_and_to_what_is_above_lead_nowhere() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    std::fs::write(home.folder.path().join("secret.md"), "secret word").unwrap();
    std::fs::create_dir(home.vault().join("Real")).unwrap();
    home.write("Real/note.md", "inside word\n");
    let at = |path: &str| home.vault().join(path);
    symlink("..", at("up")).unwrap();
    symlink(".", at("here")).unwrap();
    symlink("../..", at("Real/up")).unwrap();
    symlink("circle", at("circle")).unwrap();
    symlink("loop.md", at("loop.md")).unwrap();
    symlink("/dev/zero", at("zero.md")).unwrap();
    symlink("/proc/self/environ", at("Real/environ.md")).unwrap();
    let before = files(home.folder.path());
    let notes = home.memory.notes().unwrap();
    for name in [
        "up/secret",
        "up/new",
        "Real/up/secret",
        "circle/x",
        "loop",
        "zero",
        "Real/environ",
        "here/up/secret",
    ] {
        assert!(notes.read(name, None).await.is_err(), "{name}");
        assert!(
            notes
                .write(name, "x", true, &Cause::person())
                .await
                .is_err(),
            "{name}"
        );
    }
    assert_eq!(files(home.folder.path()), before);
    // A link to the vault itself is inside, and nothing is found twice.
    assert_eq!(
        notes.read("here/here/Real/note", None).await.unwrap().text,
        "inside word\n"
    );
    let filter = adjutant_memory::NoteFilter {
        limit: 9,
        ..Default::default()
    };
    assert_eq!(notes.search("word", &filter).await.unwrap().total, 1);
    assert_eq!(notes.list(&filter).await.unwrap().total, 1);
}

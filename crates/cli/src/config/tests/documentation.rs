//! The test that `docs/configuration.md` has the tables of settings.

use std::path::{Path, PathBuf};

use super::super::Dirs;
use super::super::key::Key;
use super::super::{KEYS, PROVIDER_SETTINGS};
use adjutant_providers::Provider;

/// The end of the line above the tables.
const MARK: &str = "cargo test -p adjutant-cli documentation -->\n";

#[test]
fn the_documentation_has_every_setting() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (text, table) = page.split_once(MARK).unwrap();
    let made = format!("\n{}", tables());
    #[expect(
        clippy::disallowed_methods,
        reason = "the person who runs the test decides, as for every other expectation"
    )]
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    if update {
        std::fs::write(&file, format!("{text}{MARK}{made}")).unwrap();
        return;
    }
    assert!(
        table == made,
        "docs/configuration.md is stale: UPDATE_EXPECT=1 cargo test -p adjutant-cli documentation"
    );
}

fn tables() -> String {
    let dirs = Dirs {
        config: PathBuf::from("~/.config/adjutant"),
        data: PathBuf::from("~/.local/share/adjutant"),
        cache: PathBuf::from("~/.cache/adjutant"),
        state: PathBuf::from("~/.local/state/adjutant"),
        os_user: "the system's".to_owned(),
    };
    let of_provider = |key: &Key| {
        let (section, name) = key.section_and_name();
        Provider::find(section).is_some() && PROVIDER_SETTINGS.contains(&name)
    };
    let mut text = "| setting | meaning | what it may be | variables and other names | may stand in | default |\n|---|---|---|---|---|---|\n".to_owned();
    for key in KEYS.iter().filter(|key| !of_provider(key)) {
        text.push_str(&row(key, &dirs));
    }
    text.push_str("\nEach provider has a section of its name with these:\n\n");
    text.push_str("| setting | meaning | what it may be | default |\n|---|---|---|---|\n");
    let first = Provider::all()
        .next()
        .map(|provider| provider.name)
        .unwrap_or_default();
    for key in KEYS
        .iter()
        .filter(|key| key.section_and_name().0 == first && of_provider(key))
    {
        text.push_str(&format!(
            "| `PROVIDER.{}` | {} | {} | {} |\n",
            key.section_and_name().1,
            cell(&key.description),
            cell(&key.kind.expected()),
            key.unset
        ));
    }
    text.push_str("\n| provider | key | address | model |\n|---|---|---|---|\n");
    for provider in Provider::all() {
        let variable =
            |name: Option<&str>| name.map_or_else(String::new, |name| format!("`{name}`"));
        text.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            provider.names().collect::<Vec<_>>().join("`, `"),
            variable(provider.key_variable),
            variable(provider.base_url_variable),
            variable(provider.model_variable),
        ));
    }
    text
}

fn row(key: &Key, dirs: &Dirs) -> String {
    let mut names: Vec<String> = key
        .variables()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    names.extend(key.alias.map(|alias| format!("`{alias}` in the file")));
    let default = match key.default_value(dirs) {
        Some(value) => format!("`{value}`"),
        None => key.unset.to_owned(),
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} |\n",
        key.name,
        cell(&key.description),
        cell(&key.kind.expected()),
        names.join(", "),
        if key.project {
            "your file, project"
        } else {
            "your file, trusted project"
        },
        cell(&default),
    )
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

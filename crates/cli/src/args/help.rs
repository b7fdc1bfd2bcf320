//! Texts below the options in `--help`.

use adjutant_providers::Provider;

const EXAMPLES: &str = "\
Examples:
  adjutant                            talk
  adjutant add buy milk tomorrow      one request, one answer
  echo \"what is open?\" | adjutant     the request from a pipe
  git diff | adjutant \"write a commit message\"
  adjutant -f report.txt \"sum it up\"  with a file; @report.txt does the same
  adjutant -c \"and the milk?\"         go on with the last conversation
  adjutant -r 5aaa5c0d                go on with that one (adjutant sessions list)
  adjutant ask --json \"list my tasks\" | jq .content
  adjutant -- -m is part of this request
  adjutant tasks list                 without a language model
";

// No line break after the quote: it would become part of the text.
const OTHER_MODELS: &str =
    "  embedded | embedded/NAME            runs in this process, downloaded once
  embedded:FILE.gguf                  the same, from a file you have
  demo | scripted:FILE                no language model: canned answers, for demos and tests
";

const CODES_AND_FILES: &str = "\
Exit codes:
  0 answered · 1 failed · 2 invalid command line or prompt · 3 configuration, key or data folder
  4 needs your confirmation (adjutant pending list) · 5 provider unavailable or rate limited · 6 a limit was hit · 130 Ctrl-C

Files:
  ~/.config/adjutant/                       config.toml, .env, credentials.toml (adjutant config show, config path)
  ~/.local/share/adjutant/                  adjutant.db (tasks, conversations, logs) and models/

For screen readers, no line is drawn twice with: NO_COLOR=1, or TERM=dumb (docs/screen-readers.md)
";

/// Returns the text below the options, with the table of providers of this build.
pub(super) fn after_help() -> String {
    let mut models =
        "Models (-m, ADJUTANT_MODEL, or `model` in the configuration; `adjutant models list`):\n"
            .to_owned();
    for provider in Provider::all() {
        // A local server is asked which model it has.
        let names = match provider.default_model.is_some() || provider.local {
            true => format!("{0} | {0}/NAME", provider.name),
            false => format!("{}/NAME", provider.name),
        };
        let note = match (provider.key_variable, provider.needs_key, provider.local) {
            (Some(variable), true, _) => format!("needs {variable}"),
            (_, _, true) => "a server on this machine".to_owned(),
            (Some(variable), false, false) => {
                format!("another server; its key, if any, in {variable}")
            }
            (None, ..) => "another server".to_owned(),
        };
        models.push_str(&format!("  {names:35} {note}\n"));
    }
    let order: Vec<&str> = Provider::by_preference()
        .filter(|provider| provider.key_variable.is_some() && provider.default_model.is_some())
        .map(|provider| provider.name)
        .collect();
    let usual = format!(
        "  Without one: the first with a key ({}), else Ollama if it runs, else embedded.\n",
        order.join(", ")
    );
    [
        EXAMPLES,
        "\n",
        &models,
        OTHER_MODELS,
        &usual,
        "\n",
        CODES_AND_FILES,
    ]
    .concat()
}

/// Installation of the completion scripts.
pub(super) const COMPLETIONS: &str = "\
Examples:
  adjutant completions bash > ~/.local/share/bash-completion/completions/adjutant
  adjutant completions zsh > ~/.zfunc/_adjutant          (with fpath+=~/.zfunc before compinit in .zshrc)
  adjutant completions fish > ~/.config/fish/completions/adjutant.fish

The scripts ask adjutant at each Tab, so they complete models, conversations, tasks and settings too, and stay right
after an update.
";

/// Input and output of `models call`.
pub(super) const MODEL_CALL: &str = r#"Input, one JSON object (null or missing: not sent; unknown keys are ignored):
  {"system": "...",
   "messages": [{"role": "user", "text": "..."},
                {"role": "assistant", "text": "...", "tool_calls": [{"id": "...", "name": "...", "args": {}, "signature": "..."}]},
                {"role": "tool", "id": "...", "name": "...", "content": "text, or any JSON"}],
   "tools": [{"name": "...", "description": "...", "parameters": {"type": "object"}}],
   "temperature": 0.5, "max_tokens": 100, "stream": false,
   "provider": "gemini", "model": "..."}

Output, the last line of standard output, also when it failed:
  {"text": "...", "tool_calls": [{"name": "...", "args": {}}], "finish": "stop",
   "usage": {"input": 12, "output": 3}, "error": null}
  finish       stop, tool_calls, max_tokens, content_filter, error
  error        null, or {"kind": ..., "retry_after_s": seconds or null}; kind is one of bad_request, auth, not_found,
               rate_limit, quota, not_permitted, server, timeout, network, invalid_response, truncated,
               context_too_long, refused

Example:
  echo '{"messages": [{"role": "user", "text": "Hello"}]}' | adjutant models call -m gemini
"#;

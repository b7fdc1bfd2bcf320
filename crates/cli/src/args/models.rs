//! Command-line arguments of `adjutant models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List every provider, whether its key is set, and the models that run in this process
    List,
    /// Download a model that runs in this process, or have an Ollama server pull one; Ctrl-C stops,
    /// and the next time it continues
    #[command(
        after_help = "Examples:\n  adjutant models pull                the model that runs in this process\n  adjutant models pull qwen3:8b       a model of Ollama\n"
    )]
    Pull {
        /// The model: NAME, embedded/NAME or ollama/NAME; without: the one in use, else the default
        /// one
        name: Option<String>,
    },
    /// Delete a downloaded model; asks first, or needs -y
    Rm {
        /// The model: NAME, embedded/NAME or ollama/NAME
        name: String,
    },
    /// Check key, address and model name by asking for one word
    Test {
        /// Another host with the provider's API
        #[arg(long, value_name = "URL")]
        base_url: Option<String>,
    },
    /// Make one request as it is, and print the answer as one JSON object
    #[command(after_help = super::help::MODEL_CALL)]
    Call(Call),
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The root of another host with the provider's API; its version segment may be there already
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Have the answer streamed, whatever the input says
    #[arg(long)]
    pub(crate) stream: bool,
    /// Read the request from this file; without or with `-`, from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Have tools called as by small models: one round of calls that fit their schemas and the words
    /// of the last message, or a question
    #[arg(long)]
    pub(crate) constrained: bool,
    /// Attempts after the first
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) retries: u32,
}

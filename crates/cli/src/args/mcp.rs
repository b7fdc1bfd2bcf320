//! Command-line arguments of `adjutant mcp`: the tools for a client, and the servers whose tools the
//! assistant uses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    /// The user whose tasks they are [default: local, the user of the terminal]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Offer the agent itself too, as the tool `ask`: it needs a model, and each call costs what a
    /// request costs
    #[arg(long)]
    pub(crate) agent: bool,
    /// Print the configuration with which this client starts it, and exit
    #[arg(long, value_enum, value_name = "CLIENT")]
    pub(crate) print_config: Option<McpClient>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum McpClient {
    /// Claude Desktop and Claude Code
    Claude,
    Codex,
    Cursor,
    Goose,
    Vscode,
}

/// The servers whose tools the assistant uses.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to your configuration: a program and its arguments behind `--`, or an address
    #[command(
        after_help = "Examples:\n  adjutant mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents\n  adjutant mcp add git -- uvx mcp-server-git\n  adjutant mcp add github https://api.example.com/mcp --bearer-token-env GITHUB_TOKEN\n"
    )]
    Add(McpAdd),
    /// Add the servers of a file with `mcpServers` JSON, as the pages of servers print it
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
    },
    /// List the configured servers
    List,
    /// Start a server, show its tools and what they cost, and end it
    Test {
        /// The server's name in the configuration
        server: String,
    },
    /// Remove a server from your configuration, and forget what was agreed to of its tools
    Rm {
        /// The server's name in the configuration
        server: String,
    },
    /// Let the tools of a server run without asking whose names say that they only read; asks
    /// first, or needs -y
    TrustReads {
        /// The server's name in the configuration
        server: String,
        /// Take it back: they ask again
        #[arg(long)]
        revoke: bool,
    },
    /// List the prompts that a server offers, or print one
    Prompts {
        /// The server's name in the configuration
        server: String,
        /// The prompt to print
        prompt: Option<String>,
        /// Its arguments
        #[arg(value_name = "NAME=VALUE")]
        arguments: Vec<String>,
    },
    /// List the resources that a server offers, or print one
    Resources {
        /// The server's name in the configuration
        server: String,
        /// The resource to print
        uri: Option<String>,
    },
}

/// A server to add.
#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// Its name, the beginning of its tools' names: letters, digits, `_` and `-`
    pub(crate) name: String,
    /// The address of a server that runs elsewhere
    #[arg(required_unless_present = "command", conflicts_with_all = ["command", "env"])]
    pub(crate) url: Option<String>,
    /// A variable of the program; `${NAME}` in the value stands for one of yours
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of each request; `${NAME}` in the value stands for a variable of yours
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// The variable with the token for an address
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    pub(crate) bearer_token_env: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

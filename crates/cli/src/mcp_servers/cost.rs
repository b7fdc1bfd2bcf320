//! The share of a context window that the declarations of servers' tools take: they are part of every request.

use adjutant_core::LanguageModel;
use adjutant_mcp::client::ServerReport;

/// A share of the context window from which on the person is told: one in so many.
const SHARE: u32 = 4;
/// Most servers that are named.
const NAMED_MAX: usize = 5;
/// Most tools in a request to OpenAI (platform.openai.com, "Function calling", November 2026).
const OPENAI_TOOLS_MAX: usize = 128;
/// Providers that are known to refuse more tools than [`OPENAI_TOOLS_MAX`]: both of OpenAI's APIs, and Azure.
const OPENAI: [&str; 3] = ["openai", "openai-chat", "azure"];

/// Returns warnings about tools that take much of the model's context window, or are too many for
/// its provider.
pub(crate) fn warnings(model: &dyn LanguageModel, reports: &[ServerReport]) -> Vec<String> {
    let window = model.capabilities().context_window;
    let mut warnings = Vec::new();
    // A weak model reads only those tools that a message speaks of.
    let is_weak = model.capabilities().weak_tools;
    if let Some(shares) = shares(window, reports).filter(|_| !is_weak) {
        warnings.push(format!(
            "the tools of MCP servers take about {shares} of the {window} tokens that the model reads at once, in each request; \
             `allow` or `disabled` in [mcp.servers.NAME] leaves some out"
        ));
    }
    let tools: usize = reports.iter().map(|report| report.tools.len()).sum();
    if tools > OPENAI_TOOLS_MAX && OPENAI.contains(&model.id().provider.as_str()) {
        warnings.push(format!(
            "MCP servers offer {tools} tools, and this provider takes {OPENAI_TOOLS_MAX} in all; `allow` or `disabled` in \
             [mcp.servers.NAME] leaves some out"
        ));
    }
    warnings
}

/// Returns the remedy for a request that does not fit because of the servers' tools; `None` if they
/// are not the reason.
pub(crate) fn remedy(window: u32, reports: &[ServerReport]) -> Option<String> {
    let shares = shares(window, reports)?;
    Some(format!(
        "`allow` or `disabled` in [mcp.servers.NAME]: the tools of MCP servers take about {shares}"
    ))
}

/// Returns the tokens of all tools and those of the largest servers, if they are a large share of
/// the context window.
fn shares(window: u32, reports: &[ServerReport]) -> Option<String> {
    let mut sizes: Vec<(&str, u32)> = reports
        .iter()
        .map(|report| (report.name.as_str(), report.tokens()))
        .filter(|(_, tokens)| *tokens > 0)
        .collect();
    let all = sizes
        .iter()
        .fold(0_u32, |sum, (_, tokens)| sum.saturating_add(*tokens));
    if all == 0 || all < window / SHARE {
        return None;
    }
    sizes.sort_by_key(|(name, tokens)| (std::cmp::Reverse(*tokens), *name));
    let named = sizes.iter().take(NAMED_MAX);
    let named: Vec<String> = named
        .map(|(name, tokens)| format!("{name} {tokens}"))
        .collect();
    let more = if sizes.len() > NAMED_MAX { ", …" } else { "" };
    Some(format!("{all} ({}{more})", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use adjutant_core::Annotations;
    use adjutant_mcp::client::{Health, JoinedTool, ServerName};

    use super::*;

    fn report(name: &str, tokens: u32) -> ServerReport {
        ServerReport {
            name: ServerName::new(name).unwrap(),
            place: String::new(),
            health: Health::Connected,
            software: None,
            tools: vec![JoinedTool {
                name: format!("{name}__t"),
                original: "t".to_owned(),
                title: None,
                annotations: Annotations::default(),
                tokens,
            }],
            left_out: Vec::new(),
            changed: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_largest_servers_are_named_from_a_quarter_of_the_window_on() {
        let reports = [report("small", 100), report("large", 1_900)];
        assert_eq!(shares(8_004, &reports), None);
        assert_eq!(
            shares(8_000, &reports).as_deref(),
            Some("2000 (large 1900, small 100)")
        );
        assert_eq!(remedy(8_004, &reports), None);
        let many: Vec<ServerReport> = (0..7).map(|n| report(&format!("s{n}"), 10)).collect();
        assert!(shares(100, &many).unwrap().ends_with("s4 10, …)"));
        assert_eq!(shares(100, &[report("none", 0)]), None);
    }
}

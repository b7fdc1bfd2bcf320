//! Filters of the log, by crate and level.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::error::CliError;
use crate::terminal::display::clip;
use crate::terminal::screen::Verbosity;

/// Prefix of the names of our own crates.
pub(super) const OURS: &str = "adjutant";
/// Target of the events of answered requests.
const REQUESTS: &str = "adjutant_service::request";

/// Returns the default filter: INFO of our own crates; with `-v` also each request, with `-q`
/// errors only.
pub(super) fn default(verbosity: Verbosity) -> Targets {
    let ours = |level| Targets::new().with_target(OURS, level);
    match verbosity {
        Verbosity::Quiet => ours(LevelFilter::ERROR),
        Verbosity::Normal => ours(LevelFilter::INFO).with_target(REQUESTS, LevelFilter::OFF),
        Verbosity::Verbose => ours(LevelFilter::INFO),
    }
}

/// Parses a filter such as `info,adjutant_store=debug`. A level without a crate applies to our own
/// crates only: logs of other crates may contain message texts, so they have to be named.
pub(super) fn parse(filter: &str) -> Result<Targets, CliError> {
    let parts = filter
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let parts: Vec<String> = parts
        .map(|part| {
            if part.contains('=') {
                part.to_owned()
            } else {
                format!("{OURS}={part}")
            }
        })
        .collect();
    let filters = parts.join(",").parse::<Targets>();
    filters.map_err(|error| {
        CliError::configuration(format!(
            "ADJUTANT_LOG (serve.log) is no filter of logs: {}",
            clip(filter, 80)
        ))
        .because(error.to_string())
        .or_try("ADJUTANT_LOG=info, or one of error, warn, debug, trace, off")
        .or_try("ADJUTANT_LOG=info,adjutant_store=debug")
    })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_alone_is_that_of_our_own_crates() {
        let filter = parse(" info, adjutant_store=debug ,hyper=warn").unwrap();
        for (target, level, expected) in [
            ("adjutant_service::serve", Level::INFO, true),
            ("adjutant_service::request", Level::INFO, true),
            ("adjutant_service", Level::DEBUG, false),
            ("adjutant_store::postgres", Level::DEBUG, true),
            ("hyper::proto", Level::WARN, true),
            ("hyper::proto", Level::INFO, false),
            ("rmcp", Level::ERROR, false),
        ] {
            assert_eq!(
                filter.would_enable(target, &level),
                expected,
                "{target} {level}"
            );
        }
        assert!(
            !parse("off")
                .unwrap()
                .would_enable("adjutant_service", &Level::ERROR)
        );
        for bad in ["loud", "adjutant_store=loud"] {
            assert!(parse(bad).unwrap_err().message.contains(bad));
        }
    }

    #[test]
    fn requests_are_logged_with_the_option_verbose() {
        for (verbosity, requests, news) in [
            (Verbosity::Quiet, false, false),
            (Verbosity::Normal, false, true),
            (Verbosity::Verbose, true, true),
        ] {
            let filter = default(verbosity);
            let logged = [REQUESTS, "adjutant_service::serve"]
                .map(|it| filter.would_enable(it, &Level::INFO));
            assert_eq!(logged, [requests, news], "{verbosity:?}");
            assert!(filter.would_enable("adjutant_runtime", &Level::ERROR));
        }
    }
}

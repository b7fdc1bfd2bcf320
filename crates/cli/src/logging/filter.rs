//! Filters of the log, by crate and level.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::display::clip;
use crate::error::CliError;
use crate::screen::Verbosity;

/// Our own crates, all of whose names begin like this.
pub(super) const OURS: &str = "adjutant";
/// The events of answered requests.
const REQUESTS: &str = "adjutant_service::request";

/// Returns the filter without a setting: INFO of our own crates; with `-v` also each request, with
/// `-q` errors only.
pub(super) fn usual(verbosity: Verbosity) -> Targets {
    let ours = |level| Targets::new().with_target(OURS, level);
    match verbosity {
        Verbosity::Quiet => ours(LevelFilter::ERROR),
        Verbosity::Normal => ours(LevelFilter::INFO).with_target(REQUESTS, LevelFilter::OFF),
        Verbosity::Verbose => ours(LevelFilter::INFO),
    }
}

/// Reads a filter such as `info,adjutant_store=debug`. A level alone is that of our own crates:
/// what others log may have in it what somebody said, so they have to be named.
pub(super) fn read(filter: &str) -> Result<Targets, CliError> {
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
    parts.join(",").parse().map_err(|_| {
        CliError::configuration(format!(
            "ADJUTANT_LOG (serve.log) is no filter of logs: {}",
            clip(filter, 80)
        ))
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
        let filter = read(" info, adjutant_store=debug ,hyper=warn").unwrap();
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
            !read("off")
                .unwrap()
                .would_enable("adjutant_service", &Level::ERROR)
        );
        for bad in ["loud", "adjutant_store=loud"] {
            assert!(read(bad).unwrap_err().message.contains(bad));
        }
    }

    #[test]
    fn requests_are_logged_for_whoever_asks() {
        for (verbosity, requests, news) in [
            (Verbosity::Quiet, false, false),
            (Verbosity::Normal, false, true),
            (Verbosity::Verbose, true, true),
        ] {
            let filter = usual(verbosity);
            let logged = [REQUESTS, "adjutant_service::serve"]
                .map(|it| filter.would_enable(it, &Level::INFO));
            assert_eq!(logged, [requests, news], "{verbosity:?}");
            assert!(filter.would_enable("adjutant_runtime", &Level::ERROR));
        }
    }
}

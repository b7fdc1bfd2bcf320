//! The cost of compiling and matching a regular expression of a schema.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::load::Load;

/// Weight of one state of an expression in [`Load::reads`].
const PLACE: u64 = 16;
/// Approximate number of character ranges in a class like `\p{L}`.
const RANGES_OF_PROPERTY: u64 = 700;

/// The size of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Number of states, repetitions expanded.
    places: u64,
    /// Number of character ranges of all states: the memory of its compiled form.
    pub(super) ranges: u64,
    /// True if it has look-around or back-references, so that matching backtracks.
    pub(super) backtracks: bool,
}

impl Pattern {
    /// Measures an expression of ECMA-262. An invalid one is reported when the validator is built.
    pub(super) fn measure(pattern: &str) -> Self {
        // The translation is the validator's, so that what is measured is what is matched.
        let parsed = jsonschema_regex::to_rust_regex(pattern)
            .ok()
            .and_then(|it| regex_syntax::parse(&it).ok());
        parsed.map_or_else(|| Self::estimated(pattern), |hir| Self::measured(&hir))
    }

    /// Returns the cost of matching it.
    pub(super) fn load(self) -> Load {
        Load {
            checks: 0,
            reads: self.places.saturating_mul(PLACE),
            backtracks: self.backtracks.into(),
        }
    }

    fn measured(hir: &Hir) -> Self {
        let leaf = |places, ranges| Self {
            places,
            ranges,
            backtracks: false,
        };
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => leaf(1, 1),
            HirKind::Class(Class::Unicode(class)) => leaf(1, class.ranges().len() as u64),
            HirKind::Class(Class::Bytes(class)) => leaf(1, class.ranges().len() as u64),
            HirKind::Literal(literal) => leaf(literal.0.len() as u64, literal.0.len() as u64),
            HirKind::Repetition(repeated) => {
                // The engine compiles a bounded repetition to as many copies; an unbounded one is a
                // loop.
                let times = u64::from(repeated.max.unwrap_or(repeated.min).max(1));
                let once = Self::measured(&repeated.sub);
                leaf(
                    once.places.saturating_mul(times),
                    once.ranges.saturating_mul(times),
                )
            }
            HirKind::Capture(capture) => Self::measured(&capture.sub),
            HirKind::Concat(all) | HirKind::Alternation(all) => {
                all.iter().map(Self::measured).fold(leaf(0, 0), |sum, one| {
                    leaf(
                        sum.places.saturating_add(one.places),
                        sum.ranges.saturating_add(one.ranges),
                    )
                })
            }
        }
    }

    /// Returns an upper bound for an expression that the linear engine cannot parse: as if
    /// everything in it were repeated by each of its counts.
    fn estimated(pattern: &str) -> Self {
        let times = pattern
            .split('{')
            .skip(1)
            .filter_map(|behind| behind.split_once('}'))
            .filter_map(|(count, _)| {
                let (least, most) = count.split_once(',').unwrap_or((count, count));
                let most = if most.is_empty() { least } else { most };
                most.trim().parse::<u64>().ok()
            });
        let times = times.fold(1_u64, |product, times| product.saturating_mul(times.max(1)));
        let properties = (pattern.matches("\\p").count() + pattern.matches("\\P").count()) as u64;
        let length = pattern.len() as u64;
        Self {
            places: length.saturating_mul(times),
            ranges: (length + properties * RANGES_OF_PROPERTY).saturating_mul(times),
            backtracks: true,
        }
    }
}

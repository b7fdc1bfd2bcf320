//! What a regular expression of a schema costs to compile and to match.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::load::Load;

/// What one place of an expression weighs in [`Load::reads`].
const PLACE: u64 = 16;
/// Ranges of characters in a class like `\p{L}`, about.
const RANGES_OF_PROPERTY: u64 = 700;

/// How large a regular expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Its places, each as often as it is repeated.
    places: u64,
    /// The ranges of characters at them: what its compiled form takes in memory.
    pub(super) ranges: u64,
    /// It looks around or back, so matching it takes backtracking.
    pub(super) backtracks: bool,
}

impl Pattern {
    /// Measures an expression of ECMA-262. One that is none is told when the validator is built.
    pub(super) fn of(pattern: &str) -> Self {
        let parsed = jsonschema_regex::to_rust_regex(pattern)
            .ok()
            .and_then(|it| regex_syntax::parse(&it).ok());
        parsed.map_or_else(|| Self::estimated(pattern), |hir| Self::measured(&hir))
    }

    /// What matching it costs.
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

    /// An upper bound from the text of an expression that the linear engine does not read: as if
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

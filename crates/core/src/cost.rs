//! Costs of model calls.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// An amount of money in billionths of a US dollar, so that a price of a cent for a million tokens
/// is exact.
///
/// There is no unknown amount: an unknown cost is `None`, and shown as `$?`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Creates an amount from billionths of a dollar.
    #[must_use]
    pub fn from_nano_usd(nano_usd: u64) -> Self {
        Self(nano_usd)
    }

    /// Creates an amount from dollars, as providers report it. Returns `None` unless the number is
    /// from 0 to a billion.
    #[must_use]
    pub fn from_usd(usd: f64) -> Option<Self> {
        (0.0..=1e9)
            .contains(&usd)
            .then(|| Self((usd * 1e9).round() as u64))
    }

    /// Returns the amount in billionths of a dollar.
    #[must_use]
    pub fn nano_usd(self) -> u64 {
        self.0
    }

    /// Returns the amount in dollars.
    #[must_use]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Adds two costs. The sum is unknown if one of them is.
    #[must_use]
    pub fn sum(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        Some(a? + b?)
    }
}

/// Serialisation of a cost outside of the journal: dollars, or `null` if unknown.
pub(crate) mod in_usd {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Cost;

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(crate) fn serialize<S: Serializer>(
        cost: &Option<Cost>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        cost.map(Cost::usd).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cost>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.and_then(Cost::from_usd))
    }
}

/// Serialises a known amount as a number of dollars.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
pub(crate) fn as_usd<S: serde::Serializer>(cost: &Cost, serializer: S) -> Result<S::Ok, S::Error> {
    cost.usd().serialize(serializer)
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Cost {
    /// Writes two significant digits below a dollar and cents above: `$0.0034`, `$1.20`, `$0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.usd();
        if self.0 == 0 {
            return f.write_str("$0");
        }
        if usd >= 1.0 {
            return write!(f, "${usd:.2}");
        }
        let mut digits = 2;
        let mut first = usd * 10.0;
        while first < 1.0 && digits < 9 {
            first *= 10.0;
            digits += 1;
        }
        write!(f, "${usd:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_never_round_to_nothing() {
        let shown = |nano| Cost::from_nano_usd(nano).to_string();
        assert_eq!(
            [
                0,
                1,
                75,
                3_400_000,
                250_000_000,
                1_200_000_000,
                12_345_678_901
            ]
            .map(shown),
            [
                "$0",
                "$0.000000001",
                "$0.000000075",
                "$0.0034",
                "$0.25",
                "$1.20",
                "$12.35"
            ]
        );
    }

    #[test]
    fn a_reported_amount_is_a_number_of_dollars() {
        assert_eq!(
            Cost::from_usd(0.000_123),
            Some(Cost::from_nano_usd(123_000))
        );
        assert_eq!(
            [f64::NAN, -1.0, f64::INFINITY].map(Cost::from_usd),
            [None; 3]
        );
    }
}

//! Figures of summaries: shares with their intervals, and percentiles.

use serde::{Serialize, Serializer};

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A share of runs with its Wilson interval of 95 %. Shares are from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) count: usize,
    #[serde(serialize_with = "in_four_digits")]
    pub(crate) share: f64,
    #[serde(serialize_with = "in_four_digits")]
    pub(crate) low: f64,
    #[serde(serialize_with = "in_four_digits")]
    pub(crate) high: f64,
}

/// Rounds a figure where it is written, so that the text for people is not rounded twice.
fn in_four_digits<S: Serializer>(share: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rounded(*share, 4))
}

impl Share {
    /// Returns the share of `count` in `total`; all figures are 0 if there is nothing to count.
    pub(crate) fn of(count: usize, total: usize) -> Self {
        if total == 0 {
            return Self::default();
        }
        let (share, runs) = (count as f64 / total as f64, total as f64);
        let scale = 1.0 + Z * Z / runs;
        let middle = (share + Z * Z / (2.0 * runs)) / scale;
        let variance = share * (1.0 - share) / runs + Z * Z / (4.0 * runs * runs);
        let half = Z * variance.sqrt() / scale;
        Self {
            count,
            share,
            low: (middle - half).max(0.0),
            high: (middle + half).min(1.0),
        }
    }
}

impl Share {
    /// Formats the share and its interval in percent, in columns.
    pub(crate) fn to_text(self) -> String {
        let percent = |share: f64| format!("{:5.1} %", share * 100.0);
        format!(
            "{}  {} to {}",
            percent(self.share),
            percent(self.low),
            percent(self.high)
        )
    }
}

/// Rounds a value to `digits` digits after the point.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Returns the nearest-rank percentile of sorted values; 0 if there are none.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_wilson() {
        // Formula: Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion" (2001).
        for (count, total, share, low, high) in [
            (0, 10, 0.0, 0.0, 0.2775),
            (10, 10, 1.0, 0.7225, 1.0),
            (5, 10, 0.5, 0.2366, 0.7634),
            (151, 157, 0.9618, 0.9191, 0.9824),
            (1, 1, 1.0, 0.2065, 1.0),
        ] {
            let found = Share::of(count, total);
            let figures = [found.share, found.low, found.high];
            assert_eq!(figures.map(|figure| rounded(figure, 4)), [share, low, high]);
            assert_eq!(found.count, count);
        }
        assert_eq!(Share::of(0, 0), Share::default());
    }
}

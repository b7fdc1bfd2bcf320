//! Logistic regression: one linear unit a label, over standardised features.

use std::collections::VecDeque;

/// Steps of the descent at most. More change no figure.
const STEPS_MAX: usize = 60;
/// Length of the slope, against that of the first one, at which the descent ends.
const SLOPE_MIN: f32 = 1e-3;
/// Earlier steps by which the curvature of the loss is estimated.
const MEMORY: usize = 8;
/// Share of the expected decrease that a step has to bring, and times that it is halved at most.
const DECREASE_MIN: f32 = 1e-4;
const HALVINGS_MAX: usize = 12;

/// A fitted unit: weights and bias over features as they are.
pub(crate) type Unit = (Vec<f32>, f32);

/// Rows of features that units are fitted to.
pub(crate) trait Rows {
    /// Returns the number of features of a row.
    fn width(&self) -> usize;

    /// Returns the product of a row and weights.
    fn output(&self, row: usize, weights: &[f32]) -> f32;

    /// Adds a multiple of a row to weights.
    fn add_to(&self, row: usize, weights: &mut [f32], times: f32);

    /// Returns a unit over standardised features as one over features as they are.
    fn restored(&self, unit: Unit) -> Unit {
        unit
    }

    /// Returns a unit over features as they are as one over standardised features.
    fn standardised(&self, unit: &Unit) -> Unit {
        unit.clone()
    }
}

/// Rows with a number for every feature, standardised: each has the mean 0 and the deviation 1.
pub(crate) struct Dense {
    rows: Vec<Vec<f32>>,
    means: Vec<f32>,
    deviations: Vec<f32>,
}

impl Dense {
    /// Standardises rows of the same length.
    pub(crate) fn standardised(rows: &[&Vec<f32>]) -> Self {
        let width = rows.first().map_or(0, |row| row.len());
        let count = rows.len().max(1) as f64;
        let mut means = vec![0f64; width];
        let mut squares = vec![0f64; width];
        for row in rows {
            for (at, value) in row.iter().enumerate() {
                means[at] += f64::from(*value);
                squares[at] += f64::from(*value) * f64::from(*value);
            }
        }
        let means: Vec<f64> = means.into_iter().map(|sum| sum / count).collect();
        let deviation =
            |(sum, mean): (f64, &f64)| ((sum / count - mean * mean).max(1e-12)).sqrt() as f32;
        let deviations: Vec<f32> = squares.into_iter().zip(&means).map(deviation).collect();
        let means: Vec<f32> = means.into_iter().map(|mean| mean as f32).collect();
        let standardise = |row: &&Vec<f32>| {
            row.iter()
                .zip(means.iter().zip(&deviations))
                .map(|(value, (mean, deviation))| (value - mean) / deviation)
                .collect()
        };
        Self {
            rows: rows.iter().map(standardise).collect(),
            means,
            deviations,
        }
    }
}

impl Rows for Dense {
    fn width(&self) -> usize {
        self.means.len()
    }

    fn output(&self, row: usize, weights: &[f32]) -> f32 {
        dot(&self.rows[row], weights)
    }

    fn add_to(&self, row: usize, weights: &mut [f32], times: f32) {
        for (weight, value) in weights.iter_mut().zip(&self.rows[row]) {
            *weight += times * value;
        }
    }

    fn restored(&self, (weights, bias): Unit) -> Unit {
        let scaled = weights.iter().zip(&self.deviations);
        let own: Vec<f32> = scaled.map(|(weight, scale)| weight / scale).collect();
        let shift = dot(&own, &self.means);
        (own, bias - shift)
    }

    fn standardised(&self, (weights, bias): &Unit) -> Unit {
        let scaled = weights.iter().zip(&self.deviations);
        let own = scaled.map(|(weight, scale)| weight * scale).collect();
        (own, bias + dot(weights, &self.means))
    }
}

/// Rows that have some features, and not the others.
pub(crate) struct Sparse {
    pub(crate) rows: Vec<Vec<usize>>,
    pub(crate) width: usize,
}

impl Rows for Sparse {
    fn width(&self) -> usize {
        self.width
    }

    fn output(&self, row: usize, weights: &[f32]) -> f32 {
        self.rows[row].iter().map(|at| weights[*at]).sum()
    }

    fn add_to(&self, row: usize, weights: &mut [f32], times: f32) {
        for at in &self.rows[row] {
            weights[*at] += times;
        }
    }
}

/// Rows and their labels, which a unit is fitted to.
pub(crate) struct Problem<'a, R> {
    pub(crate) rows: &'a R,
    pub(crate) labels: &'a [bool],
    /// The weight of each row in the loss.
    pub(crate) weights: &'a [f32],
    /// The weight of the penalty for a unit that is far from the known one.
    pub(crate) strength: f32,
    /// Without one, the penalty is for large weights.
    pub(crate) known: Option<&'a Unit>,
}

impl<R: Rows> Problem<'_, R> {
    /// Fits a unit: logistic regression by the L-BFGS method.
    pub(crate) fn fit(&self) -> Unit {
        let (mut known, bias) = match self.known {
            Some(known) => self.rows.standardised(known),
            None => (vec![0f32; self.rows.width()], 0.0),
        };
        // The last weight is the bias.
        known.push(bias);
        let mut weights = known.clone();
        let (mut loss, mut slope) = self.loss(&weights, &known);
        let first = norm(&slope);
        let mut steps: VecDeque<Step> = VecDeque::new();
        for _ in 0..STEPS_MAX {
            if norm(&slope) <= first * SLOPE_MIN {
                break;
            }
            let direction = direction(&slope, &steps);
            let decrease = dot(&slope, &direction);
            let mut length = if steps.is_empty() { 1.0 / first } else { 1.0 };
            let mut found = None;
            for _ in 0..HALVINGS_MAX {
                let next = moved(&weights, &direction, length);
                let (next_loss, next_slope) = self.loss(&next, &known);
                if next_loss <= loss + DECREASE_MIN * length * decrease {
                    found = Some((next, next_loss, next_slope));
                    break;
                }
                length /= 2.0;
            }
            let Some((next, next_loss, next_slope)) = found else {
                break;
            };
            let step = Step::new(&weights, &next, &slope, &next_slope);
            if step.curvature > 0.0 {
                steps.push_back(step);
            }
            if steps.len() > MEMORY {
                steps.pop_front();
            }
            (weights, loss, slope) = (next, next_loss, next_slope);
        }
        let bias = weights.pop().unwrap_or_default();
        self.rows.restored((weights, bias))
    }

    /// Returns the mean loss of weights, with its slope.
    fn loss(&self, weights: &[f32], known: &[f32]) -> (f32, Vec<f32>) {
        let (own, bias) = weights.split_at(weights.len() - 1);
        let far = moved(own, &known[..own.len()], -1.0);
        let mut slope: Vec<f32> = far.iter().map(|far| self.strength * far).collect();
        let mut bias_slope = 0f32;
        let mut loss = 0f64;
        let whole = self.weights.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        for (row, (label, weight)) in self.labels.iter().zip(self.weights).enumerate() {
            let share = weight / whole;
            let output = self.rows.output(row, own) + bias[0];
            let target = f32::from(u8::from(*label));
            let probability = 1.0 / (1.0 + (-output).exp());
            let signed = if *label { output } else { -output };
            // The logarithm of 1 + exp(-signed), for any size of it.
            let of_row = (-signed).max(0.0) + (-signed.abs()).exp().ln_1p();
            loss += f64::from(share * of_row);
            let error = (probability - target) * share;
            bias_slope += error;
            self.rows.add_to(row, &mut slope, error);
        }
        slope.push(bias_slope);
        let penalty = 0.5 * self.strength * dot(&far, &far);
        (loss as f32 + penalty, slope)
    }
}

/// A step of the descent: how weights and slope changed.
struct Step {
    weights: Vec<f32>,
    slope: Vec<f32>,
    curvature: f32,
}

impl Step {
    fn new(before: &[f32], after: &[f32], slope_before: &[f32], slope_after: &[f32]) -> Self {
        let change = |before: &[f32], after: &[f32]| -> Vec<f32> {
            after
                .iter()
                .zip(before)
                .map(|(after, before)| after - before)
                .collect()
        };
        let (weights, slope) = (change(before, after), change(slope_before, slope_after));
        let curvature = dot(&weights, &slope);
        Self {
            weights,
            slope,
            curvature,
        }
    }
}

/// Returns the direction of the next step: down the slope, by the curvature of earlier steps.
fn direction(slope: &[f32], steps: &VecDeque<Step>) -> Vec<f32> {
    let mut direction = slope.to_vec();
    let mut shares = Vec::new();
    for step in steps.iter().rev() {
        let share = dot(&step.weights, &direction) / step.curvature;
        shares.push(share);
        direction = moved(&direction, &step.slope, -share);
    }
    if let Some(last) = steps.back() {
        let scale = last.curvature / dot(&last.slope, &last.slope);
        direction.iter_mut().for_each(|value| *value *= scale);
    }
    for (step, share) in steps.iter().zip(shares.iter().rev()) {
        let back = dot(&step.slope, &direction) / step.curvature;
        direction = moved(&direction, &step.weights, share - back);
    }
    direction.iter_mut().for_each(|value| *value = -*value);
    direction
}

fn moved(from: &[f32], direction: &[f32], length: f32) -> Vec<f32> {
    from.iter()
        .zip(direction)
        .map(|(from, direction)| from + length * direction)
        .collect()
}

fn norm(values: &[f32]) -> f32 {
    dot(values, values).sqrt()
}

/// Returns the dot product, summed in lanes that the processor adds at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0f32; LANES];
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a_lanes
        .remainder()
        .iter()
        .zip(b_lanes.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

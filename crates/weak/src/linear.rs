//! Linear units over hashed features, in files with weights of 8 bits.

/// Weights of a unit. Features are spread over them by a hash.
pub(crate) const WIDTH: usize = 1 << 14;
/// Bytes of a unit in a file: the step of its weights, the bias, and a byte a weight.
const UNIT_BYTES: usize = size_of::<f32>() * 2 + WIDTH;

/// Weights and bias.
pub(crate) type Unit = (Vec<f32>, f32);

/// Reads the bytes of [`to_bytes`]. `None` for those of another number of units.
pub(crate) fn from_bytes(bytes: &[u8], count: usize) -> Option<Vec<Unit>> {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap_or_default());
    let unit = |unit: &[u8]| {
        let (step, rest) = unit.split_at(size_of::<f32>());
        let (bias, weights) = rest.split_at(size_of::<f32>());
        let step = number(step);
        let weights = weights
            .iter()
            .map(|byte| f32::from(i8::from_le_bytes([*byte])) * step);
        (weights.collect(), number(bias))
    };
    let is_whole = bytes.len() == UNIT_BYTES * count;
    is_whole.then(|| bytes.chunks_exact(UNIT_BYTES).map(unit).collect())
}

/// Returns units as bytes, one behind the other.
pub(crate) fn to_bytes<'a>(units: impl IntoIterator<Item = &'a Unit>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (weights, bias) in units {
        let largest = weights
            .iter()
            .fold(0f32, |max, weight| max.max(weight.abs()));
        let step = (largest / f32::from(i8::MAX)).max(f32::MIN_POSITIVE);
        bytes.extend(step.to_le_bytes());
        bytes.extend(bias.to_le_bytes());
        bytes.extend(weights.iter().flat_map(|weight| {
            // Within an i8, by the choice of the step.
            ((weight / step).round() as i8).to_le_bytes()
        }));
    }
    bytes
}

/// Returns the output of a unit for features that are present.
pub(crate) fn output((weights, bias): &Unit, features: &[usize]) -> f32 {
    features.iter().map(|at| weights[*at]).sum::<f32>() + bias
}

/// Returns the place of a feature: the FNV-1a hash of its kind and text, cut to the width.
pub(crate) fn hashed(kind: &str, text: &str) -> usize {
    const OFFSET: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let bytes = kind.bytes().chain([b' ']).chain(text.bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(PRIME)
    });
    // The upper half is mixed in: the lower bits of this hash are its weakest.
    (hash ^ (hash >> 16)) as usize % WIDTH
}

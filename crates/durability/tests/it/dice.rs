//! A sequence that looks random and is the same every time.

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Rolls a number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        // Source: Knuth's MMIX multiplier; the high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

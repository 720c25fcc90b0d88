//! Cost of a kind of call, by the number of its sections.

/// Weight of earlier observations, relative to 1 for the last call.
const KEPT: f64 = 0.9;

/// Straight line through the last calls: least squares, with older calls weighted less and less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    calls: f64,
    sections: f64,
    ms: f64,
    squares: f64,
    products: f64,
}

impl Cost {
    pub(super) fn saw(&mut self, sections: f64, ms: f64) {
        let add = |sum: &mut f64, one: f64| *sum = *sum * KEPT + one;
        add(&mut self.calls, 1.0);
        add(&mut self.sections, sections);
        add(&mut self.ms, ms);
        add(&mut self.squares, sections * sections);
        add(&mut self.products, sections * ms);
    }

    /// Returns the milliseconds of a call itself, and of each section in it. While all calls had
    /// the same number of sections, all their time may be counted as the sections'.
    pub(super) fn line(self) -> (f64, f64) {
        let spread = self.calls * self.squares - self.sections * self.sections;
        let each_ms = if spread > self.squares / 100.0 {
            (self.calls * self.products - self.sections * self.ms) / spread
        } else {
            self.ms / self.sections.max(1.0)
        };
        let each_ms = each_ms.max(0.0);
        ((self.ms - each_ms * self.sections).max(0.0) / self.calls.max(1.0), each_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_once_calls_differ() {
        let mut cost = Cost::default();
        let call_ms = |sections: f64| 120.0 + 0.5 * sections;
        for _ in 0..3 {
            cost.saw(64.0, call_ms(64.0));
        }
        let (call, each) = cost.line();
        assert!(call < 0.001 && (each - call_ms(64.0) / 64.0).abs() < 0.001, "{call} {each}");
        cost.saw(32.0, call_ms(32.0));
        let (call, each) = cost.line();
        assert!((call - 120.0).abs() < 0.001 && (each - 0.5).abs() < 0.001, "{call} {each}");
    }
}

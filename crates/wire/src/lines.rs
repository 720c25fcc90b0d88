//! Many numbers in decimal, each between the same bytes.
//!
//! IDs of one batch follow one another, so nearly all of them differ from the previous ID only in
//! their last two digits. Only these digits are overwritten; the rest of the line stays.

/// Length of the line buffer: the longest number of 64 bits, and the bytes before and after it.
const BYTES: usize = 32;
const AFFIX_BYTES_MAX: usize = (BYTES - 20) / 2;

/// A writer of numbers, each between the same beginning and end.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    begin: &'static [u8],
    end: &'static [u8],
    /// The previous number without its last two digits; 0 before the first.
    hundreds: u64,
    /// The line of the previous number; `length` bytes of it are used.
    line: [u8; BYTES],
    length: usize,
}

impl Lines {
    pub(crate) const fn new(begin: &'static [u8], end: &'static [u8]) -> Self {
        assert!(begin.len() <= AFFIX_BYTES_MAX && end.len() <= AFFIX_BYTES_MAX, "no room for it");
        Self { begin, end, hundreds: 0, line: [0; BYTES], length: 0 }
    }

    /// Sets the line to a number.
    #[inline]
    fn set(&mut self, number: u64) {
        let hundreds = number / 100;
        if hundreds == 0 || hundreds != self.hundreds {
            self.write(number);
            self.hundreds = hundreds;
        } else {
            let [rest, ..] = (number % 100).to_le_bytes();
            let last = self.length.saturating_sub(self.end.len()).saturating_sub(1);
            if let Some([tens, ones]) = self.line.get_mut(last.saturating_sub(1)..=last) {
                (*tens, *ones) = (b'0' + rest / 10, b'0' + rest % 10);
            }
        }
    }

    #[inline(never)]
    fn write(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        self.length = 0;
        for part in [self.begin, digits, self.end] {
            let end = self.length.saturating_add(part.len());
            if let Some(place) = self.line.get_mut(self.length..end) {
                place.copy_from_slice(part);
            }
            self.length = end;
        }
    }

    /// Appends the lines of all these numbers to `out`.
    pub(crate) fn append(mut self, numbers: &[u64], out: &mut Vec<u8>) {
        let longest = 20 + self.begin.len() + self.end.len();
        out.reserve(numbers.len().saturating_mul(longest).saturating_add(BYTES));
        for &number in numbers {
            self.set(number);
            let length = out.len().saturating_add(self.length);
            // Copies more than the line: a copy of constant length needs no call.
            out.extend_from_slice(&self.line);
            out.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(numbers: &[u64]) -> String {
        let mut out = Vec::new();
        Lines::new(b"<", b">").append(numbers, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn plainly(numbers: &[u64]) -> String {
        numbers.iter().map(|number| format!("<{number}>")).collect()
    }

    #[test]
    fn numbers_near_multiples_of_a_hundred() {
        let edges =
            [0, 1, 9, 10, 99, 100, 101, 109, 110, 199, 200, 0, 5, 105, 5, u64::MAX, u64::MAX - 1];
        assert_eq!(written(&edges), plainly(&edges));
        let all: Vec<u64> = (0..2_000).collect();
        assert_eq!(written(&all), plainly(&all));
    }

    proptest! {
        #[test]
        fn lines_of_numbers_equal_single_lines(first: u64, steps in prop::collection::vec(0_u64..150, 0..50)) {
            let mut number = first;
            let numbers: Vec<u64> = steps
                .into_iter()
                .map(|step| {
                    number = number.wrapping_add(step);
                    number
                })
                .collect();
            prop_assert_eq!(written(&numbers), plainly(&numbers));
        }
    }
}

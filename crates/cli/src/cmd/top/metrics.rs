//! The samples of `/metrics` that the view shows.

use std::collections::BTreeMap;
use std::time::Duration;

/// Samples of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    /// Requests for each source that failed, since the server's start.
    pub(super) source_errors: BTreeMap<String, u64>,
    /// Requests that ended in an error, by code and protocol, since the server's start.
    pub(super) request_errors: BTreeMap<(String, String), u64>,
    /// Milliseconds that the window of each source reaches.
    pub(super) window_ms: BTreeMap<String, u64>,
    /// Milliseconds until the prefetched numbers of each source run out.
    pub(super) prefetch_ms: BTreeMap<String, u64>,
    /// Prefetched numbers of each source.
    pub(super) prefetched: BTreeMap<String, u64>,
}

impl Metrics {
    /// Reads a page in the text form of OpenMetrics. Skips other samples and unreadable lines.
    pub(super) fn read(page: &str) -> Self {
        let mut metrics = Self::default();
        for line in page.lines() {
            metrics.add(line);
        }
        metrics
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once('{')?;
        let (labels, value) = rest.rsplit_once("} ")?;
        let source = || label(labels, "source");
        match name {
            "snowmint_source_errors_total" => {
                self.source_errors.insert(source()?, count(value)?);
            }
            "snowmint_request_errors_total" => {
                let key = (label(labels, "code")?, label(labels, "protocol")?);
                self.request_errors.insert(key, count(value)?);
            }
            "snowmint_window_runway_seconds" => {
                self.window_ms.insert(source()?, thousandths(value)?);
            }
            "snowmint_segment_runway_seconds" => {
                self.prefetch_ms.insert(source()?, thousandths(value)?);
            }
            "snowmint_segment_prefetched" => {
                self.prefetched.insert(source()?, thousandths(value)? / 1_000);
            }
            _ => {}
        }
        Some(())
    }
}

/// Returns the value of a label.
fn label(labels: &str, name: &str) -> Option<String> {
    let mut rest = labels;
    loop {
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        if key == name {
            return Some(value);
        }
        rest = after.strip_prefix(',')?;
    }
}

/// Returns an escaped text up to its closing quote, and the text after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut letters) = (String::new(), text.chars());
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            letter => value.push(letter),
        }
    }
}

/// Returns a count, without the time that may follow it.
fn count(value: &str) -> Option<u64> {
    value.split(' ').next()?.parse().ok()
}

/// Returns a number in thousandths; 0 for a negative one.
fn thousandths(value: &str) -> Option<u64> {
    let number: f64 = value.split(' ').next()?.parse().ok()?;
    let length = Duration::try_from_secs_f64(number.max(0.0)).ok()?;
    u64::try_from(length.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let page = "# TYPE snowmint_ready gauge\nsnowmint_ready 1\n\
            snowmint_source_errors_total{source=\"a\\\"b\\\\\"} 7\n\
            snowmint_request_errors_total{protocol=\"http\",code=\"unknown_source\"} 3\n\
            snowmint_window_runway_seconds{source=\"a\"} 19.94\n\
            snowmint_window_runway_seconds{source=\"b\"} -0.5\n\
            snowmint_segment_prefetched{source=\"c\"} 95.0 1795952308.1\n\
            snowmint_segment_runway_seconds{source=\"c\"} 1.5\n\
            snowmint_segment_runway_seconds{source=\"d\"} NaN\n\
            snowmint_segment_runway_seconds{source=\"e\n# EOF\n";
        let metrics = Metrics::read(page);
        assert_eq!(metrics.source_errors["a\"b\\"], 7);
        let key = ("unknown_source".to_owned(), "http".to_owned());
        assert_eq!(metrics.request_errors, BTreeMap::from([(key, 3)]));
        assert_eq!((metrics.window_ms["a"], metrics.window_ms["b"]), (19_940, 0));
        assert_eq!((metrics.prefetched["c"], metrics.prefetch_ms["c"]), (95, 1_500));
        assert!(!metrics.prefetch_ms.contains_key("e"), "{metrics:?}");
    }
}

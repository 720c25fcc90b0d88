//! Metric families, in the form of the Prometheus library.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use snowmint_coord::TimesSeen;
use snowmint_coord::stats::BOUNDS_US;

use super::page_format::PageFormat;

/// Label names and values.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

const US_PER_SECOND: f64 = 1_000_000.0;

/// Converts milliseconds to seconds, Prometheus's unit.
pub(super) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// Writer of one family after the other.
///
/// The library writes OpenMetrics, in which a family lacks the ending that its samples have. In the
/// format of Prometheus both have it. So there a count is written as a gauge, to which the library
/// adds no ending, under the type of a count.
pub(super) struct Families<'a> {
    pub(super) encoder: DescriptorEncoder<'a>,
    pub(super) format: PageFormat,
}

impl Families<'_> {
    /// Writes a family of values that go up and down.
    pub(super) fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, f64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, samples, |metric, value| {
            metric.encode_gauge(&value)
        })
    }

    /// Writes one value that goes up and down, if it is known.
    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl Into<Option<f64>>,
    ) -> fmt::Result {
        self.gauges(name, help, value.into().map(|value| ([], value)))
    }

    /// Writes a family of counts; their names get `_total`.
    pub(super) fn counters<'l, const N: usize, V: EncodeCounterValue + EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
    ) -> fmt::Result {
        match self.format {
            PageFormat::OpenMetrics => {
                self.family(name, help, MetricType::Counter, samples, |metric, count| {
                    metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
                })
            }
            PageFormat::Prometheus => {
                let name = format!("{name}_total");
                self.family(&name, help, MetricType::Counter, samples, |metric, count| {
                    metric.encode_gauge(&count)
                })
            }
        }
    }

    /// Writes a family of durations.
    pub(super) fn times<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, TimesSeen)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Histogram, samples, |metric, times| {
            let bounds = BOUNDS_US.iter().map(|bound| *bound as f64 / US_PER_SECOND);
            let mut buckets: Vec<_> = bounds.zip(times.counts).collect();
            buckets.push((f64::INFINITY, times.longer));
            let sum = times.sum_us as f64 / US_PER_SECOND;
            metric.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None)
        })
    }

    /// Writes constant labels: the value is 1, and the name gets `_info`.
    pub(super) fn info<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: Labels<'_, N>,
    ) -> fmt::Result {
        match self.format {
            PageFormat::OpenMetrics => self
                .encoder
                .encode_descriptor(name, help, None, MetricType::Info)?
                .encode_info(&labels),
            PageFormat::Prometheus => self.gauges(&format!("{name}_info"), help, [(labels, 1.0)]),
        }
    }

    fn family<'l, const N: usize, V>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels<'l, N>, V)>,
        encode: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            if labels.is_empty() {
                encode(&mut family, value)?;
            } else {
                encode(&mut family.encode_family(&labels)?, value)?;
            }
        }
        Ok(())
    }
}

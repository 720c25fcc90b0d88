//! The page for Prometheus: names and help are a part of the interface (docs/reference/metrics.md).

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use snowmint_coord::spec::Kind;
use snowmint_coord::{
    Forecast, Node, NodeStats, NumberStats, Source, SourceStats, Timer, TimesSeen,
};
use snowmint_core::UnixMillis;
use snowmint_wire::error::Code;

use super::families::{Families, seconds};
use super::page_format::PageFormat;
use super::process::{self, Process};
use super::{Meter, Protocol};

impl Meter {
    /// Returns the current page, with tokens that expire and their times. The wait for the store is
    /// bounded.
    pub(crate) async fn page(
        &self,
        format: PageFormat,
        node: &Node,
        ready: bool,
        expiring: Vec<(String, UnixMillis)>,
        timer: &dyn Timer,
        within_ms: u64,
    ) -> Result<String, fmt::Error> {
        let forecasts = self.forecasts.now(node, timer, within_ms).await;
        MetricsSnapshot { expiring, ..self.seen(node, ready, forecasts) }.encoded(format)
    }

    fn seen(&self, node: &Node, ready: bool, forecasts: Arc<[Forecast]>) -> MetricsSnapshot {
        let running = node.running();
        for source in &running {
            // Starts at 0, so that the first ID is an increase.
            self.tally(source.name());
        }
        let source = |source: &Source| OneSource {
            name: source.name().to_owned(),
            kind: source.kind(),
            stats: source.stats(),
        };
        let tallies = self.tallies.read().unwrap_or_else(PoisonError::into_inner);
        let issued = tallies.iter().flat_map(|(name, tally)| {
            Protocol::ALL.map(|protocol| (name.clone(), protocol, tally.issued(protocol)))
        });
        MetricsSnapshot {
            ready,
            expiring: Vec::new(),
            node: node.stats(),
            sources: running.iter().map(source).collect(),
            issued: issued.collect(),
            errors: tallies.iter().map(|(name, tally)| (name.clone(), tally.errors())).collect(),
            by_protocol: Protocol::ALL
                .iter()
                .filter_map(|protocol| self.protocol_snapshot(*protocol))
                .collect(),
            forecasts,
            process: process::look(),
        }
    }

    pub(super) fn protocol_snapshot(&self, protocol: Protocol) -> Option<ProtocolSnapshot> {
        let metrics = self.protocol_metrics(protocol)?;
        let errors = Code::ALL.iter().zip(&metrics.errors);
        let errors = errors.map(|(code, count)| (code.row().name, count.load(Ordering::Relaxed)));
        let connections = metrics.tracker.get().map(|tracker| tracker.counts());
        Some(ProtocolSnapshot {
            name: protocol.name(),
            errors: errors.filter(|(_, count)| *count > 0).collect(),
            times: metrics.times.seen(),
            connected: connections.map_or(0, |counts| counts.connected),
            turned_away: connections.map_or(0, |counts| counts.refused),
            gave_way: connections.map_or(0, |counts| counts.gave_way),
        })
    }
}

/// All values of the page, at one moment.
#[derive(Debug)]
pub(super) struct MetricsSnapshot {
    pub(super) ready: bool,
    /// Tokens that expire, with their times.
    pub(super) expiring: Vec<(String, UnixMillis)>,
    pub(super) node: NodeStats,
    pub(super) sources: Vec<OneSource>,
    pub(super) issued: Vec<(String, Protocol, u64)>,
    pub(super) errors: Vec<(String, u64)>,
    pub(super) by_protocol: Vec<ProtocolSnapshot>,
    pub(super) forecasts: Arc<[Forecast]>,
    pub(super) process: Option<Process>,
}

#[derive(Debug)]
pub(super) struct OneSource {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) stats: SourceStats,
}

#[derive(Debug)]
pub(super) struct ProtocolSnapshot {
    pub(super) name: &'static str,
    pub(super) errors: Vec<(&'static str, u64)>,
    pub(super) times: TimesSeen,
    pub(super) connected: usize,
    pub(super) turned_away: u64,
    pub(super) gave_way: u64,
}

/// A page in its format.
#[derive(Debug)]
struct FormattedPage {
    snapshot: MetricsSnapshot,
    format: PageFormat,
}

impl Collector for FormattedPage {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self { snapshot, format } = self;
        let mut families = Families { encoder, format: *format };
        snapshot.server(&mut families)?;
        snapshot.tokens(&mut families)?;
        snapshot.member(&mut families)?;
        snapshot.clock(&mut families)?;
        snapshot.store(&mut families)?;
        snapshot.snowflakes(&mut families)?;
        snapshot.numbers(&mut families)?;
        snapshot.forecasts(&mut families)?;
        snapshot.process(&mut families)
    }
}

impl MetricsSnapshot {
    /// Returns the text of the page.
    pub(super) fn encoded(self, format: PageFormat) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(FormattedPage { snapshot: self, format }));
        let mut page = String::new();
        text::encode_registry(&mut page, &registry)?;
        if format == PageFormat::OpenMetrics {
            text::encode_eof(&mut page)?;
        }
        Ok(page)
    }

    fn server(&self, to: &mut Families<'_>) -> fmt::Result {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        to.info("snowmint_build", "Version of this build.", version)?;
        to.gauge(
            "snowmint_ready",
            "1 while this server can mint from its own sources with margin, otherwise 0; /readyz has the reasons.",
            f64::from(u8::from(self.ready)),
        )?;
        to.counters(
            "snowmint_ids",
            "IDs issued, by the server that minted them.",
            self.issued.iter().map(|(source, protocol, count)| {
                ([("source", source.as_str()), ("protocol", protocol.name())], *count)
            }),
        )?;
        to.counters(
            "snowmint_source_errors",
            "Requests for a source that failed with 500 or 503, except tick_full, not_owner and overloaded.",
            self.errors.iter().map(|(source, count)| ([("source", source.as_str())], *count)),
        )?;
        to.counters(
            "snowmint_request_errors",
            "Requests that ended in an error; absent for a code until its first error.",
            self.by_protocol.iter().flat_map(|it| {
                let labels = |code| [("protocol", it.name), ("code", code)];
                it.errors.iter().map(move |(code, count)| (labels(*code), *count))
            }),
        )?;
        to.times(
            "snowmint_request_seconds",
            "Seconds until the response of a request was ready; for requests that came together, until all were.",
            self.by_protocol.iter().map(|it| ([("protocol", it.name)], it.times.clone())),
        )?;
        to.gauges(
            "snowmint_connections",
            "Open connections.",
            self.by_protocol.iter().map(|it| ([("protocol", it.name)], it.connected as f64)),
        )?;
        to.counters(
            "snowmint_connections_refused",
            "Connections rejected because there were too many.",
            self.by_protocol.iter().map(|it| ([("protocol", it.name)], it.turned_away)),
        )?;
        to.counters(
            "snowmint_connections_gave_way",
            "Connections closed to make room for others: idle ones first, then ones in use.",
            self.by_protocol.iter().map(|it| ([("protocol", it.name)], it.gave_way)),
        )
    }

    fn tokens(&self, to: &mut Families<'_>) -> fmt::Result {
        to.gauges(
            "snowmint_token_expiry_timestamp_seconds",
            "End of a token in seconds since 1970, past or not; absent for a token that does not expire.",
            self.expiring.iter().map(|(name, expires)| {
                ([("token", name.as_str())], seconds(expires.get()))
            }),
        )
    }

    fn member(&self, to: &mut Families<'_>) -> fmt::Result {
        let node = &self.node;
        to.gauge(
            "snowmint_member_joined",
            "1 while this server is a member of its store, otherwise 0.",
            f64::from(u8::from(node.joined)),
        )?;
        to.gauge(
            "snowmint_without_store",
            "1 while this server mints without having reached its store, in the rest of an earlier process's window; otherwise 0.",
            f64::from(u8::from(node.without_store)),
        )?;
        to.gauge(
            "snowmint_member_presence_seconds",
            "Seconds for which other members must still treat this server as present, without another renewal.",
            seconds(node.presence_ms),
        )?;
        to.counters(
            "snowmint_rejoins",
            "Rejoins of this server, each after it lost its membership.",
            [([], node.rejoins)],
        )?;
        to.counters(
            "snowmint_journal_write_errors",
            "Failed writes of the journal.",
            [([], node.journal_errors)],
        )?;
        to.gauge(
            "snowmint_sections",
            "Counter sections that this server owns.",
            node.sections as f64,
        )
    }

    fn clock(&self, to: &mut Families<'_>) -> fmt::Result {
        let steps: Vec<_> = self
            .node
            .clock_steps
            .iter()
            .map(|step| {
                (step.direction.to_string(), step.policy, step.outcome.to_string(), step.count)
            })
            .collect();
        to.counters(
            "snowmint_clock_steps",
            "Steps of the wall clock, counted once by each generator that noticed one.",
            steps.iter().map(|(direction, policy, outcome, count)| {
                let direction = ("direction", direction.as_str());
                ([direction, ("policy", *policy), ("outcome", outcome.as_str())], *count)
            }),
        )?;
        to.gauge(
            "snowmint_clock_offset_seconds",
            "Seconds by which this machine's clock was ahead of its time reference at the last check; absent without one.",
            self.node.clock_offset_ms.map(|ms| ms as f64 / 1_000.0),
        )
    }

    fn store(&self, to: &mut Families<'_>) -> fmt::Result {
        let calls = &self.node.store_calls;
        to.times(
            "snowmint_store_call_seconds",
            "Store call duration in seconds, timeouts included.",
            calls.iter().map(|calls| ([("verb", calls.verb)], calls.took.clone())),
        )?;
        to.counters(
            "snowmint_store_errors",
            "Store calls that ended in an error; unavailable: without a response.",
            calls.iter().flat_map(|calls| {
                let labels = |code| [("verb", calls.verb), ("code", code)];
                calls.errors.iter().map(move |(code, count)| (labels(*code), *count))
            }),
        )
    }

    fn of_kind(
        &self,
        kind: Kind,
    ) -> impl Iterator<Item = ([(&'static str, &str); 1], &SourceStats)> {
        let of_kind = self.sources.iter().filter(move |source| source.kind == kind);
        of_kind.map(|source| ([("source", source.name.as_str())], &source.stats))
    }

    fn snowflakes(&self, to: &mut Families<'_>) -> fmt::Result {
        let each = || self.of_kind(Kind::Snowflake);
        to.gauges(
            "snowmint_window_runway_seconds",
            "Seconds that the window reaches beyond the clock and the minted IDs; the store may be unreachable that long. Absent for a source that is disabled, in global order or minted by the store.",
            each().filter_map(|(source, stats)| Some((source, seconds(stats.window_ms?)))),
        )?;
        to.gauges(
            "snowmint_lead_seconds",
            "Seconds by which the last tick leads the clock; absent while this server has no worker number for the source.",
            each().filter_map(|(source, stats)| Some((source, seconds(stats.lead_ms?)))),
        )
    }

    fn numbers(&self, to: &mut Families<'_>) -> fmt::Result {
        let each = || {
            let segments = self.of_kind(Kind::Segment);
            segments.filter_map(|(source, stats)| Some((source, stats.numbers?)))
        };
        let runway = |stats: NumberStats| stats.lasts_ms.map(seconds);
        to.gauges(
            "snowmint_segment_runway_seconds",
            "Seconds until the prefetched numbers run out at the present rate; absent while idle.",
            each().filter_map(|(source, stats)| Some((source, runway(stats)?))),
        )?;
        to.gauges(
            "snowmint_segment_prefetched",
            "Numbers fetched from the store and not issued yet.",
            each().map(|(source, stats)| (source, stats.prefetched as f64)),
        )?;
        to.counters(
            "snowmint_segment_fetched",
            "Numbers taken from the store.",
            each().map(|(source, stats)| (source, stats.fetched)),
        )?;
        to.counters(
            "snowmint_segment_lost",
            "Numbers taken from the store that are never issued.",
            each().map(|(source, stats)| (source, stats.lost)),
        )?;
        let several = self.of_kind(Kind::Segment).chain(self.of_kind(Kind::Snowflake));
        let stores = several.flat_map(|([source], stats)| {
            stats.stores.iter().map(move |store| {
                ([source, ("store", store.store.as_str())], f64::from(u8::from(store.serving)))
            })
        });
        to.gauges(
            "snowmint_source_store_up",
            "1 while a store serves a source with several stores, otherwise 0; absent for other sources.",
            stores,
        )?;
        let keys = || {
            let counters = self.of_kind(Kind::Counter);
            counters.filter_map(|(source, stats)| Some((source, stats.keys?)))
        };
        to.gauges(
            "snowmint_keys",
            "Counter keys that this server knows.",
            keys().map(|(source, (keys, _))| (source, keys as f64)),
        )?;
        to.gauges(
            "snowmint_keys_bytes",
            "Approximate memory of the counter keys in bytes.",
            keys().map(|(source, (_, bytes))| (source, bytes as f64)),
        )
    }

    fn forecasts(&self, to: &mut Families<'_>) -> fmt::Result {
        let layouts = self.forecasts.iter().filter_map(|forecast| match forecast {
            Forecast::Layout { source, life, .. } => Some((source.as_str(), life.left_ms())),
            _ => None,
        });
        to.gauges(
            "snowmint_layout_left_seconds",
            "Seconds until the layout of a source ends, read at most once a minute; absent while the source is disabled.",
            layouts.map(|(source, left_ms)| ([("source", source)], seconds(left_ms))),
        )?;
        let pools = || {
            self.forecasts.iter().filter_map(|forecast| match forecast {
                Forecast::Pool(pool) => Some(([("pool", pool.pool.as_str())], pool)),
                _ => None,
            })
        };
        to.gauges(
            "snowmint_pool_workers",
            "Worker numbers of a pool.",
            pools().map(|(name, pool)| (name, pool.numbers as f64)),
        )?;
        to.gauges(
            "snowmint_pool_workers_left",
            "Worker numbers of a pool that can be claimed, read at most once a minute.",
            pools().map(|(name, pool)| (name, pool.left() as f64)),
        )
    }

    fn process(&self, to: &mut Families<'_>) -> fmt::Result {
        let Some(process) = self.process else { return Ok(()) };
        to.gauge(
            "process_resident_memory_bytes",
            "Resident memory of the process in bytes.",
            process.memory_bytes as f64,
        )?;
        to.gauge("process_open_fds", "Open files and connections.", process.files as f64)?;
        to.gauge(
            "process_start_time_seconds",
            "Start of the process in seconds since 1970.",
            process.started,
        )?;
        to.counters(
            "process_cpu_seconds",
            "Processor time of the process in seconds.",
            [([], process.user_seconds + process.system_seconds)],
        )
    }
}

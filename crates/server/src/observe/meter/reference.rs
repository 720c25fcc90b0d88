//! The page docs/reference/metrics.md, made from a page for Prometheus that has every family.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use snowmint_coord::spec::Kind;
use snowmint_coord::{
    Forecast, NodeStats, NumberStats, PoolUse, SourceStats, StepCount, StoreCalls, StoreStatus,
    Times,
};
use snowmint_core::UnixMillis;
use snowmint_core::clock::{Direction, Outcome};
use snowmint_core::layout::Lifetime;

use super::Protocol;
use super::page::{MetricsSnapshot, OneSource, ProtocolSnapshot};
use super::page_format::PageFormat;
use super::process::Process;

/// Environment variable that writes the page instead of comparing it.
const WRITE: &str = "SNOWMINT_WRITE_GENERATED";

const HEAD: &str = "\
# Metrics: what a server exports

<!-- Made from the families of the code: CONTRIBUTING.md says how. -->

`GET /metrics` on the HTTP port returns the text format of Prometheus. If tokens are required, it needs the right
`metrics`, unless `tokens.open_metrics` is set. Times are in seconds; counts begin at 0 with the process. Names of
histograms get `_bucket` (with the label `le`), `_sum` and `_count`.

| `Accept` prefers | response |
|---|---|
| `application/openmetrics-text`, without a version or with 1.0.0; Prometheus since 2.5 | OpenMetrics 1.0, which ends with `# EOF` |
| `text/plain`, without a version or with 0.0.4; `*/*`; anything else; no header | text format 0.0.4 |

`source` is the name of a source that was opened here, `token` that of a token in `tokens.file`, and `protocol` is
`http`, `grpc` or `resp`. No label has a secret, or text that a caller sent. `code` is a code of [errors.md](errors.md).

`deploy/grafana/snowmint.json` is a dashboard of all metrics. `deploy/prometheus/alerts.yaml` has alert rules: a clock
step, a lost membership, a short window, an ending layout or token, a failing store, a server that is not ready, and
others.

| name | type | labels | meaning |
|---|---|---|---|
";

const NOTES: &str = "
- `snowmint_ids_total` counts each number of a range or a segment. Requests that a peer forwards count as `http`.
- `snowmint_source_errors_total`, together with it, shows a source that cannot mint while others can.
- `snowmint_request_seconds` counts 0 for one ID over HTTP that was available at once.
- `snowmint_clock_steps_total`: [clocks.md](../explanation/clocks.md) says what they mean. The time reference of
  `snowmint_clock_offset_seconds` is the store's clock, most members' clocks or `clock.ntp`. Members show their clocks
  when they renew: what the age of a renewal explains is left out.
- `snowmint_token_expiry_timestamp_seconds` needs `tokens.file`. An expired token stays until it leaves the file.
- `snowmint_without_store` needs `worker.start_without_store`.
- `snowmint_layout_left_seconds` has every enabled source of the catalog.
- Families whose name begins with *process* exist on Linux.
";

/// Returns values with a sample in every family.
fn snapshot() -> MetricsSnapshot {
    let times = Times::default().seen();
    let source = |kind: Kind| {
        let stats = SourceStats {
            lead_ms: Some(0),
            window_ms: Some(0),
            numbers: Some(NumberStats { lasts_ms: Some(0), ..NumberStats::default() }),
            keys: Some((0, 0)),
            stores: vec![StoreStatus {
                store: "a".into(),
                serving: true,
                stripe: None,
                worker: None,
                error: None,
                error_detail: None,
            }],
            ..SourceStats::default()
        };
        OneSource { name: kind.to_string(), kind, stats }
    };
    let step =
        StepCount { direction: Direction::Back, policy: "hold", outcome: Outcome::Held, count: 0 };
    let calls =
        StoreCalls { verb: "extend", took: times.clone(), errors: vec![("unavailable", 0)] };
    let pool =
        PoolUse { pool: "a".into(), numbers: 0, held: 0, ahead: 0, excluded: 0, used_up: None };
    let life = Lifetime::Long { end: UnixMillis::new(0), left_ms: 0 };
    let layout = Forecast::Layout { source: "a".into(), life, accepted: false };
    MetricsSnapshot {
        ready: true,
        expiring: vec![("a".into(), UnixMillis::new(0))],
        node: NodeStats {
            joined: true,
            without_store: false,
            presence_ms: 0,
            rejoins: 0,
            journal_errors: 0,
            clock_offset_ms: Some(0),
            clock_steps: vec![step],
            store_calls: vec![calls],
            sections: 0,
        },
        sources: vec![source(Kind::Snowflake), source(Kind::Segment), source(Kind::Counter)],
        issued: vec![("a".into(), Protocol::Http, 0)],
        errors: vec![("a".into(), 0)],
        by_protocol: vec![ProtocolSnapshot {
            name: "http",
            errors: vec![("unavailable", 0)],
            times,
            connected: 0,
            turned_away: 0,
            gave_way: 0,
        }],
        forecasts: Arc::new([layout, Forecast::Pool(pool)]),
        process: Some(Process {
            memory_bytes: 0,
            memory_peak_bytes: 0,
            user_seconds: 0.0,
            system_seconds: 0.0,
            files: 0,
            started: 0.0,
        }),
    }
}

/// Returns the rows of the page: name, type, labels and meaning of each family.
fn rows() -> Vec<[String; 4]> {
    let encoded = snapshot().encoded(PageFormat::OpenMetrics).unwrap();
    let mut rows = Vec::new();
    let mut help = "";
    for line in encoded.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            help = text.split_once(' ').unwrap().1;
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|family| family.split_once(' '))
        {
            let ending = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            let samples = encoded.lines().filter(|line| !line.starts_with('#'));
            let labels = labels(name, samples).unwrap_or_else(|| panic!("{name} has no sample"));
            rows.push([format!("{name}{ending}"), kind.to_owned(), labels, help.to_owned()]);
        }
    }
    rows
}

/// Returns the names of a family's labels, if it has a sample.
fn labels<'t>(family: &str, samples: impl Iterator<Item = &'t str>) -> Option<String> {
    let endings = ["", "_total", "_info", "_count"];
    let of_family = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        name.strip_prefix(family).is_some_and(|ending| endings.contains(&ending))
    };
    let sample = samples.into_iter().find(of_family)?;
    let labels = sample.split_once('{').map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
    let names =
        labels.split(',').filter_map(|label| Some(format!("`{}`", label.split_once('=')?.0)));
    Some(names.collect::<Vec<_>>().join(", "))
}

#[test]
fn page_is_made_from_the_code() {
    let mut made = HEAD.to_owned();
    for [name, kind, labels, help] in rows() {
        let _ = writeln!(made, "| `{name}` | {kind} | {labels} | {help} |");
    }
    made.push_str(NOTES);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == made, "run the test with {WRITE}=1 and look at what changed");
}

#[test]
fn every_family_has_a_name_of_its_own_and_a_meaning() {
    let rows = rows();
    let names: BTreeSet<&String> = rows.iter().map(|[name, ..]| name).collect();
    assert_eq!(names.len(), rows.len());
    for [name, _, _, help] in &rows {
        assert!(name.starts_with("snowmint_") || name.starts_with("process_"), "{name}");
        assert!(help.len() > 10 && help.ends_with('.'), "{name}: {help}");
    }
}

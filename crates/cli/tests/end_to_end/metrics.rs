//! Metrics follow events, and dashboard and alerts use existing metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use snowmint_testkit::servers::{FakeClock, Redis, Server as StoreServer};

use super::faketime;
use super::server::{Folder, Resp, Server, TIMEOUT, client, curl};

/// A metrics page at one moment.
struct Page(String);

impl Page {
    fn of(server: &Server) -> Self {
        Self(curl(&[&server.url("/metrics")]))
    }

    /// Returns the value of a sample, named as on the page.
    #[track_caller]
    fn value(&self, sample: &str) -> f64 {
        self.find(sample).unwrap_or_else(|| panic!("no {sample} in\n{}", self.0))
    }

    fn find(&self, sample: &str) -> Option<f64> {
        let of_sample = |line: &str| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok();
        self.0.lines().find_map(of_sample)
    }

    /// Returns the sum over all samples of a name with these parts in their labels.
    fn sum(&self, name: &str, parts: &[&str]) -> f64 {
        let samples = self.0.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        let wanted = samples.filter(|line| parts.iter().all(|part| line.contains(part)));
        wanted.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    }

    /// Returns the families, with the names of their samples.
    fn families(&self) -> BTreeMap<String, Vec<String>> {
        let kinds = self.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let endings = |kind: &str| match kind {
            "histogram" => ["_bucket", "_sum", "_count"].as_slice(),
            "counter" | "gauge" => &[""],
            other => panic!("{other}"),
        };
        let samples = |name: &str, kind: &str| {
            endings(kind).iter().map(|ending| format!("{name}{ending}")).collect()
        };
        kinds.map(|(name, kind)| (name.to_owned(), samples(name, kind))).collect()
    }
}

/// Waits until the page satisfies a condition.
fn until(server: &Server, what: &str, mut is_so: impl FnMut(&Page) -> bool) -> Page {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let page = Page::of(server);
        if is_so(&page) {
            return page;
        }
        assert!(Instant::now() < deadline, "{what}:\n{}", page.0);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn server(folder: &Folder) -> Server {
    let lease = [("SNOWMINT_COUNTERS__LEASE", "60s")];
    let server = Server::start(&["--data-dir", folder.path().to_str().unwrap()], &lease);
    server.ready();
    // All sources are open by then: sources without issued IDs count 0.
    until(&server, "the sources are open", |page| {
        ["default", "numbers", "counters"].iter().all(|source| {
            let issued = format!("snowmint_ids_total{{source=\"{source}\",protocol=\"http\"}}");
            page.find(&issued) == Some(0.0)
        })
    });
    server
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn metrics_count_minted_ids_and_errors() {
    let folder = Folder::new("metrics");
    let server = server(&folder);
    let before = Page::of(&server);
    let requests = "snowmint_request_seconds_count{protocol=\"http\"}";

    curl(&[&server.url("/v1/ids/default?count=1000")]);
    curl(&[&server.url("/v1/ids/default")]);
    curl(&["--json", "{\"count\":20}", &server.url("/v1/ids/numbers")]);
    curl(&["--json", "{\"length\":300}", &server.url("/v1/segments/numbers")]);
    curl(&[&server.url("/v1/ids/absent")]);
    curl(&[&server.url("/v1/ids/default?count=0")]);
    let cli = |words: &[&str]| {
        client("redis-cli", &[&["-h", "127.0.0.1", "-p", server.resp_port()], words].concat())
    };
    cli(&["MINT", "default", "50"]);
    cli(&["INCRBY", "numbers", "7"]);
    for key in ["counters:ann", "counters:bob"] {
        cli(&["INCRBY", key, "4"]);
    }
    cli(&["INCR", "absent"]);
    // One connection changes its source in the middle of a batch that is counted together.
    let (mut resp, mut ids) = (Resp::connect(&server.resp).unwrap(), Vec::new());
    resp.incr("default", 2_000, &mut ids).unwrap();
    resp.incr("numbers", 30, &mut ids).unwrap();
    resp.incr("default", 1, &mut ids).unwrap();
    assert_eq!(ids.len(), 2_031);
    drop(resp);

    let issued = |source: &str, protocol: &str| {
        format!("snowmint_ids_total{{source=\"{source}\",protocol=\"{protocol}\"}}")
    };
    let page = until(&server, "the last batch is counted", |page| {
        page.find(&issued("default", "resp")) == Some(2_051.0)
    });
    for (source, protocol, count) in [
        ("default", "http", 1_001.0),
        ("numbers", "http", 320.0),
        ("numbers", "resp", 37.0),
        ("counters", "http", 0.0),
        ("counters", "resp", 8.0),
    ] {
        assert_eq!(page.value(&issued(source, protocol)), count, "{source} over {protocol}");
    }
    let refused = |protocol: &str, code: &str| {
        let name = "snowmint_request_errors_total";
        page.find(&format!("{name}{{protocol=\"{protocol}\",code=\"{code}\"}}"))
    };
    assert_eq!(refused("http", "unknown_source"), Some(1.0));
    assert_eq!(refused("http", "bad_request"), Some(1.0));
    assert_eq!(refused("resp", "unknown_source"), Some(1.0));
    // A page counts itself when it is complete: each page counts the one before it.
    assert!(page.value(requests) >= before.value(requests) + 7.0);
    let resp_requests = page.value("snowmint_request_seconds_count{protocol=\"resp\"}");
    // redis-cli may send more commands when it connects.
    assert!(resp_requests >= 2_036.0, "{resp_requests}");
    assert!(page.value("snowmint_request_seconds_sum{protocol=\"resp\"}") > 0.0);

    // Single numbers have left the prefetched ones; rows may come from there, or straight from the
    // store.
    let of_numbers =
        |name: &str| page.value(&format!("snowmint_segment_{name}{{source=\"numbers\"}}"));
    let used = of_numbers("fetched_total") - of_numbers("prefetched") - of_numbers("lost_total");
    assert!((50.0..=357.0).contains(&used), "{used}");
    assert_eq!(page.value("snowmint_keys{source=\"counters\"}"), 2.0);
    assert!(page.value("snowmint_keys_bytes{source=\"counters\"}") > 0.0);
    assert!(page.value("snowmint_sections") >= 2.0);
    until(&server, "no caller takes any more", |page| {
        page.find("snowmint_segment_runway_seconds{source=\"numbers\"}").is_none()
    });
    assert_eq!(server.stop(), 0);
}

#[test]
fn metrics_show_the_server_state() {
    let folder = Folder::new("metrics-standing");
    let begun = jiff::Timestamp::now().as_second() as f64;
    let server = server(&folder);
    let page = until(&server, "the worker's number is known", |page| {
        page.find("snowmint_pool_workers_left{pool=\"workers-10\"}").is_some()
    });
    assert!(!page.0.contains("# EOF"), "{}", page.0);
    // Values of a healthy server, though a busy machine may renew and extend late.
    let within = |sample: &str, low: f64, high: f64| {
        until(&server, &format!("{sample} from {low} to {high}"), |page| {
            page.find(sample).is_some_and(|value| (low..=high).contains(&value))
        });
    };
    let version = format!("snowmint_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    for one in [version.as_str(), "snowmint_ready", "snowmint_member_joined"] {
        within(one, 1.0, 1.0);
    }
    for none in ["snowmint_rejoins_total", "snowmint_journal_write_errors_total"] {
        within(none, 0.0, 0.0);
    }
    // Bound: counters.lease.
    within("snowmint_member_presence_seconds", 1.0, 60.0);
    // Bound: a window of 30 s, extended at half.
    within("snowmint_window_runway_seconds{source=\"default\"}", 10.0, 30.0);
    within("snowmint_lead_seconds{source=\"default\"}", 0.0, 5.0);
    within("snowmint_store_call_seconds_count{verb=\"join\"}", 1.0, 1.0);
    within("snowmint_store_call_seconds_count{verb=\"extend\"}", 1.0, 100.0);
    within("snowmint_store_errors_total{verb=\"extend\",code=\"unavailable\"}", 0.0, 0.0);
    within("snowmint_connections{protocol=\"http\"}", 1.0, 1.0);
    // Bound: 41 bits of milliseconds since 2026.
    within("snowmint_layout_left_seconds{source=\"default\"}", 1.5e9, 2.2e9);
    within("snowmint_pool_workers{pool=\"workers-10\"}", 1024.0, 1024.0);
    within("snowmint_pool_workers_left{pool=\"workers-10\"}", 1023.0, 1023.0);
    let kib = server.resident_kib() as f64;
    within("process_resident_memory_bytes", kib * 512.0, kib * 2048.0);
    within("process_open_fds", 10.0, 1_000.0);
    within("process_cpu_seconds_total", 0.0, 60.0);
    within("process_start_time_seconds", begun - 1.0, begun + 60.0);
    assert_eq!(server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs libfaketime: --features real-servers")]
fn clock_step_is_counted_by_its_outcome() {
    let folder = Folder::new("metrics-clock");
    let clock = FakeClock::new(folder.join("clock"));
    let server = faketime::serve(&clock, &folder.join("data"), &[]);
    server.ready();
    let held = "snowmint_clock_steps_total{direction=\"back\",policy=\"hold\",outcome=\"held\"}";
    let before = until(&server, "steps are counted", |page| page.find(held).is_some());
    assert_eq!(before.value(held), 0.0);
    // A machine that takes longer between two calls sees no step: then another step follows.
    let mut seconds = 0;
    let page = until(&server, "a step is counted", |page| {
        if page.value(held) > 0.0 {
            return true;
        }
        curl(&[&server.url("/v1/ids/default")]);
        seconds -= 3;
        clock.set(seconds);
        curl(&[&server.url("/v1/ids/default")]);
        false
    });
    assert_eq!(page.sum("snowmint_clock_steps_total", &["ahead"]), 0.0);
    let lead = page.value("snowmint_lead_seconds{source=\"default\"}");
    assert!(lead > 0.0 && lead <= 3.5, "{lead}");
    assert_eq!(server.stop(), 0);
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs Redis: --features real-servers")]
fn store_outage_shows_before_it_affects_minting() {
    let folder = Folder::new("metrics-store");
    let mut store: StoreServer = Redis::start(&[]).into();
    let (data, url) = (folder.join("data"), store.url());
    let server = Server::start(
        &["--data-dir", data.to_str().unwrap(), "--store", &url],
        &[("SNOWMINT_WORKER__WINDOW", "6s")],
    );
    server.ready();
    let away = |page: &Page| page.sum("snowmint_store_errors_total", &["code=\"unavailable\""]);
    let runway = "snowmint_window_runway_seconds{source=\"default\"}";
    let before =
        until(&server, "a window", |page| page.find(runway).is_some_and(|left| left > 2.0));
    // The store has a clock, and our clock is compared with it.
    assert!(before.value("snowmint_clock_offset_seconds").abs() < 10.0);
    store.kill();
    let failing = until(&server, "calls fail", |page| away(page) > away(&before));
    let at_first = failing.value(runway);
    let not_ready =
        until(&server, "the window is spent", |page| page.value("snowmint_ready") == 0.0);
    assert!(not_ready.value(runway) < at_first.max(2.0));
    until(&server, "no runway is left", |page| page.value(runway) == 0.0);
    store.start();
    until(&server, "ready again", |page| page.value("snowmint_ready") == 1.0);
    assert_eq!(server.stop(), 0);
}

/// Reads a file of the repository.
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("snowmint_") || word.starts_with("process_")).collect()
}

/// Returns every expression of the dashboard.
fn dashboard_expressions(text: &str) -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Returns the expression of each alert, by its name.
fn alert_expressions<'t>(text: &'t str) -> BTreeMap<&'t str, &'t str> {
    let one = |rule: &'t str| {
        let name = rule.lines().next().unwrap().trim();
        let expr = rule.lines().find_map(|line| line.trim().strip_prefix("expr: ")).unwrap();
        for part in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(part), "{name} has no {part}");
        }
        (name, expr)
    };
    text.split("- alert: ").skip(1).map(one).collect()
}

#[test]
fn dashboard_alerts_and_documents_name_exported_metrics() {
    let folder = Folder::new("metrics-names");
    let server = server(&folder);
    let families = Page::of(&server).families();
    assert_eq!(server.stop(), 0);
    let samples: BTreeSet<&str> = families.values().flatten().map(String::as_str).collect();

    let dashboard = read("deploy/grafana/snowmint.json");
    let expressions = dashboard_expressions(&dashboard);
    let shown: BTreeSet<&str> = expressions.iter().flat_map(|expr| names(expr)).collect();
    let rules = read("deploy/prometheus/alerts.yaml");
    let alerts = alert_expressions(&rules);
    for (name, expr) in &alerts {
        assert!(!names(expr).is_empty(), "{name}: {expr}");
    }
    let alerted: BTreeSet<&str> = alerts.values().flat_map(|expr| names(expr)).collect();
    for name in shown.iter().chain(&alerted) {
        assert!(samples.contains(name), "{name} is queried, and no server exports it");
    }
    for (family, samples) in &families {
        let is_shown = samples.iter().any(|sample| shown.contains(sample.as_str()));
        assert!(is_shown, "{family} is on no panel of the dashboard");
    }

    let documents = read("docs/reference/metrics.md");
    let documented = names(&documents);
    for (family, samples) in families.iter().filter(|(family, _)| family.starts_with("snowmint_")) {
        let is_documented = samples.iter().any(|sample| documented.contains(sample.as_str()))
            || documented.contains(family.as_str());
        assert!(is_documented, "metrics.md does not tell of {family}");
    }
    let is_exported = |name: &&str| samples.contains(*name) || families.contains_key(*name);
    let unknown: Vec<_> = documented.iter().filter(|name| !is_exported(name)).collect();
    assert!(unknown.is_empty(), "metrics.md has {unknown:?}, which no server exports");
}

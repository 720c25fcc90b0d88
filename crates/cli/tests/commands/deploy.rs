//! Names in `deploy/` exist: files, commands, flags, variables and paths.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Ran, json, run, snowmint};
use crate::server::{Server, serve};
use snowmint_testkit::programs;

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(super) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Checks that `serve` accepts these arguments and variables.
#[track_caller]
pub(super) fn check(args: &[&str], variables: &[(String, String)]) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = snowmint(&[args, &["--check"]].concat());
    command.current_dir(folder.path()).envs(variables.iter().map(|(name, value)| (name, value)));
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.ok(), "the configuration is right\n", "{args:?} {variables:?}");
}

fn values_of<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Returns how many MiB the server takes at most, by docs/how-to/size-it.md and
/// docs/reference/access.md: all of it at once, without half TLS handshakes. `limit_of` returns
/// the limit that a key sets.
pub(super) fn memory_max_mib(limit_of: impl Fn(&str) -> u64) -> u64 {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let http = limit_of("http.connections_max");
    let idle_connections = 16 * KIB * (http + limit_of("resp.connections_max"));
    // An ID that is not sent takes at most 26 bytes.
    let unsent = 26 * limit_of("limits.unsent_max");
    let without_a_token = 12 * KIB * http + 6 * MIB;
    let queues = 16 * limit_of("limits.prefill_ids_max");
    let keys = limit_of("counters.memory_max_bytes");
    let (waiting, program) = (128 * MIB, 50 * MIB);
    let all = idle_connections + unsent + without_a_token + queues + keys + waiting + program;
    all.div_ceil(MIB)
}

/// Returns the default limits, by their keys.
pub(super) fn default_limits() -> impl Fn(&str) -> u64 {
    let defaults: toml::Table = run(&["config"]).ok().parse().unwrap();
    move |key| {
        let (section, name) = key.split_once('.').unwrap();
        u64::try_from(defaults[section][name].as_integer().unwrap()).unwrap()
    }
}

#[test]
fn the_unit_of_systemd_is_right() {
    let unit = read("deploy/systemd/snowmint.service");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("snowmint.toml");
    std::fs::write(&config, run(&["config"]).ok()).unwrap();
    let here = unit
        .replace("/usr/local/bin/snowmint", env!("CARGO_BIN_EXE_snowmint"))
        .replace("/etc/snowmint/snowmint.toml", config.to_str().unwrap());
    assert_ne!(here, unit);
    // The unit's commands, unchanged.
    let variables: Vec<(String, String)> = values_of(&here, "Environment")
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert!(variables.iter().any(|(name, _)| name == "SNOWMINT_SERVER__DATA_DIR"));
    let starts: Vec<&str> = values_of(&here, "ExecStart").collect();
    let [start] = starts[..] else { panic!("{starts:?}") };
    let args: Vec<&str> = start.split(' ').skip(1).collect();
    check(&args, &variables);
    // A file with an error fails a reload, and the process gets no signal.
    let reloads: Vec<&str> = values_of(&here, "ExecReload").collect();
    assert_eq!(reloads, [&format!("{start} --check"), "/bin/kill -HUP $MAINPID"]);
    // The unit uses the exit codes by their meaning; this concerns the main process alone.
    assert_eq!(values_of(&unit, "RestartPreventExitStatus").next(), Some("2 3"));
    assert_eq!(values_of(&unit, "ExecStartPre").next(), None);
    std::fs::write(&config, "[limits]\nbatch_mux = 1\n").unwrap();
    assert_eq!(run(&args).code, 2);
    assert_eq!(values_of(&unit, "Type").next(), Some("notify"));
    // The state directory is the data directory.
    let state = values_of(&unit, "StateDirectory").next().unwrap();
    assert!(variables.iter().any(|(_, value)| *value == format!("/var/lib/{state}")));
    let limit: u64 = values_of(&unit, "LimitNOFILE").next().unwrap().parse().unwrap();
    assert!(limit >= 20_064, "{limit}");
    // Secrets stay in memory, and memory is limited.
    assert_eq!(values_of(&unit, "LimitCORE").next(), Some("0"));
    assert_eq!(values_of(&unit, "MemorySwapMax").next(), Some("0"));
    let memory_max = values_of(&unit, "MemoryMax").next().unwrap().strip_suffix('M').unwrap();
    let needed_mib = memory_max_mib(default_limits());
    assert!(needed_mib <= memory_max.parse::<u64>().unwrap(), "{needed_mib} MiB of {memory_max}");
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs systemd: --features real-servers")]
fn systemd_finds_no_mistake_in_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = read("deploy/systemd/snowmint.service")
        .replace("/usr/local/bin/snowmint", env!("CARGO_BIN_EXE_snowmint"))
        .replace("Documentation=man:snowmint-serve(1)\n", "");
    let messages = |unit: &str| {
        let file = folder.path().join("snowmint.service");
        std::fs::write(&file, unit).unwrap();
        let mut verify = Command::new(programs::installed("systemd-analyze"));
        let output = verify.args(["verify", "--man=no"]).arg(&file).output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        // It reads all units of the machine, including foreign ones.
        messages
            .lines()
            .filter(|line| line.contains("snowmint"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(messages(&unit), Vec::<String>::new());
    // The tool does report an error.
    assert_ne!(messages(&unit.replace("Type=notify", "Type=notifies")), Vec::<String>::new());

    // Exposure of the service by systemd's own measure from 0 to 10: it has 1.2, a service without
    // any restriction 9.6.
    let is_restricted = |unit: &str| {
        let file = folder.path().join("snowmint.service");
        std::fs::write(&file, unit).unwrap();
        let mut security = Command::new(programs::installed("systemd-analyze"));
        security.args(["security", "--offline=true", "--threshold=15", "--no-pager"]).arg(&file);
        security.output().unwrap().status.success()
    };
    assert!(is_restricted(&unit));
    assert!(!is_restricted(
        &unit.replace("User=snowmint\n", "").replace("ProtectSystem=strict\n", "")
    ));
}

#[test]
fn dockerfile_matches_the_workspace() {
    let file = read("deploy/docker/Dockerfile");
    let line = |start: &str| {
        let mut lines = file.lines().filter_map(|line| line.strip_prefix(start));
        lines.next().unwrap_or_else(|| panic!("no {start}")).trim()
    };
    let list = |text: &str| -> Vec<String> { serde_json::from_str(text).unwrap() };
    // The image builds this package, with the workspace's toolchain.
    let builds = file.lines().find(|line| line.contains("cargo auditable build")).unwrap();
    assert!(builds.contains("-p snowmint-cli") && builds.contains("--profile dist"), "{builds}");
    // The build uses the same tool and version as release binaries.
    let (_, tool) = line("RUN cargo install ").split_once("cargo-auditable@").unwrap();
    assert!(read("ci/bill").contains(&format!("tool auditable {tool}\n")), "{tool}");
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let rust = workspace["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(line("FROM rust:").starts_with(rust), "{rust}");
    // The image's command.
    let variables: Vec<(String, String)> = line("ENV ")
        .split(' ')
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(list(line("ENTRYPOINT ")), ["snowmint"]);
    let command = list(line("CMD "));
    check(&command.iter().map(String::as_str).collect::<Vec<_>>(), &variables);
    let (_, health) = line("HEALTHCHECK ").split_once("CMD ").unwrap();
    assert_eq!(list(health), ["snowmint", "health"]);
    for (name, value) in &variables {
        if let Some((_, port)) = value.rsplit_once(':') {
            assert!(line("EXPOSE ").split(' ').any(|exposed| exposed == port), "{name}");
        }
    }
    assert!(line("USER ").split(':').all(|id| id.parse::<u32>().unwrap() > 0));
    let data = line("VOLUME ");
    assert!(variables.contains(&("SNOWMINT_SERVER__DATA_DIR".into(), data.into())));
}

/// Without this, a build sends gigabytes and the whole git history to the builder.
#[test]
fn image_build_ignores_local_build_output() {
    let ignored = read(".dockerignore");
    for path in [".git", "**/target", "**/snowmint-data"] {
        assert!(ignored.lines().any(|line| line == path), "{path}");
    }
    for line in read(".gitignore").lines().filter_map(|line| line.strip_suffix('/')) {
        let line = line.trim_start_matches('/');
        assert!(ignored.lines().any(|kept| kept.ends_with(line)), "{line}");
    }
}

/// Returns whether Prometheus' own tool accepts this file, and its output.
fn promtool(how: &[&str], file: &Path) -> (bool, String) {
    let mut promtool = Command::new(programs::installed("promtool"));
    let ran = promtool.args(how).arg(file).output().unwrap();
    (
        ran.status.success(),
        String::from_utf8(ran.stdout).unwrap() + &String::from_utf8_lossy(&ran.stderr),
    )
}

/// An operator who corrects a clock must know in which direction it is wrong.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs promtool: --features real-servers")]
fn clock_alert_states_the_direction() {
    let folder = tempfile::tempdir().unwrap();
    let alert = |offset: &str, annotations: &[&str]| {
        let description =
            "Beyond clock.skew_max (10 s) the server is not ready. Check both clocks.";
        let alerts: Vec<_> = annotations
            .iter()
            .map(|summary| {
                serde_json::json!({
                    "exp_labels": { "severity": "warning", "instance": "a" },
                    "exp_annotations": { "summary": summary, "description": description },
                })
            })
            .collect();
        serde_json::json!({
            "interval": "1m",
            "input_series": [{
                "series": "snowmint_clock_offset_seconds{instance=\"a\"}",
                "values": format!("{offset}x20"),
            }],
            "alert_rule_test": [{
                "eval_time": "10m", "alertname": "SnowmintClockOff", "exp_alerts": alerts,
            }],
        })
    };
    let tests = [
        alert("7+0", &["The clock of a is ahead of its time reference: 7 s"]),
        alert("-7+0", &["The clock of a is behind its time reference: -7 s"]),
        alert("1+0", &[]),
        alert("-1+0", &[]),
    ];
    let rules = root().join("deploy/prometheus/alerts.yaml");
    let file = folder.path().join("tests.yaml");
    let text = serde_json::json!({ "rule_files": [rules], "tests": tests }).to_string();
    std::fs::write(&file, text).unwrap();
    let (right, messages) = promtool(&["test", "rules"], &file);
    assert!(right, "{messages}");
}

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs promtool: --features real-servers")]
fn prometheus_reads_the_alerts_and_the_dashboard() {
    let check_rules = ["check", "rules"];
    let (valid, messages) = promtool(&check_rules, &root().join("deploy/prometheus/alerts.yaml"));
    assert!(valid, "{messages}");

    let dashboard = json(&read("deploy/grafana/snowmint.json"));
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    // Grafana substitutes these variables before Prometheus sees the expression.
    let filled = |expr: &str| expr.replace("$__rate_interval", "5m").replace("$instance", ".*");
    let exprs: Vec<String> =
        targets.map(|target| filled(target["expr"].as_str().unwrap())).collect();
    assert!(exprs.len() > 30, "{exprs:?}");
    let folder = tempfile::tempdir().unwrap();
    let check = |exprs: &[String]| {
        let rule =
            |(number, expr)| serde_json::json!({"record": format!("panel_{number}"), "expr": expr});
        let rules: Vec<_> = exprs.iter().enumerate().map(rule).collect();
        let file = folder.path().join("dashboard.yaml");
        // JSON is valid YAML.
        let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
        std::fs::write(&file, groups.to_string()).unwrap();
        promtool(&check_rules, &file)
    };
    let (valid, messages) = check(&exprs);
    assert!(valid, "{messages}");
    // The tool does report an error.
    assert!(!check(&["sum(rate(snowmint_ids_total[5m])".to_owned()]).0);
}

#[test]
fn health_command_equals_readiness() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(serve(folder.path(), &[]));
    server.mint(&["-n", "1"]).ok();
    assert_eq!(run(&["health", "--server", &server.http]).ok(), "ready\n");
    let body = json(&run(&["health", "--server", &server.http, "--json"]).ok());
    assert_eq!(body["ready"], true);
    let address = server.http.clone();
    server.kill();
    assert_eq!(run(&["health", "--server", &address]).code, 4);

    // Two servers share a single worker number.
    let config = folder.path().join("snowmint.toml");
    let one = "[sources]\nbuiltin = false\n[sources.one]\nlayout = \"time=62,worker=0,sequence=1,unit=1ms\"\n";
    std::fs::write(&config, one).unwrap();
    let store = format!("sqlite:{}", folder.path().join("ids.db").display());
    let args = ["--config", config.to_str().unwrap(), "--store", &store];
    let first = Server::start(serve(&folder.path().join("a"), &args));
    first.mint(&["one"]).ok();
    let second = Server::start(serve(&folder.path().join("b"), &args));
    assert_eq!(second.mint(&["one"]).code, 4);
    let ran = run(&["health", "--server", &second.http]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{}", ran.out);
    assert!(ran.out.starts_with("not ready: "), "{}", ran.out);
}

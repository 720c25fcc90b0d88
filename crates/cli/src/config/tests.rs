use snowmint_server::Secret;

use super::layers::{defaults, keys, of_environment, of_file};
use super::*;

pub(super) fn load(
    file: &str,
    environment: &[(&str, &str)],
    flags: Vec<Given>,
) -> Result<Config, String> {
    let mut given = of_file(file, "snowmint.toml").map_err(message_of)?;
    let variables = environment.iter().map(|(name, value)| (name.into(), value.into()));
    given.extend(of_environment(variables).map_err(message_of)?);
    given.extend(flags);
    Config::from_layers(given).map_err(message_of)
}

fn message_of(failure: Failure) -> String {
    match failure {
        Failure::Explained { exit, message, .. } => {
            assert_eq!(exit as u8, 2);
            message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_printed_file_has_every_key_and_changes_nothing() {
    let template = template();
    let read: toml::Table = template.parse().unwrap();
    assert_eq!(keys(&read), keys(&defaults()));
    assert_eq!(read, defaults());
    assert_eq!(load(&template, &[], Vec::new()), Ok(Config::default()));
    for key in snowmint_coord::spec::keys::all() {
        assert!(template.contains(&format!("  {}: ", key.name)), "{} is missing", key.name);
    }
    assert!(template.lines().all(|line| line.chars().count() <= 120));
    let example = template.find("#[sources.orders]").unwrap();
    let lines: Vec<&str> = template[..example].lines().collect();
    for pair in lines.windows(2).filter(|pair| !pair[1].is_empty() && !pair[1].starts_with('#')) {
        assert!(pair[0].starts_with("# "), "{} has no text", pair[1]);
    }
}

/// Errors over several values name their place, too.
#[test]
fn error_names_the_origin_of_its_value() {
    for (file, environment, flags, place) in [
        ("[server]\nhttp = \"x\"\n", None, None, "snowmint.toml, line 2: server.http \"x\" is"),
        (
            "[store]\n\nnamespace = \"a b\"\n",
            None,
            None,
            "snowmint.toml, line 3: store.namespace: ",
        ),
        (
            "[compat.leaf.keys]\n\"a\" = \"b c\"\n[compat.leaf]\nenabled = true\n",
            None,
            None,
            "snowmint.toml, line 2: compat.leaf.keys.\"a\": ",
        ),
        (
            "[server]\nhttp = \"127.0.0.1:1\"\n",
            Some(("SNOWMINT_SERVER__HTTP", "x")),
            None,
            "environment variable SNOWMINT_SERVER__HTTP: server.http \"x\" is",
        ),
        (
            "",
            Some(("SNOWMINT_SERVER__HTTP", "x")),
            Some(("server.http", "--http", "y")),
            "--http: server.http \"y\" is",
        ),
        ("[tls]\ncert = \"x\"\n", None, None, "snowmint.toml, line 2: tls.cert and tls.key"),
    ] {
        let flags = flags.map(|(key, name, text)| Given::flag(key, name, text));
        let environment: Vec<_> = environment.into_iter().collect();
        let message = load(file, &environment, flags.into_iter().collect()).unwrap_err();
        assert!(message.starts_with(place), "{place}: {message}");
    }
}

#[test]
fn the_printed_file_names_every_store_and_every_built_in_source() {
    let template = template();
    for scheme in snowmint_stores::schemes() {
        assert!(template.contains(&format!("{scheme}:")), "{scheme} is missing");
    }
    assert!(!template.contains("{}"), "a listing is missing");
    for source in ["default", "numbers", "counters"] {
        assert!(template.contains(source), "{source} is missing");
    }
}

#[test]
fn printed_example_is_a_valid_configuration() {
    let template = template();
    let uncommented: String = template
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(code) if !code.is_empty() && !code.starts_with(' ') => format!("{code}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let config = load(&uncommented, &[], Vec::new()).unwrap();
    let orders = &config.defined["orders"].spec;
    assert_eq!(orders.layout.as_deref(), Some("twitter,epoch=2026-01-01T00:00:00Z"));
    assert_eq!(orders.prefill.as_ref().unwrap().enabled, Some(false));
}

#[test]
fn a_worker_number_is_a_number_or_a_word() {
    let file = |number: &str| load(&format!("[worker]\nnumber = {number}\n"), &[], Vec::new());
    for (text, number) in [
        ("7", NumberChoice::Exactly(7)),
        ("0", NumberChoice::Exactly(0)),
        ("\"7\"", NumberChoice::Exactly(7)),
        ("\"ordinal\"", NumberChoice::Ordinal),
        ("\"any\"", NumberChoice::Any),
    ] {
        assert_eq!(file(text).unwrap().worker.number, number, "{text}");
        let variable = [("SNOWMINT_WORKER__NUMBER", text.trim_matches('"'))];
        assert_eq!(load("", &variable, Vec::new()).unwrap().worker.number, number, "{text}");
    }
    for text in ["-1", "\"first\"", "\"\"", "7.5", "true", "18446744073709551616"] {
        assert!(file(text).is_err(), "{text}");
    }
    assert!(file("-1").unwrap_err().contains("ordinal"));
    let both = "[worker]\nnumber = 7\nreuse = \"never\"\n";
    assert!(load(both, &[], Vec::new()).unwrap_err().contains("leave one of them out"));
}

#[test]
fn the_number_of_attempts_has_limits() {
    let file = |value: &str| load(&format!("[store]\nattempts_max = {value}\n"), &[], Vec::new());
    for value in [1, 64, 10_000] {
        assert_eq!(file(&value.to_string()).unwrap().store.attempts_max, value);
    }
    for value in ["0", "10001", "-1"] {
        assert!(file(value).is_err(), "{value}");
    }
}

#[test]
fn the_highest_bound_of_a_counter_has_a_limit() {
    let file = |bound: &str| load(&format!("[limits]\nbound_max = {bound}\n"), &[], Vec::new());
    for bound in [0, 9_007_199_254_740_992, 1 << 62] {
        assert_eq!(file(&bound.to_string()).unwrap().limits.bound_max, bound);
    }
    let refused = file("4611686018427387905").unwrap_err();
    for part in ["line 2: limits.bound_max", "the maximum is 4611686018427387904 (2^62); lower it"]
    {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn durations_have_limits_that_errors_name() {
    for (key, min, below, max, above, limits) in [
        ("worker.window", "1s", "999ms", "1d", "86400001ms", "1s to 1d"),
        ("worker.idle_after", "1s", "999ms", "1d", "2d", "1s to 1d"),
        ("worker.lead_max", "1s", "0s", "24h", "2d", "1s to 1d"),
        ("clock.skew_max", "100ms", "99ms", "1d", "86401s", "100ms to 1d"),
        ("clock.jump_max", "1s", "999ms", "30d", "31d", "1s to 30d"),
        ("counters.lease", "1s", "999ms", "5m", "301s", "1s to 5m"),
    ] {
        let (section, name) = key.split_once('.').unwrap();
        let template = template();
        let (_, keys) = template.split_once(&format!("\n[{section}]\n")).unwrap();
        let (text, _) = keys.split_once(&format!("\n{name} = ")).unwrap();
        let text = text.replace("\n# ", " ");
        assert!(text.ends_with(&format!(" Allowed: {limits}.")), "{text}");
        let file = |value: &str| format!("[{section}]\n{name} = \"{value}\"\n");
        for value in [min, max] {
            load(&file(value), &[], Vec::new()).unwrap();
        }
        for value in [below, above] {
            let message = format!("{key}: \"{value}\" is invalid: allowed are {limits}");
            assert_eq!(
                load(&file(value), &[], Vec::new()),
                Err(format!("snowmint.toml, line 2: {message}"))
            );
            let variable = format!("SNOWMINT_{}__{}", section.to_uppercase(), name.to_uppercase());
            assert_eq!(
                load("", &[(&variable, value)], Vec::new()),
                Err(format!("environment variable {variable}: {message}"))
            );
        }
        // A duration without a unit is rejected.
        assert!(load(&file("5"), &[], Vec::new()).unwrap_err().contains("250ms or 5s"));
    }
    let message = load("[worker]\nafter_crash = \"hope\"", &[], Vec::new()).unwrap_err();
    for part in ["line 2: worker.after_crash: \"hope\" is invalid", "other-worker", "refuse"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = "[server]\nhttp = \"h:1\"\nresp = \"h:2\"\nowner = \"file\"\n";
    let environment = [("SNOWMINT_SERVER__RESP", "h:3"), ("SNOWMINT_SERVER__OWNER", "environment")];
    let flags = vec![Given::flag("server.owner", "--owner", "flag")];
    let server = load(file, &environment, flags).unwrap().server;
    assert_eq!((&*server.http, &*server.resp, &*server.owner), ("h:1", "h:3", "flag"));
}

#[test]
fn sources_come_from_every_layer_with_their_keys() {
    let file = "[sources]\nbuiltin = false\n[sources.a]\nlayout = \"twitter\"\nburst = \"5ms\"\n\
                [sources.a.prefill]\nenabled = false\n[sources.\"b.c\"]\nkind = \"segment\"\nstep.min = 7\n[sources.plain]\n";
    let environment = [("SNOWMINT_SOURCES__A__LAYOUT", "discord"), ("SNOWMINT_SERVICE_HOST", "x")];
    let config = load(file, &environment, Vec::new()).unwrap();
    assert!(!config.sources.builtin);
    assert_eq!(config.defined.keys().collect::<Vec<_>>(), ["a", "b.c", "plain"]);
    assert_eq!(config.defined["a"].spec.layout.as_deref(), Some("discord"));
    assert_eq!(config.defined["b.c"].spec.step.as_ref().unwrap().min, Some(7));
    assert_eq!(config.defined["plain"].spec, SourceSpec::default());
}

#[test]
fn keys_of_other_systems_have_sources() {
    let file = "[compat.leaf]\nenabled = true\n[compat.leaf.keys]\n\"leaf-test\" = \"orders\"\n\
                [compat.tinyid.tokens]\n0f67 = \"test, test_odd\"\n\
                [compat.cosid.keys]\n\"demo.order@2026\" = \"orders\"\n";
    let compat = load(file, &[], Vec::new()).unwrap().compat;
    assert!(compat.leaf.enabled && !compat.tinyid.enabled && !compat.cosid.enabled);
    assert_eq!(compat.leaf.keys["leaf-test"], "orders");
    assert_eq!(compat.tinyid.tokens[&Secret::new("0f67")], "test, test_odd");
    assert_eq!(compat.cosid.keys["demo.order@2026"], "orders");
    let variable = [("SNOWMINT_COMPAT__TINYID__ENABLED", "true")];
    assert!(load("", &variable, Vec::new()).unwrap().compat.tinyid.enabled);
    for (file, start) in [
        ("[compat.leaf.keys]\nx = \"a b\"", "snowmint.toml, line 2: compat.leaf.keys.\"x\": "),
        ("[compat.leaf.keys]\nx = 5", "snowmint.toml, line 2: compat.leaf.keys.x: expected a text"),
        (
            "[compat.leaf]\nzone = \"Mars\"",
            "snowmint.toml, line 2: compat.leaf.zone \"Mars\" is not a time zone",
        ),
        ("[compat.leaf.key]\nx = \"y\"", "snowmint.toml, line 2: compat.leaf.key.x: unknown key"),
        (
            "[compat.zero]\nenabled = true",
            "snowmint.toml, line 2: compat.zero.enabled: unknown key",
        ),
    ] {
        let message = load(file, &[], Vec::new()).unwrap_err();
        assert!(message.starts_with(start), "{file}: {message}");
    }
}

#[test]
fn errors_name_place_key_and_expected_value() {
    for (file, message) in [
        (
            "[server]\nhtpp = \"x\"",
            "snowmint.toml, line 2: server.htpp: unknown key; did you mean server.http?",
        ),
        (
            "[sever]\nhttp = \"x\"",
            "snowmint.toml, line 2: sever.http: unknown key; did you mean server.http?",
        ),
        (
            "\nport = 1",
            "snowmint.toml, line 2: port: unknown key; `snowmint config` prints all keys",
        ),
        (
            "[server]\n\nhttp = 7700",
            "snowmint.toml, line 3: server.http: expected a text, not 7700",
        ),
        ("server = 5", "snowmint.toml, line 1: server: expected a table, not 5"),
        (
            "[server.http]\nx = 1",
            "snowmint.toml, line 2: server.http.x: unknown key; did you mean server.http?",
        ),
        (
            "[sources]\nbuiltin = \"no\"",
            "snowmint.toml, line 2: sources.builtin: expected true or false, not \"no\"",
        ),
        (
            "[sources.a]\nlayout = 5",
            "snowmint.toml, line 2: sources.a.layout: expected a text in quotes, not 5",
        ),
        (
            "[sources.a]\nstep.min = \"5\"",
            "snowmint.toml, line 2: sources.a.step.min: expected a whole number, not \"5\"",
        ),
        (
            "[http]\nhosts = \"ids.example\"",
            "snowmint.toml, line 2: http.hosts: expected a list of texts, not \"ids.example\"",
        ),
        (
            "[disguise.keys]\n1 = 5",
            "snowmint.toml, line 2: disguise.keys.1: expected a text, not the given value",
        ),
    ] {
        assert_eq!(load(file, &[], Vec::new()), Err(message.to_owned()), "{file}");
    }
    for (file, start) in [
        ("[server\nx", "snowmint.toml, line 1: "),
        ("[server]\nhttp = \"a\"\nhttp = \"b\"", "snowmint.toml, line 3: duplicate key"),
        (
            "[sources.a]\nlayuot = \"x\"",
            "snowmint.toml, line 2: sources.a.layuot: a source has no key",
        ),
        ("[sources.a]\nlayout = \"twiter\"", "snowmint.toml, line 2: sources.a: layout"),
        (
            "[sources.a]\nprefill = 5",
            "snowmint.toml, line 2: sources.a.prefill: a source has no key",
        ),
        ("[sources.\"a/b\"]\n", "snowmint.toml, line 1: sources.a/b: "),
        ("[store]\nnamespace = \"a b\"", "snowmint.toml, line 2: store.namespace: "),
    ] {
        let message = load(file, &[], Vec::new()).unwrap_err();
        assert!(message.starts_with(start), "{file}: {message}");
    }
    let message = load("", &[("SNOWMINT_SERVER__HTPP", "x")], Vec::new()).unwrap_err();
    assert!(
        message.starts_with("environment variable SNOWMINT_SERVER__HTPP: server.htpp: "),
        "{message}"
    );
    let message = load("", &[("SNOWMINT_SOURCES__BUILTIN", "maybe")], Vec::new()).unwrap_err();
    assert!(message.ends_with("expected true or false, not \"maybe\""), "{message}");
}

#[test]
fn hosts_come_as_a_list_or_in_one_text() {
    let file = "[http]\nhosts = [\"ids.example\", \"10.0.0.7:7700\"]";
    let hosts = |config: Result<Config, String>| config.unwrap().http.hosts;
    let both = ["ids.example", "10.0.0.7:7700"];
    assert_eq!(hosts(load(file, &[], Vec::new())), both);
    for text in ["ids.example,10.0.0.7:7700", " ids.example , 10.0.0.7:7700, "] {
        assert_eq!(hosts(load("", &[("SNOWMINT_HTTP__HOSTS", text)], Vec::new())), both);
    }
    assert!(hosts(load(file, &[("SNOWMINT_HTTP__HOSTS", "")], Vec::new())).is_empty());
}

/// Such a value would block all requests, or make the start fail later.
#[test]
fn impossible_values_are_refused_with_the_key_and_the_limit() {
    let long = "x".repeat(256);
    for (section, key, value, limit) in [
        ("limits", "batch_max", "0", "the minimum is 1; raise it"),
        ("limits", "batch_max", "-1", "the minimum is 1; raise it"),
        ("limits", "batch_max", "4294967296", "the maximum is 4294967295; lower it"),
        ("limits", "sources_max", "-1", "the minimum is 0; raise it"),
        ("limits", "passed_on_max", "2", "the minimum is 3"),
        ("limits", "workers_max", "0", "the minimum is 1"),
        ("traces", "one_in", "0", "the minimum is 1"),
        ("compat.tinyid", "segment_length", "0", "the minimum is 1"),
        ("compat.cosid", "machines_max", "0", "the minimum is 1"),
        ("http", "connections_max", "0", "the minimum is 1"),
        ("http", "hosts", "[\"http://ids.example\"]", "write HOST or HOST:PORT"),
        ("http", "hosts", "[\"*\"]", "write HOST or HOST:PORT"),
        ("http", "hosts", "[5]", "expected a string"),
        ("http", "body_bytes_max", "0", "the minimum is 1"),
        ("http", "head_bytes_max", "100", "the minimum is 8192"),
        ("http", "head_time_max", "\"0s\"", "the minimum is 1ms"),
        ("http", "auth_time_max", "\"0s\"", "the minimum is 1ms"),
        ("http", "request_time_max", "\"0s\"", "the minimum is 1ms"),
        ("http", "idle_max", "\"0s\"", "the minimum is 1ms"),
        ("resp", "connections_max", "0", "the minimum is 1"),
        ("resp", "auth_time_max", "\"0s\"", "the minimum is 1ms"),
        ("resp", "frame_time_max", "\"0s\"", "the minimum is 1ms"),
        ("resp", "write_time_max", "\"0s\"", "the minimum is 1ms"),
        ("resp", "idle_max", "\"0s\"", "the minimum is 1ms"),
        ("clock", "ntp", "\":::\"", "write HOST or HOST:PORT"),
        ("worker", "number", "4611686018427387904", "the maximum is 4611686018427387903"),
        ("server", "owner", &format!("{long:?}"), "256 bytes, maximum 255"),
    ] {
        let file = format!("[{section}]\n{key} = {value}\n");
        let message = load(&file, &[], Vec::new()).expect_err(&file);
        for part in [&format!("{section}.{key}"), limit] {
            assert!(message.contains(part), "{file}: {message}");
        }
    }
    // Values that switch something off, and values at their limits.
    for file in [
        "[limits]\nbatch_max = 1\nstream_max = 0\nsegment_max = 0\nwait_max = \"0s\"\nstop_max = \"0s\"",
        "[http]\nhead_bytes_max = 8192",
        "[worker]\nnumber = 4611686018427387903",
        &format!("[server]\nowner = {:?}", "x".repeat(255)),
    ] {
        load(file, &[], Vec::new()).expect(file);
    }
}

/// Sources of the catalog are unknown here; only known sources are checked.
#[test]
fn the_source_of_keys_that_stand_alone_counts() {
    let default = "[resp]\ndefault_counter_source = ";
    for (file, part) in [
        ("\"a/b\"", "a/b"),
        ("\"numbers\"", "has kind segment"),
        ("\"default\"", "has kind snowflake"),
        ("\"orders\"\n[sources.orders]", "has kind snowflake"),
        ("\"counters\"\n[sources.counters]\nkind = \"segment\"", "has kind segment"),
    ] {
        let message = load(&format!("{default}{file}"), &[], Vec::new()).expect_err(file);
        for part in ["resp.default_counter_source", part] {
            assert!(message.contains(part), "{file}: {message}");
        }
    }
    for file in [
        "\"\"",
        "\"counters\"",
        "\"elsewhere\"",
        "\"orders\"\n[sources.orders]\nkind = \"counter\"",
        "\"numbers\"\n[sources]\nbuiltin = false",
    ] {
        load(&format!("{default}{file}"), &[], Vec::new()).expect(file);
    }
}

/// A successor waits for lease and margin, and reads the list of members every third of the lease.
#[test]
fn default_lease_lets_a_successor_serve_in_five_seconds() {
    let lease_ms = Config::default().counters.lease.ms();
    let longest_ms = snowmint_coord::exclusive::stall_ms(lease_ms) + lease_ms / 3;
    assert!(longest_ms < 5_000, "{longest_ms} ms");
}

//! Tables of Leaf, Tinyid and CosId become sources above all their issued numbers.

use std::process::Command;

use snowmint_testkit::programs;
use snowmint_testkit::servers::{self, Mysql, Postgres};

use crate::common::{Ran, json, run};
use crate::import::ImportDir;
use crate::server::{Server, serve};

/// Table of Leaf's own schema.
const LEAF: &str = "CREATE TABLE leaf_alloc (
    biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1',
    step int(11) NOT NULL, description varchar(256) DEFAULT NULL,
    update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (biz_tag)) ENGINE=InnoDB;";

/// Table of Tinyid's own schema.
const TINYID: &str = "CREATE TABLE tiny_id_info (
    id bigint(20) unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '',
    begin_id bigint(20) NOT NULL DEFAULT '0', max_id bigint(20) NOT NULL DEFAULT '0',
    step int(11) DEFAULT '0', delta int(11) NOT NULL DEFAULT '1',
    remainder int(11) NOT NULL DEFAULT '0',
    create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
    update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
    version bigint(20) NOT NULL DEFAULT '0',
    PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB;";

/// Table of CosId's own schema.
const COSID: &str = "CREATE TABLE cosid (
    name varchar(100) NOT NULL PRIMARY KEY, last_max_id bigint NOT NULL DEFAULT 0,
    last_fetch_time bigint NOT NULL);";

fn plan(ran: &Ran) -> Vec<serde_json::Value> {
    ran.out.lines().map(json).collect()
}

#[test]
fn leafs_tags_become_sources_once_and_are_raised_never_lowered() {
    let (leaf, import_dir) = (Mysql::start(&[]), ImportDir::new());
    leaf.run(LEAF);
    leaf.run(
        "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES
         ('orders', 2001, 1000), ('leaf/test', 1, 10), ('big', 1 << 62, 5)",
    );
    let names = ["--name", "leaf/test=test"];
    let dry =
        import_dir.import("leaf", &leaf.url(), &[&names[..], &["--dry-run", "--json"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.err.contains("nothing was changed"), "{}", dry.err);
    assert!(!import_dir.store().exists(), "a plan makes no store");
    let items = plan(&dry);
    let firsts: Vec<_> = items.iter().map(|item| item["first"].as_u64().unwrap()).collect();
    assert_eq!(firsts, [1 << 62, 1, 2001]);
    assert!(items.iter().all(|item| item["action"] == "define"), "{items:?}");

    let done = import_dir.import("leaf", &leaf.url(), &names).ok();
    assert!(done.contains("define, from 2001 on"), "{done}");
    let again = import_dir.import("leaf", &leaf.url(), &[&names[..], &["--json"]].concat());
    assert!(plan(&again).iter().all(|item| item["action"] == "keep"), "{}", again.out);
    assert_eq!(again.ok().lines().count(), 3);
    assert_eq!(import_dir.mint("orders", 2), [2001, 2002]);
    assert_eq!(import_dir.mint("test", 1), [1]);
    assert_eq!(import_dir.mint("big", 1), [1 << 62]);
    let again = import_dir.import("leaf", &leaf.url(), &names);
    assert_eq!(again.code, 0, "what was minted here lies above: {again:?}");

    // Leaf continued, also with numbers already minted here: the overlap is reported, and later
    // numbers lie above.
    leaf.run("UPDATE leaf_alloc SET max_id = max_id + 7 * step WHERE biz_tag = 'orders'");
    for _ in 0..2 {
        let raised = import_dir.import("leaf", &leaf.url(), &[&names[..], &["--json"]].concat());
        assert_eq!(raised.code, 1, "{raised:?}");
        assert!(raised.err.contains("2001 to "), "{}", raised.err);
        assert_eq!(plan(&raised)[2]["first"], 9001);
        let trail = import_dir.trail();
        let raised: Vec<_> = trail.iter().filter(|line| line.contains("raised")).collect();
        assert!(raised.len() == 1 && raised[0].contains("\"first\":9001"), "{trail:?}");
        if import_dir.mint("orders", 1) == [9001] {
            break;
        }
    }
    leaf.run("UPDATE leaf_alloc SET max_id = 5 WHERE biz_tag = 'orders'");
    assert_eq!(import_dir.import("leaf", &leaf.url(), &names).code, 0);
    assert!(import_dir.mint("orders", 1)[0] > 9001);
}

#[test]
fn outliers_are_refused_and_nothing_else_is_done() {
    let (leaf, import_dir) = (Mysql::start(&[]), ImportDir::new());
    let none = import_dir.import("leaf", &leaf.url(), &[]);
    assert_eq!((none.code, none.out.as_str()), (1, ""), "{none:?}");
    assert!(none.err.contains("leaf_alloc"), "{}", none.err);
    leaf.run(LEAF);
    leaf.run(
        "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('good', 100, 10),
         ('negative', -5, 10), ('still', 100, 0), ('far', 4611686018427387906, 10), ('a b', 1, 1)",
    );
    let refused = import_dir.import("leaf", &leaf.url(), &[]);
    assert_eq!(refused.code, 3, "{refused:?}");
    for word in ["max_id = -5", "step is 0", "2^62", "--name a b=SOURCE", "define, from 100 on"] {
        assert!(refused.out.contains(word), "{word}: {}", refused.out);
    }
    assert!(refused.err.contains("4 of 5 keys"), "{}", refused.err);
    assert!(!import_dir.store().exists());
    let excepted: Vec<_> =
        ["negative", "still", "far"].iter().flat_map(|key| ["--except", key]).collect();
    let some = [&excepted[..], &["--name", "a b=good"]].concat();
    let twice = import_dir.import("leaf", &leaf.url(), &some);
    assert!(twice.code == 3 && twice.out.contains("has the same source"), "{twice:?}");
    import_dir.import("leaf", &leaf.url(), &[&excepted[..], &["--name", "a b=ab"]].concat()).ok();
    let unknown = import_dir.import("leaf", &leaf.url(), &["--only", "nothing"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    let unsupported = import_dir.import("leaf", "redis://127.0.0.1:1", &[]);
    assert_eq!(unsupported.code, 2, "{unsupported:?}");
}

#[test]
fn tinyids_databases_become_one_source_when_all_are_named() {
    let (odd, even) = (Mysql::start(&[]), Mysql::start(&[]));
    for (server, remainder, max) in [(&odd, 1, 500), (&even, 0, 900)] {
        server.run(TINYID);
        server.run(&format!(
            "INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES
             ('orders', {max}, 100, 2, {remainder})"
        ));
    }
    let import_dir = ImportDir::new();
    let both = ["--from", &even.url()];
    let shown = import_dir.import("tinyid", &odd.url(), &[&both[..], &["--dry-run"]].concat());
    for part in ["up to 500, stripe 1 of 2", "up to 900, stripe 2 of 2", "define, from 901 on"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let json =
        import_dir.import("tinyid", &odd.url(), &[&both[..], &["--dry-run", "--json"]].concat());
    assert_eq!(plan(&json)[0]["parts"][1]["highest"], 900, "{json:?}");
    import_dir.import("tinyid", &odd.url(), &both).ok();
    assert_eq!(import_dir.mint("orders", 3), [901, 902, 903]);
    let import_dir = ImportDir::new();
    import_dir.import("tinyid", &odd.url(), &[]).ok();
    assert_eq!(import_dir.mint("orders", 2), [501, 503]);
    let mixed = import_dir.import("tinyid", &even.url(), &[]);
    assert!(mixed.code == 3 && mixed.out.contains("stripe 1 of 2"), "{mixed:?}");
    odd.run("UPDATE tiny_id_info SET remainder = 5");
    let wrong = import_dir.import("tinyid", &odd.url(), &[]);
    assert!(wrong.code == 3 && wrong.out.contains("remainder = 5"), "{wrong:?}");
}

/// The output is a configuration that admits Tinyid's clients with their present tokens.
#[test]
fn tinyids_tokens_become_a_table_of_hashes() {
    let (tinyid, import_dir) = (Mysql::start(&[]), ImportDir::new());
    let none = import_dir.import("tinyid", &tinyid.url(), &["--tokens"]);
    assert!(none.code == 1 && none.err.contains("tiny_id_token"), "{none:?}");
    tinyid.run(
        "CREATE TABLE tiny_id_token (
            id int(11) unsigned NOT NULL AUTO_INCREMENT, token varchar(255) NOT NULL DEFAULT '',
            biz_type varchar(63) NOT NULL DEFAULT '', remark varchar(255) NOT NULL DEFAULT '',
            create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
            update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id)) ENGINE=InnoDB;
         INSERT INTO tiny_id_token (token, biz_type) VALUES
         ('0f673adf80504e2eaa552f5d791b644c', 'numbers'), ('0f673adf80504e2eaa552f5d791b644c', 'test'),
         ('short', 'test')",
    );
    let printed = import_dir.import("tinyid", &tinyid.url(), &["--tokens"]);
    assert!(printed.err.contains("1 of 2 tokens"), "{printed:?}");
    let table = printed.out;
    assert!(!table.contains("0f673adf") && !table.contains("short"), "{table}");
    let lines = import_dir.import("tinyid", &tinyid.url(), &["--tokens", "--json"]).out;
    assert_eq!(lines.lines().filter(|line| json(line)["hash"].is_string()).count(), 2);

    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, format!("[compat.tinyid]\nenabled = true\n{table}")).unwrap();
    let with = ["--config", config.to_str().unwrap()];
    run(&[&["serve", "--check"][..], &with].concat()).ok();
    let server = Server::start(serve(import_dir.0.path(), &with));
    let queried = |token: &str| {
        let url = format!("http://{}/tinyid/id/nextId?bizType=numbers&token={token}", server.http);
        let queried = Command::new(programs::installed("curl"))
            .args(["-sS", "--max-time", "60", &url])
            .output()
            .unwrap();
        json(std::str::from_utf8(&queried.stdout).unwrap())["code"].as_u64().unwrap()
    };
    assert_eq!((queried("0f673adf80504e2eaa552f5d791b644c"), queried("short")), (200, 5));
    server.kill();
}

#[test]
fn tinyid_import_reads_all_databases_or_does_nothing() {
    let (odd, even, import_dir) = (Mysql::start(&[]), Mysql::start(&[]), ImportDir::new());
    odd.run(TINYID);
    odd.run(
        "INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES
         ('orders', 500, 100, 2, 1)",
    );
    let with = |more: &str| import_dir.import("tinyid", &odd.url(), &["--from", more]);
    let away = with("mysql://root@127.0.0.1:1/tinyid");
    assert_eq!((away.code, away.out.as_str()), (4, ""), "{away:?}");
    for part in ["1 of 2 databases cannot be read", "127.0.0.1:1/tinyid"] {
        assert!(away.err.contains(part), "{part}: {}", away.err);
    }
    let without = with(&even.url());
    assert_eq!((without.code, without.out.as_str()), (1, ""), "{without:?}");
    assert!(without.err.contains("1 of 2 databases cannot be read"), "{}", without.err);
    even.run(TINYID);
    let lacking = with(&even.url());
    assert_eq!(lacking.code, 3, "{lacking:?}");
    assert!(lacking.out.contains("no stripe of it is in MySQL at"), "{}", lacking.out);
    assert!(!import_dir.store().exists());
}

#[test]
fn cosid_names_and_machine_ids_come_from_redis_and_clusters() {
    let (one, cluster) = (servers::Redis::start(&[]), servers::RedisCluster::start());
    for (url, cluster_mode) in [(one.url(), false), (cluster.url(), true)] {
        let import_dir = ImportDir::new();
        let none = import_dir.import("cosid", &url, &[]);
        assert_eq!(none.code, 1, "{none:?}");
        // SpringRedisIdSegmentDistributor and its scripts for machine IDs leave this state.
        let port = url.split([',', '/']).find_map(|part| part.strip_prefix("127.0.0.1:")).unwrap();
        let ask = |words: &[&str]| {
            let fixed = ["-p", port];
            let more = if cluster_mode { &["-c"][..] } else { &[][..] };
            let output = Command::new(programs::installed("redis-cli"))
                .args(fixed)
                .args(more)
                .args(words)
                .output();
            let output = output.unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        ask(&["SET", "cosid:{app.orders}.adder", "4100"]);
        ask(&["INCRBY", "cosid:{app.orders}.adder", "100"]);
        ask(&["SET", "cosid:{app.bills}.adder", "0"]);
        ask(&["HSET", "cosid:{app}:itc_idx", "10.0.0.1:80|7", "3|1793000000000"]);
        ask(&["HSET", "cosid:{app}:revert", "5", "1793000000000"]);
        ask(&["SET", "cosid:{app}:adder", "5"]);
        let plan = import_dir.import("cosid", &url, &["--json", "--dry-run"]);
        let lines: Vec<_> = plan.out.lines().map(json).collect();
        let firsts: Vec<_> = lines.iter().filter_map(|line| line["first"].as_u64()).collect();
        assert_eq!(firsts, [1, 4201], "{plan:?}");
        let excluded: Vec<_> = lines.iter().filter_map(|line| line["worker"].as_u64()).collect();
        assert_eq!(excluded, [3, 5, 3, 5], "for servers here, and for clients of theirs: {plan:?}");
        import_dir.import("cosid", &url, &[]).ok();
        assert_eq!(import_dir.mint("app.orders", 2), [4201, 4202], "{url}");
        let cut = import_dir.import("cosid", &url, &["--cut-over"]);
        assert!(cut.code != 0, "{cut:?}");
        let leaf = import_dir.import("leaf", &url, &[]);
        assert!(leaf.code == 2 && leaf.err.contains("MySQL or PostgreSQL"), "{leaf:?}");
    }
}

#[test]
fn cosids_names_are_read_from_mysql_and_postgresql() {
    let (mysql, postgres) = (Mysql::start(&[]), Postgres::start(&[]));
    let row = "INSERT INTO cosid VALUES ('app.orders', 4200, 0)";
    mysql.run(COSID);
    mysql.run(row);
    postgres.run(COSID);
    postgres.run(row);
    for url in [mysql.url(), postgres.url()] {
        let import_dir = ImportDir::new();
        import_dir.import("cosid", &url, &[]).ok();
        assert_eq!(import_dir.mint("app.orders", 2), [4201, 4202], "{url}");
    }
}

#[test]
fn replica_is_reported_with_the_advice_to_use_the_primary() {
    let (server, import_dir) = (Mysql::start(&["read-only=1"]), ImportDir::new());
    server.run(COSID);
    server.run("INSERT INTO cosid VALUES ('orders', 1, 0)");
    let dry_run = import_dir.import("cosid", &server.url(), &["--dry-run"]);
    assert_eq!(dry_run.code, 0, "{dry_run:?}");
    assert!(dry_run.err.contains("Name the primary"), "{}", dry_run.err);
}

#[test]
fn both_systems_serve_until_the_table_is_cut_over() {
    let (leaf, import_dir) = (Mysql::start(&[]), ImportDir::new());
    leaf.run(LEAF);
    leaf.run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 2001, 1000)");
    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, format!("[upstreams]\nold = \"leaf+{}\"\n", leaf.url())).unwrap();
    let with = ["--config", config.to_str().unwrap()];
    let import =
        |more: &[&str]| import_dir.import("leaf", &leaf.url(), &[&with[..], more].concat());
    let mint = || {
        let args = ["mint", "orders", "-n", "2", "--data-dir", import_dir.dir()];
        run(&[&args[..], &with].concat()).ok().lines().map(|id| id.parse().unwrap()).collect()
    };
    let unknown = import_dir.import("leaf", &leaf.url(), &["--allocate-from", "old"]);
    assert!(unknown.code != 0 && unknown.err.contains("[upstreams]"), "{unknown:?}");
    import(&["--allocate-from", "old"]).ok();
    assert!(import(&["--allocate-from", "old"]).ok().contains("nothing to do"));
    let ids: Vec<u64> = mint();
    assert_eq!(ids, [2001, 2002]);
    // Numbers that Leaf allocates meanwhile are Leaf's.
    leaf.run("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'");
    let still = import(&[]);
    assert!(still.code == 3 && still.out.contains("--cut-over"), "{still:?}");
    let plan = import(&["--cut-over", "--dry-run"]);
    assert!(plan.code == 0 && plan.out.contains("cut over, above"), "{plan:?}");

    import(&["--cut-over"]).ok();
    let trail = import_dir.trail();
    let [defined, cut] = trail.as_slice() else { panic!("{trail:?}") };
    for (line, what) in [(defined, "defined (import)"), (cut, "cut over (import)")] {
        assert!(line.contains(&format!("audit: source orders {what} who=uid ")), "{line}");
    }
    assert!(defined.contains("before=none after=version"), "{defined}");
    let (before, after) = cut.split_once(" after=").unwrap();
    assert!(before.contains("old:orders") && !after.contains("old:orders"), "{cut}");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        leaf.run("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'");
    }));
    assert!(caught.is_err(), "Leaf's servers fail from here on");
    assert!(import(&["--cut-over"]).ok().contains("nothing to do"));
    let after: Vec<u64> = mint();
    assert!(after[0] > 3001, "{after:?}");
    assert!(import(&[]).ok().contains("nothing to do"));
}

/// Ending a copy of the table would leave Leaf and the source issuing the same numbers.
#[test]
fn only_the_upstream_table_is_cut_over() {
    let (leaf, copy, import_dir) = (Mysql::start(&[]), Mysql::start(&[]), ImportDir::new());
    for server in [&leaf, &copy] {
        server.run(LEAF);
        server.run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 2001, 1000)");
    }
    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, format!("[upstreams]\nold = \"leaf+{}\"\n", leaf.url())).unwrap();
    let with = ["--config", config.to_str().unwrap()];
    let import = |from: &str, more: &[&str]| import_dir.import("leaf", from, more);
    import(&leaf.url(), &[&with[..], &["--allocate-from", "old"]].concat()).ok();
    let cut = [&with[..], &["--cut-over"]].concat();

    let other = import(&copy.url(), &cut);
    assert_eq!((other.code, other.out.as_str()), (2, ""), "{other:?}");
    assert!(other.err.contains("upstreams.old"), "{other:?}");
    let unknown = import(&leaf.url(), &["--cut-over"]);
    assert!(unknown.code == 2 && unknown.err.contains("[upstreams]"), "{unknown:?}");
    let other_system = import_dir.import("cosid", &leaf.url(), &cut);
    assert_ne!(other_system.code, 0, "{other_system:?}");
    // A table behind the source is a copy under the name of the original.
    let args = ["mint", "orders", "--data-dir", import_dir.dir()];
    run(&[&args[..], &with].concat()).ok();
    leaf.run("UPDATE leaf_alloc SET max_id = 2001 WHERE biz_tag = 'orders'");
    let back = import(&leaf.url(), &cut);
    assert!(back.code == 3 && back.out.contains("is older or a copy"), "{back:?}");
    for server in [&leaf, &copy] {
        server.run("UPDATE leaf_alloc SET max_id = max_id + 9000 WHERE biz_tag = 'orders'");
    }

    // Another user, or another spelling of the scheme, is still the same table.
    let same = leaf.url().replacen("mysql://", "mariadb://", 1);
    import(&same, &cut).ok();
    assert!(import(&leaf.url(), &[]).ok().contains("nothing to do"));
}

/// A source planned from a copy would allocate from the original, which issues other numbers.
#[test]
fn source_allocates_only_from_the_named_table() {
    let (leaf, copy, import_dir) = (Mysql::start(&[]), Mysql::start(&[]), ImportDir::new());
    for (server, max) in [(&leaf, 100_001), (&copy, 5_001)] {
        server.run(LEAF);
        server.run(&format!(
            "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', {max}, 1000)"
        ));
    }
    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, format!("[upstreams]\nold = \"leaf+{}\"\n", copy.url())).unwrap();
    let allocates = ["--config", config.to_str().unwrap(), "--allocate-from", "old"];
    for more in [&allocates[..], &[&allocates[..], &["--dry-run"]].concat()] {
        let other = import_dir.import("leaf", &leaf.url(), more);
        assert_eq!((other.code, other.out.as_str()), (2, ""), "{other:?}");
        assert!(other.err.contains("upstreams.old"), "{other:?}");
    }
    assert!(!import_dir.store().exists(), "nothing is defined");
    let both = import_dir.import(
        "leaf",
        &copy.url(),
        &[&allocates[..], &["--from", &leaf.url()]].concat(),
    );
    assert_ne!(both.code, 0, "{both:?}");
    assert!(!import_dir.store().exists(), "nothing is defined");

    import_dir.import("leaf", &copy.url(), &allocates).ok();
    // The second run would change nothing, but its plan would show another table.
    let other = import_dir.import("leaf", &leaf.url(), &allocates);
    assert_eq!((other.code, other.out.as_str()), (2, ""), "{other:?}");
    assert!(import_dir.import("leaf", &copy.url(), &allocates).ok().contains("nothing to do"));
}

/// The store records the end first, then the row ends, and only then the source gets numbers of its
/// own.
#[test]
fn interrupted_cut_over_leaves_both_or_neither_allocating() {
    let (leaf, import_dir) = (Mysql::start(&[]), ImportDir::new());
    leaf.run(LEAF);
    leaf.run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 2001, 10)");
    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, format!("[upstreams]\nold = \"leaf+{}\"\n", leaf.url())).unwrap();
    let with = ["--config", config.to_str().unwrap()];
    let import =
        |more: &[&str]| import_dir.import("leaf", &leaf.url(), &[&with[..], more].concat());
    let minted = || -> Vec<u64> {
        let args = ["mint", "orders", "-n", "20", "--data-dir", import_dir.dir()];
        run(&[&args[..], &with].concat()).ok().lines().map(|id| id.parse().unwrap()).collect()
    };
    import(&["--allocate-from", "old"]).ok();
    assert_eq!(minted()[0], 2001);

    // The row cannot be ended: Leaf continues, and so does the source, above Leaf's numbers.
    leaf.run("ALTER TABLE leaf_alloc ADD CONSTRAINT stays CHECK (max_id < 9223372036854775807)");
    let broken = import(&["--cut-over"]);
    assert!(broken.code != 0 && broken.err.contains("repeat the command"), "{broken:?}");
    leaf.run("UPDATE leaf_alloc SET max_id = 90001 WHERE biz_tag = 'orders'");
    let ours = minted();
    assert!(ours.iter().all(|id| *id > 90_000), "{ours:?}");
    let plan = import(&["--cut-over", "--dry-run"]);
    assert!(plan.code == 0 && plan.out.contains("cut over, above 90"), "{plan:?}");

    // A command killed after the end of the row leaves this state: neither side allocates.
    assert_ne!(import(&["--cut-over"]).code, 0);
    leaf.run("ALTER TABLE leaf_alloc DROP CONSTRAINT stays");
    leaf.run("UPDATE leaf_alloc SET max_id = 9223372036854775807 WHERE biz_tag = 'orders'");
    let still = import(&[]);
    assert!(still.code == 3 && still.out.contains("--cut-over again"), "{still:?}");
    assert!(import(&["--cut-over"]).ok().contains("finish the cut-over: continue from"));
    let after = minted();
    assert!(after[0] > *ours.last().unwrap(), "{after:?} after {ours:?}");
    assert!(import(&["--cut-over"]).ok().contains("nothing to do"));
}

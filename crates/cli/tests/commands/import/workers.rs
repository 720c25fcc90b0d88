//! Worker numbers of other systems are excluded here.

use std::collections::BTreeSet;
use std::process::Command;

use snowmint_testkit::programs;
use snowmint_testkit::servers::{Mysql, Zookeeper};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::common::{Ran, json, run};
use crate::import::ImportDir;
use crate::server::{Server, serve};

/// Table of the uid-generator's own schema.
const WORKER_NODE: &str = "CREATE TABLE WORKER_NODE (
    ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,
    TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL DEFAULT NOW(),
    CREATED TIMESTAMP NOT NULL DEFAULT NOW(), PRIMARY KEY(ID)) ENGINE = INNODB;";

/// Table of CosId's own schema.
const COSID_MACHINE: &str = "CREATE TABLE cosid_machine (
    name varchar(100) NOT NULL PRIMARY KEY, namespace varchar(100) NOT NULL,
    machine_id integer NOT NULL DEFAULT 0, last_timestamp bigint NOT NULL DEFAULT 0,
    instance_id varchar(100) NOT NULL DEFAULT '', distribute_time bigint NOT NULL DEFAULT 0,
    revert_time bigint NOT NULL DEFAULT 0);";

/// Requests a machine ID of a namespace as CosId's client does; returns the number, or the error
/// code.
fn machine(server: &Server, namespace: &str, instance: &str) -> Result<u64, String> {
    let url = format!(
        "http://{}/machines/{namespace}?instanceId={instance}&stable=false&machineBit=3\
         &safeGuardDuration=PT5M",
        server.http
    );
    let output = Command::new(programs::installed("curl"))
        .args(["-sS", "--max-time", "60", "-X", "POST", &url])
        .output();
    let response = json(std::str::from_utf8(&output.unwrap().stdout).unwrap());
    response["machineId"].as_u64().ok_or_else(|| response["code"].as_str().unwrap().to_owned())
}

/// Creates nodes with all their ancestors.
fn plant(zookeeper: &Zookeeper, paths: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = zookeeper.url();
        let client = Client::connect(url.strip_prefix("zookeeper://").unwrap()).await.unwrap();
        for path in paths {
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client.mkdir(path, &options).await.unwrap();
        }
    });
}

/// Registers this many machines as Leaf does, and removes the gone ones.
fn count_up(zookeeper: &Zookeeper, parent: &str, machines: usize, gone: &[usize]) {
    plant(zookeeper, &[parent]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = zookeeper.url();
        let client = Client::connect(url.strip_prefix("zookeeper://").unwrap()).await.unwrap();
        let options = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
        for number in 0..machines {
            let path = format!("{parent}/10.0.0.{number}:80-");
            let (_, sequence) = client.create(&path, b"", &options).await.unwrap();
            assert_eq!(sequence.to_string(), format!("{number:010}"));
        }
        for number in gone {
            let path = format!("{parent}/10.0.0.{number}:80-{number:010}");
            client.delete(&path, None).await.unwrap();
        }
    });
}

/// Returns the worker numbers with this action in a plan.
fn planned(ran: &Ran, action: &str) -> BTreeSet<u64> {
    let lines = ran.out.lines().map(json).filter(|item| item["action"] == action);
    lines.map(|item| item["worker"].as_u64().unwrap()).collect()
}

fn excluded(server: &Server) -> BTreeSet<u64> {
    let list = run(&["worker", "list", "--json", "--server", &server.http]).ok();
    let lines = list.lines().map(json).filter(|worker| worker["excluded"] == true);
    lines.map(|worker| worker["number"].as_u64().unwrap()).collect()
}

#[test]
fn zookeeper_worker_numbers_are_excluded_for_ever() {
    let (zookeeper, import_dir) = (Zookeeper::start(), ImportDir::new());
    let none = import_dir.import("leaf-snowflake", &zookeeper.url(), &[]);
    assert_eq!(none.code, 1, "{none:?}");
    plant(
        &zookeeper,
        &[
            "/snowflake/leaf/forever/10.0.0.1:8080-0000000001",
            "/snowflake/leaf/forever/10.0.0.2:8080-0000000003",
            "/snowflake/shop/servers/10.20.30.40:8888_2",
            "/snowflake/shop/servers/10.20.30.41:8888_5",
            "/snowflake/shop/instances/5",
            "/snowflake/shop/instances/7",
            "/snowflake/other/nothing",
        ],
    );
    let of_shop = format!("{}/snowflake/shop", zookeeper.url());
    let shop = import_dir.import("leaf-snowflake", &of_shop, &["--dry-run", "--json"]);
    assert_eq!(planned(&shop, "exclude"), [2, 5, 7].into());
    assert!(!import_dir.store().exists(), "a plan makes no store");

    let all = import_dir.import("leaf-snowflake", &zookeeper.url(), &["--json"]);
    assert_eq!(planned(&all, "exclude"), [0, 1, 2, 3, 5, 7].into(), "{all:?}");
    let again = import_dir.import("leaf-snowflake", &zookeeper.url(), &["--json"]);
    assert_eq!(planned(&again, "keep").len(), 6, "{again:?}");

    let server = Server::start(serve(import_dir.0.path(), &[]));
    assert_eq!(excluded(&server), [0, 1, 2, 3, 5, 7].into());
    let list = run(&["worker", "list", "--server", &server.http]).ok();
    let line = list.lines().find(|line| line.contains("10.20.30.41:8888")).unwrap();
    assert!(line.contains("excluded") && line.contains("never"), "{line}");
    let id = server.mint(&["-n", "1"]).ok();
    let layout = "time=41,worker=10,sequence=12";
    let decoded = run(&["decode", "--json", "--layout", layout, id.trim()]).ok();
    assert_eq!(json(decoded.trim())["worker"], 4);

    // A number in use here cannot belong to the other system alone.
    plant(&zookeeper, &["/snowflake/shop/servers/10.20.30.42:8888_4"]);
    let live = import_dir.import("leaf-snowflake", &zookeeper.url(), &["--json"]);
    assert_eq!((live.code, planned(&live, "refuse")), (3, [4].into()), "{live:?}");
    assert!(live.err.contains("nothing was changed"), "{}", live.err);
}

#[test]
fn invalid_zookeeper_tree_is_rejected_a_deleted_worker_excluded() {
    let (zookeeper, import_dir) = (Zookeeper::start(), ImportDir::new());
    plant(
        &zookeeper,
        &["/app/servers/10.0.0.1:80_1024", "/app/servers/absent", "/app/instances/3"],
    );
    let from = format!("{}/app", zookeeper.url());
    let refused = import_dir.import("leaf-snowflake", &from, &[]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.out.contains("workers 0 to 1023"), "{}", refused.out);
    assert!(refused.out.contains("absent does not end with a number"), "{}", refused.out);
    // Deleted nodes of Leaf's counter are excluded, too.
    plant(&zookeeper, &["/leaf/forever/10.0.0.1:80-0000000004"]);
    let from = format!("{}/leaf", zookeeper.url());
    let counted = import_dir.import("leaf-snowflake", &from, &["--dry-run", "--json"]);
    assert_eq!(planned(&counted, "exclude"), (0..=4).collect());
    // Even if the highest node or all nodes are deleted, ZooKeeper knows how far it has counted.
    for (app, gone) in [("/one", &[1, 5][..]), ("/all", &[0, 1, 2, 3, 4, 5])] {
        count_up(&zookeeper, &format!("{app}/forever"), 6, gone);
        let from = format!("{}{app}", zookeeper.url());
        let counted = import_dir.import("leaf-snowflake", &from, &["--dry-run", "--json"]);
        assert_eq!(planned(&counted, "exclude"), (0..=5).collect(), "{app}: {counted:?}");
    }
    assert!(!import_dir.store().exists());
}

#[test]
fn baidu_numbers_are_excluded_up_to_the_highest() {
    let mysql = Mysql::start(&[]);
    mysql.run(WORKER_NODE);
    mysql.run(
        "INSERT INTO WORKER_NODE (ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE) VALUES
         (3, '10.0.0.1', '1700-1', 2, NOW()), (5, '10.0.0.2', '1700-2', 2, NOW())",
    );
    let import_dir = ImportDir::new();
    let all = import_dir.import("uid-generator", &mysql.url(), &["--json"]);
    assert_eq!(planned(&all, "exclude"), (0..=5).collect(), "{all:?}");
    let trail = import_dir.trail();
    let deleted = "slots 0-2, 4 of pool workers-22 excluded who=uid ";
    assert!(trail.iter().any(|line| line.contains(deleted)), "{trail:?}");
    assert!(trail.iter().all(|line| line.contains("after=for ever (uid-generator: ")), "{trail:?}");
    // The table knows how far it has counted.
    for gone in ["ID = 5", "ID > 0"] {
        mysql.run(&format!("DELETE FROM WORKER_NODE WHERE {gone}"));
        let import_dir = ImportDir::new();
        let all = import_dir.import("uid-generator", &mysql.url(), &["--dry-run", "--json"]);
        assert_eq!(planned(&all, "exclude"), (0..=5).collect(), "without {gone}: {all:?}");
    }
    let wrong = import_dir.import("uid-generator", &mysql.url(), &["--stopped"]);
    assert_eq!(wrong.code, 2, "a margin is needed: {wrong:?}");

    let import_dir = ImportDir::new();
    let config = import_dir.0.path().join("snowmint.toml");
    let text = "[worker]\nreuse = \"never\"\n[sources.uids]\nlayout = \"baidu\"\n";
    std::fs::write(&config, text).unwrap();
    let with = ["--config", config.to_str().unwrap()];
    import_dir.import("uid-generator", &mysql.url(), &with).ok();
    let minted = run(&[&["mint", "uids", "--data-dir", import_dir.dir()][..], &with].concat()).ok();
    let decoded = run(&["decode", "--json", "--layout", "baidu", minted.trim()]).ok();
    assert_eq!(json(decoded.trim())["worker"], 6, "{decoded}");
}

/// Without this check, the numbers in the other database would be forgotten.
#[test]
fn a_database_without_the_table_of_workers_is_named() {
    let (one, two, import_dir) = (Mysql::start(&[]), Mysql::start(&[]), ImportDir::new());
    one.run(COSID_MACHINE);
    one.run(
        "INSERT INTO cosid_machine (name, namespace, machine_id, instance_id) VALUES
         ('app.3', 'app', 3, '10.0.0.1:80')",
    );
    for (first, second) in [(&one, &two), (&two, &one)] {
        let refused = import_dir.import("cosid", &first.url(), &["--from", &second.url()]);
        assert!(
            refused.code == 1 && refused.err.contains("no table of worker numbers"),
            "{refused:?}"
        );
    }
}

#[test]
fn numbers_of_ended_processes_return_after_a_margin() {
    let (mysql, import_dir) = (Mysql::start(&[]), ImportDir::new());
    mysql.run(COSID_MACHINE);
    mysql.run(
        "INSERT INTO cosid_machine (name, namespace, machine_id, instance_id) VALUES
         ('app.0', 'app', 0, '10.0.0.1:80'), ('app.1', 'app', 1, '10.0.0.2:80')",
    );
    let config = without_builtin(&import_dir);
    let stopped = ["--stopped", "--margin", "1h", "--json", "--config", &config];
    let first = import_dir.import("cosid", &mysql.url(), &stopped);
    assert_eq!(planned(&first, "exclude"), [0, 1].into(), "{first:?}");
    assert!(json(first.out.lines().next().unwrap())["until"].is_string(), "{first:?}");
    let ahead = run(&["worker", "accept-lead", "--data-dir", import_dir.dir()]);
    assert_eq!(ahead.out.lines().count(), 2, "their marks are times: {ahead:?}");
    let ahead =
        json(run(&["worker", "accept-lead", "--data-dir", import_dir.dir(), "--json"]).out.trim());
    let slots: Vec<_> = ahead["ahead"].as_array().unwrap().iter().map(|one| &one["slot"]).collect();
    assert_eq!(slots, [0, 1], "{ahead}");
    assert!(ahead["ahead"][0]["accepted"] == false, "{ahead}");
    // An exclusion for ever is stronger, and is not revoked.
    let forever = import_dir.import("cosid", &mysql.url(), &["--json"]);
    assert_eq!(planned(&forever, "exclude"), [0, 1].into(), "{forever:?}");
    let stays = import_dir.import("cosid", &mysql.url(), &stopped);
    assert_eq!(planned(&stays, "keep"), [0, 1].into(), "{stays:?}");
    let shown = run(&["worker", "accept-lead", "--data-dir", import_dir.dir()]);
    assert_eq!(shown.out, "", "the command tells no caller to wait for them");
}

/// Writes a configuration without the source `default`, which has an epoch in 2026.
fn without_builtin(import_dir: &ImportDir) -> String {
    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, "[sources]\nbuiltin = false\n").unwrap();
    config.to_str().unwrap().to_owned()
}

/// A time mark lies above a worker's IDs in its own epoch, but a source with a later epoch begins
/// below it.
#[test]
fn numbers_never_return_to_a_source_with_a_later_epoch() {
    let (mysql, import_dir) = (Mysql::start(&[]), ImportDir::new());
    mysql.run(WORKER_NODE);
    mysql.run(COSID_MACHINE);
    mysql.run(
        "INSERT INTO WORKER_NODE (ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE) VALUES
         (1, '10.0.0.1', '1700-1', 2, NOW());
         INSERT INTO cosid_machine (name, namespace, machine_id, instance_id) VALUES
         ('app.3', 'app', 3, '10.0.0.1:80')",
    );
    let config = without_builtin(&import_dir);
    let stopped = ["--stopped", "--margin", "1h"];
    let import = |origin: &str, more: &[&str]| {
        import_dir.import(origin, &mysql.url(), &[&stopped[..], more].concat())
    };
    let refused = |ran: Ran, reason: &str| {
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
        assert!(ran.err.contains(reason), "{reason}: {ran:?}");
        assert!(!import_dir.store().exists());
    };
    refused(import("uid-generator", &["--config", &config]), "leave out --stopped");
    refused(import("cosid", &[]), "source \"default\" has epoch 2026");
    let later = "[sources]\nbuiltin = false\n[sources.uids]\nlayout = \"baidu\"\n";
    std::fs::write(&config, later).unwrap();
    let own = ["--config", &config, "--layout", "baidu,epoch=2025-06-01T00:00:00Z"];
    refused(import("uid-generator", &own), "source \"uids\" has epoch 2026");
    let same = later.replace("baidu", "baidu,epoch=2025-06-01T00:00:00Z");
    std::fs::write(&config, same).unwrap();
    import("uid-generator", &own).ok();
}

#[test]
fn imported_machine_ids_are_never_leased_in_their_namespace() {
    let (mysql, import_dir) = (Mysql::start(&[]), ImportDir::new());
    mysql.run(COSID_MACHINE);
    // Released machine IDs are in the table, too, without an instance.
    mysql.run(
        "INSERT INTO cosid_machine (name, namespace, machine_id, instance_id) VALUES
         ('shop.0', 'shop', 0, '10.0.0.1:80'), ('shop.2', 'shop', 2, ''),
         ('other.1', 'other', 1, '10.0.0.2:80'), ('no name.3', 'no name', 3, '10.0.0.3:80')",
    );
    let layout = ["--layout", "time=41,worker=3,sequence=19"];
    let import = |more: &[&str]| {
        import_dir.import("cosid", &mysql.url(), &[&layout[..], &["--json"], more].concat())
    };
    let all = import(&[]);
    assert_eq!(all.code, 0, "{all:?}");
    let lines = all.out.lines().map(json);
    let planned: BTreeSet<_> = lines
        .map(|item| (item["pool"].as_str().unwrap().to_owned(), item["worker"].as_u64().unwrap()))
        .collect();
    let wanted = [
        ("lent-3-other", 1),
        ("lent-3-shop", 0),
        ("lent-3-shop", 2),
        ("workers-3", 0),
        ("workers-3", 1),
        ("workers-3", 2),
        ("workers-3", 3),
    ];
    assert_eq!(planned, wanted.map(|(pool, number)| (pool.to_owned(), number)).into());
    assert!(import(&[]).out.lines().all(|line| json(line)["action"] == "keep"));

    let config = import_dir.0.path().join("snowmint.toml");
    std::fs::write(&config, "[compat.cosid]\nenabled = true\n").unwrap();
    let with = ["--config", config.to_str().unwrap()];
    let server = Server::start(serve(import_dir.0.path(), &with));
    let machines = |namespace: &str, count: u64| -> Vec<_> {
        (0..count).map(|n| machine(&server, namespace, &format!("client-{n}"))).collect()
    };
    let free: Vec<_> = [1, 3, 4, 5, 6, 7].map(Ok).into();
    let full = Err("M-01".to_owned());
    assert_eq!(machines("shop", 7), [&free[..], std::slice::from_ref(&full)].concat());
    assert_eq!(machines("other", 3), [0, 2, 3].map(Ok));
    // A namespace without any machine ID has all numbers free.
    assert_eq!(machines("third", 2), [0, 1].map(Ok));

    // A number that a client holds from here cannot belong to the other system alone.
    mysql.run(
        "INSERT INTO cosid_machine (name, namespace, machine_id, instance_id) VALUES
         ('shop.4', 'shop', 4, '10.0.0.4:80')",
    );
    let late = import(&[]);
    assert_eq!(late.code, 3, "{late:?}");
    let refused: Vec<_> = late.out.lines().filter(|line| line.contains("refuse")).collect();
    assert!(refused.len() == 1 && refused[0].contains("leased to client-2 until"), "{late:?}");
    assert_eq!(import(&["--except-worker", "4"]).code, 0);
}

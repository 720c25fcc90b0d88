//! A store that was put back under three servers, and the way out as `docs/operating.md` has it: each server has a folder
//! of its own, and no command looks into it, as in containers.

use std::collections::HashSet;
use std::fs;
use std::process::Output;
use std::time::Instant;

use snowmint_testkit::servers;

use super::server::{Folder, PATIENCE, Resp, Server, curl, snowmint, until};

const CONFIG: &str = "
[sources.invoices]
kind = \"segment\"
step = { rule = \"fixed\", size = 50 }
";

/// Three servers on one store.
struct Shop {
    folder: Folder,
    url: String,
    seen: HashSet<(String, u64)>,
}

impl Shop {
    fn new(name: &str, url: &str) -> Self {
        let folder = Folder::new(&format!("recovery-{name}"));
        fs::write(folder.join("config.toml"), CONFIG).unwrap();
        Self { folder, url: url.into(), seen: HashSet::new() }
    }

    fn start(&self, number: usize) -> Server {
        let (config, data) = (self.config(), self.data(number));
        let owner = format!("shop-{number}");
        Server::start(
            &["--config", &config, "--store", &self.url, "--data-dir", &data, "--owner", &owner],
            &[],
        )
    }

    fn config(&self) -> String {
        self.folder.join("config.toml").to_str().unwrap().into()
    }

    fn data(&self, number: usize) -> String {
        self.folder.join(&format!("data-{number}")).to_str().unwrap().into()
    }

    /// A command of an operator, who has the configuration and a folder of nobody.
    fn operator(&self, command: &[&str]) -> Output {
        let (config, data) = (self.config(), self.folder.join("operator"));
        fs::create_dir_all(&data).unwrap();
        let place = ["--config", &config, "--store", &self.url, "--data-dir"];
        snowmint().args(command).args(place).arg(data).output().unwrap()
    }

    fn mint(&mut self, server: &Server, source: &str, count: usize) {
        let mut ids = Vec::new();
        let end = Instant::now() + PATIENCE;
        while ids.len() < count {
            let mut connection = Resp::connect(&server.resp).unwrap();
            connection.incr(source, (count - ids.len()).min(100), &mut ids).unwrap();
            assert!(Instant::now() < end, "{source}: {} of {count}: {}", ids.len(), server.said());
        }
        for id in ids {
            assert!(self.seen.insert((source.into(), id)), "{source}: {id} came twice");
        }
    }
}

type Servers = [Option<Server>; 3];

fn refuses(server: &Server) -> bool {
    let mut ids = Vec::new();
    Resp::connect(&server.resp).unwrap().incr("invoices", 1, &mut ids).unwrap();
    let status = curl(&["-o", "/dev/null", "-w", "%{http_code}", &server.url("/readyz")]);
    ids.is_empty() && status == "503"
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The server with this number, which runs.
fn at(servers: &Servers, number: usize) -> &Server {
    servers[number - 1].as_ref().unwrap()
}

/// Back up, hand out more, put back. `while_down` does something to the store's data; `stops` says whether the
/// servers are stopped before it is put back.
fn recovered(name: &str, url: &str, mut while_down: impl FnMut(&str, &Servers), stops: bool) {
    let mut shop = Shop::new(name, url);
    let mut servers: Servers = [1, 2, 3].map(|number| Some(shop.start(number)));
    for server in servers.iter().flatten() {
        server.ready();
        shop.mint(server, "invoices", 10);
    }
    while_down("back up", &servers);
    // The second alone hands out what the backup does not know, the third other numbers.
    until("the store is found again", || !refuses(at(&servers, 2)));
    for _ in 0..20 {
        shop.mint(at(&servers, 2), "invoices", 100);
    }
    shop.mint(at(&servers, 3), "numbers", 500);
    if stops {
        for server in servers.iter_mut().filter_map(Option::take) {
            assert_eq!(server.stop(), 0);
        }
    }
    while_down("put back", &servers);
    if stops {
        one_is_missed(&mut servers, &shop);
    }
    until("all refuse", || servers.iter().flatten().all(refuses));
    until("all have reported", || {
        shop.operator(&["worker", "recover", "--dry-run"]).status.success()
    });
    assert!(servers.iter().flatten().all(refuses), "a plan changes nothing");
    let done = shop.operator(&["worker", "recover"]);
    assert!(done.status.success(), "{}", text(&done));
    for server in servers.iter().flatten() {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
    let doctor = shop.operator(&["doctor"]);
    assert!(!text(&doctor).contains("in doubt"), "{}", text(&doctor));
    let again = shop.operator(&["worker", "recover"]);
    assert!(again.status.success() && text(&again).contains("not in doubt"), "{}", text(&again));
    // It lasts: the journals know the store as it is now.
    for server in servers.into_iter().flatten() {
        assert_eq!(server.stop(), 0);
    }
    let server = shop.start(2);
    shop.mint(&server, "invoices", 100);
}

/// The second has seen the most, and says so; the first has seen the least, and gives nothing all the same; the third is
/// missing at first, and is missed.
fn one_is_missed(servers: &mut Servers, shop: &Shop) {
    servers[1] = Some(shop.start(2));
    until("the witness refuses", || refuses(at(servers, 2)));
    servers[0] = Some(shop.start(1));
    until("the other refuses", || refuses(at(servers, 1)));
    let mut plan = None;
    until("two have reported", || {
        let said = text(plan.insert(shop.operator(&["worker", "recover", "--dry-run"])));
        ["of shop-1 on ", "of shop-2 on "]
            .iter()
            .all(|of| said.lines().any(|line| line.contains(of) && line.ends_with("reported")))
    });
    let plan = plan.unwrap();
    assert_eq!(plan.status.code(), Some(3), "{}", text(&plan));
    let missing = |line: &str| line.contains("of shop-3 on ") && line.ends_with("MISSING");
    assert!(text(&plan).lines().any(missing), "{}", text(&plan));
    let refused = shop.operator(&["worker", "recover"]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    servers[2] = Some(shop.start(3));
}

fn on_a_server(mut store: servers::Server, stops: bool) {
    let (name, url) = (store.name().to_owned(), store.url());
    let while_down = |what: &str, _: &Servers| {
        store.stop();
        match what {
            "back up" => store.back_up(),
            _ => store.restore(),
        }
        store.start();
    };
    recovered(&format!("{name}-{stops}"), &url, while_down, stops);
}

#[test]
fn three_servers_on_a_file_that_was_put_back_go_on_once_it_was_recovered() {
    let folder = Folder::new("recovery-file");
    let (file, copy) = (folder.join("ids.db"), folder.join("copy.db"));
    let url = format!("sqlite:{}", file.display());
    let while_down = |what: &str, servers: &Servers| {
        // So that the file and its log are of one moment.
        let running = || servers.iter().flatten();
        running().for_each(|server| server.signal("-STOP"));
        let wal = |file: &std::path::Path| file.with_extension("db-wal");
        let sides = [(file.clone(), copy.clone()), (wal(&file), wal(&copy))];
        for (here, there) in &sides {
            let (from, to) = if what == "back up" { (here, there) } else { (there, here) };
            let _ = fs::remove_file(to);
            if from.exists() {
                fs::copy(from, to).unwrap();
            }
        }
        if what != "back up" {
            let _ = fs::remove_file(file.with_extension("db-shm"));
        }
        running().for_each(|server| server.signal("-CONT"));
    };
    recovered("sqlite", &url, while_down, true);
}

macro_rules! on_servers {
    ($($name:ident $start:expr, $stops:literal;)*) => {
        $(
            #[test]
            #[cfg_attr(not(feature = "real-servers"), ignore = "needs databases: --features real-servers")]
            fn $name() {
                on_a_server($start.into(), $stops);
            }
        )*
    };
}

on_servers! {
    a_redis_that_was_put_back_is_recovered servers::Redis::start(&[]), true;
    a_postgres_that_was_put_back_is_recovered servers::Postgres::start(&[]), true;
    a_mariadb_that_was_put_back_is_recovered servers::Mysql::start(&[]), true;
    an_etcd_that_was_put_back_is_recovered servers::Etcd::start(), true;
    a_zookeeper_that_was_put_back_is_recovered servers::Zookeeper::start(), true;
    a_postgres_that_was_put_back_under_running_servers_is_recovered servers::Postgres::start(&[]), false;
}

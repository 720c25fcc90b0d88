//! A store that was restored under its one server, with the server's data directory lost. A program
//! that reaches the store through the server alone knows what is missing.

use std::collections::HashSet;
use std::fs;

use super::recovery::{Shop, refuses, text};
use super::recovery_from_here::copied;
use super::server::{Folder, Resp, Server, curl, snowmint, until};

/// Number of the program's data directory.
const PROGRAM: usize = 4;
const COUNTER: &str = "counters:alice";

/// A store with a server, and a program: a server whose store is the other server.
struct World {
    _store: Folder,
    shop: Shop,
    /// Numbers that were issued, with their sources.
    seen: HashSet<(&'static str, u64)>,
}

impl World {
    /// Restores the store to a state before most numbers, which the program has seen.
    fn after_loss(name: &str) -> Self {
        let store = Folder::new(&format!("programs-{name}"));
        let (file, copy) = (store.join("ids.db"), store.join("copy.db"));
        let shop = Shop::new(name, &format!("sqlite:{}", file.display()));
        let mut world = Self { _store: store, shop, seen: HashSet::new() };
        world.issue(60);
        copied(&file, &copy);
        world.issue(1_000);
        copied(&copy, &file);
        fs::remove_dir_all(world.shop.data(1)).unwrap();
        world
    }

    fn program(&self, server: &Server) -> Server {
        let (store, data) = (format!("snowmint://{}", server.http), self.shop.data(PROGRAM));
        Server::start(&["--store", &store, "--data-dir", &data, "--owner", "shop-4"], &[])
    }

    /// Has the program issue numbers, which ends then, as does its server.
    fn issue(&mut self, count: usize) {
        let server = self.shop.start(1);
        let program = self.program(&server);
        self.mint(&program, count);
        assert_eq!((program.stop(), server.stop()), (0, 0));
    }

    /// Checks that no number comes twice.
    fn mint(&mut self, server: &Server, count: usize) {
        for source in ["invoices", COUNTER] {
            let mut ids = Vec::new();
            until("all are minted", || {
                let mut connection = Resp::connect(&server.resp).unwrap();
                connection.incr(source, (count - ids.len()).min(100), &mut ids).unwrap();
                ids.len() == count
            });
            for id in ids {
                assert!(self.seen.insert((source, id)), "{source}: {id} came twice");
            }
        }
    }

    /// Recovers the store where no server runs, without the journal that is lost.
    fn fast_forward(&self, more: &[&str]) {
        let counted = self.seen.iter().filter(|(source, _)| *source == COUNTER);
        let highest = counted.map(|(_, id)| *id).max().unwrap_or(0).to_string();
        let counters = ["--counters-above", &highest];
        let command = [&["worker", "fast-forward"], more].concat();
        let plan = text(&self.shop.operator(&[&command[..], &["--dry-run"]].concat()));
        let missing = plan.lines().filter(|line| line.ends_with(": MISSING"));
        let ids = missing.filter_map(|line| line.split(' ').nth(1));
        let without = ids.flat_map(|id| ["--without", id]);
        let command: Vec<&str> = command.iter().copied().chain(without).chain(counters).collect();
        let done = self.shop.operator(&command);
        assert!(done.status.success(), "{}", text(&done));
    }
}

/// Checks that a server gives neither numbers of segments nor of counters.
fn gives_nothing(server: &Server) {
    for source in ["invoices", COUNTER] {
        let mut ids = Vec::new();
        Resp::connect(&server.resp).unwrap().incr(source, 100, &mut ids).unwrap();
        assert!(ids.is_empty(), "{source}: {ids:?}");
    }
    let response = curl(&[&server.url("/v1/ids/counters?key=alice")]);
    assert!(response.contains("store_rolled_back"), "{response}");
}

#[test]
fn program_that_alone_knows_a_restore_names_the_steps() {
    let mut world = World::after_loss("alone");
    let steps =
        ["recover it at its servers (snowmint worker recover)", "fast-forward --journal DIR"];
    let server = world.shop.start(1);
    let program = world.program(&server);
    until("the program refuses", || refuses(&program));
    program.not_ready(&["store rolled back: ", steps[0], steps[1]]);
    gives_nothing(&program);
    // A program puts no store in doubt: its servers serve all others.
    server.ready();
    let nothing = world.shop.recover(None, &[]);
    assert!(text(&nothing).contains("the store is not in doubt"), "{}", text(&nothing));
    assert_eq!(program.stop(), 0);
    let (store, data) = (format!("snowmint://{}", server.http), world.shop.data(PROGRAM));
    let doctor = snowmint().args(["doctor", "--store", &store, "--data-dir", &data]).output();
    let found = text(&doctor.unwrap());
    steps.iter().for_each(|step| assert!(found.contains(step), "{step}: {found}"));

    // The steps that it names.
    assert_eq!(server.stop(), 0);
    world.fast_forward(&["--journal", &data]);
    let server = world.shop.start(1);
    let program = world.program(&server);
    world.mint(&program, 500);
    world.mint(&server, 500);
    assert_eq!((program.stop(), server.stop()), (0, 0));
}

#[test]
fn program_left_out_of_a_recovery_names_what_the_store_lacks() {
    let mut world = World::after_loss("left-out");
    world.fast_forward(&[]);
    let server = world.shop.start(1);
    let program = world.program(&server);
    until("the program refuses", || refuses(&program));
    let command = "run at the store's servers snowmint worker recover ";
    program.not_ready(&["without which the store was recovered", command]);
    gives_nothing(&program);
    until("others are served", || curl(&[&server.url("/v1/ids/counters?key=bob")]).contains("ids"));
    let reasons = program.get("/readyz").1["reasons"].clone();
    let reasons: Vec<String> = serde_json::from_value(reasons).unwrap();
    let named = reasons.iter().find_map(|reason| reason.split_once(command)).unwrap().1;
    let options: Vec<&str> = named.split([' ', ';']).take(2).collect();
    let raised = world.shop.recover(Some(&server), &options);
    assert!(raised.status.success(), "{}", text(&raised));
    world.mint(&program, 500);
    assert_eq!((program.stop(), server.stop()), (0, 0));
}

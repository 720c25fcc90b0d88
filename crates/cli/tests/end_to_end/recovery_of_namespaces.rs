//! Namespaces that share a database and its history: the effect of one namespace's recovery on the
//! other.

use snowmint_testkit::servers::{Postgres, Server as Store};

use super::recovery::{Shop, refuses, text};
use super::server::{Server, until};

const NAMESPACES: [&str; 2] = ["north", "south"];

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn namespaces_of_a_restored_database_recover_one_by_one() {
    let mut store = Store::from(Postgres::start(&[]));
    let url = store.url();
    let mut shops = NAMESPACES.map(|name| Shop::of(name, &url, name));
    let start = |shop: &Shop| {
        let server = shop.start(1);
        server.ready();
        server
    };
    let servers = [start(&shops[0]), start(&shops[1])];
    mint(&mut shops, &servers);
    store.stop();
    store.back_up();
    store.start();
    mint(&mut shops, &servers);
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
    store.stop();
    store.restore();
    store.start();
    let [north, south] = [0, 1].map(|number| shops[number].start(1));
    until("both refuse", || [&north, &south].into_iter().all(refuses));
    // No server with a journal shows a newcomer what the other namespace lacks: the store does.
    assert_eq!(south.stop(), 0);
    recover(&mut shops[0]);
    assert!(names_other_in_doubt(&shops[0]));
    shops[0].mint(&north, "invoices", 1_000);
    let newcomer = shops[1].start(2);
    newcomer.not_ready(&["rolled back"]);
    assert!(refuses(&newcomer), "{}", newcomer.printed());
    let servers = [north, shops[1].start(1)];
    recover(&mut shops[1]);
    assert!(!names_other_in_doubt(&shops[0]));
    shops[1].mint(&newcomer, "invoices", 1_000);
    assert_eq!(newcomer.stop(), 0);
    mint(&mut shops, &servers);

    // One namespace is moved forward while the other is in use.
    let [north, south] = servers;
    assert_eq!(south.stop(), 0);
    let [first, second] = [1, 2].map(|number| shops[1].data(number));
    let journals = ["--journal", &first, "--journal", &second];
    let moved = shops[1].operator(&[&["worker", "fast-forward"][..], &journals].concat());
    assert!(moved.status.success(), "{}", text(&moved));
    // Its worker numbers wait for the clock.
    let servers = [north, shops[1].start(1)];
    mint(&mut shops, &servers);
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
}

/// It has no rows in which another namespace's server could leave a doubt, so its own server does.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs PostgreSQL: --features real-servers")]
fn namespace_newer_than_the_backup_is_recovered() {
    let mut store = Store::from(Postgres::start(&[]));
    let url = store.url();
    let [mut north, mut south] = NAMESPACES.map(|name| Shop::of(name, &url, name));
    let server = north.start(1);
    server.ready();
    north.mint(&server, "invoices", 1_000);
    store.stop();
    store.back_up();
    store.start();
    let servers = [server, south.start(1)];
    servers[1].ready();
    north.mint(&servers[0], "invoices", 1_000);
    south.mint(&servers[1], "invoices", 1_000);
    for server in servers {
        assert_eq!(server.stop(), 0);
    }
    store.stop();
    store.restore();
    store.start();
    let first = north.start(1);
    until("north refuses", || refuses(&first));
    recover(&mut north);
    north.mint(&first, "invoices", 1_000);

    let second = south.start(1);
    until("south refuses", || refuses(&second));
    let newcomer = south.start(2);
    until("a newcomer of south refuses", || refuses(&newcomer));
    // They share their history, so the loss that south has found concerns north as well.
    until("north refuses again", || refuses(&first));
    for shop in [&mut north, &mut south] {
        recover(shop);
    }
    north.mint(&first, "invoices", 1_000);
    for server in [&second, &newcomer] {
        south.mint(server, "invoices", 1_000);
    }
    for server in [first, second, newcomer] {
        assert_eq!(server.stop(), 0);
    }
}

fn recover(shop: &mut Shop) {
    until("its servers have reported", || shop.plan(None).status.success());
    let done = shop.recover(None, &[]);
    assert!(done.status.success(), "{}", text(&done));
}

fn mint(shops: &mut [Shop; 2], servers: &[Server; 2]) {
    for (shop, server) in shops.iter_mut().zip(servers) {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
}

/// Returns whether `doctor` of the first namespace names the second as in doubt.
fn names_other_in_doubt(shop: &Shop) -> bool {
    let doctor = text(&shop.operator(&["doctor"]));
    let names = format!(": {}; recover each", NAMESPACES[1]);
    doctor.contains("other namespaces of the database are in doubt") && doctor.contains(&names)
}

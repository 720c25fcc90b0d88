//! `worker recover --without` of a server whose machine is lost, and the same server once it comes
//! back: it compares what its journal knows with the state of the recovered store.

use std::process::Output;

use super::recovery::{Shop, refuses, text};
use super::recovery_from_here::copied;
use super::server::{Folder, Resp, Server, curl, until};

/// A restored store, whose second server is lost.
struct Loss {
    _store: Folder,
    shop: Shop,
    first: Server,
    /// ID of the second server's journal.
    journal: String,
    /// Number that the second server issued last.
    last: u64,
}

fn next(server: &Server) -> u64 {
    let mut ids = Vec::new();
    until("it mints", || {
        Resp::connect(&server.resp).unwrap().incr("invoices", 1, &mut ids).unwrap();
        !ids.is_empty()
    });
    ids[0]
}

/// Restores a store under two servers. The second has issued most of what the store lacks then, and
/// does not run.
fn lost(name: &str) -> Loss {
    let store = Folder::new(&format!("lost-{name}"));
    let (file, copy) = (store.join("ids.db"), store.join("copy.db"));
    let mut shop = Shop::new(name, &format!("sqlite:{}", file.display()));
    let servers = [1, 2].map(|number| shop.start(number));
    for server in &servers {
        server.ready();
        shop.mint(server, "invoices", 60);
    }
    servers.into_iter().for_each(|server| assert_eq!(server.stop(), 0));
    copied(&file, &copy);
    let [first, second] = [1, 2].map(|number| shop.start(number));
    for server in [&first, &second] {
        server.ready();
    }
    shop.mint(&first, "numbers", 10);
    shop.mint(&second, "numbers", 500);
    shop.mint(&second, "invoices", 1_000);
    let last = next(&second);
    second.kill();
    assert_eq!(first.stop(), 0);
    copied(&copy, &file);

    let first = shop.start(1);
    until("the first server refuses", || refuses(&first));
    let line = |printed: &str, owner: &str| {
        let of = format!(" of {owner} on ");
        printed.lines().find(|line| line.contains(&of)).unwrap_or_default().to_owned()
    };
    let mut plan = None;
    until("the first server has reported", || {
        let output = plan.insert(shop.plan(None));
        line(&text(output), "shop-1").ends_with(": reported")
    });
    let plan = plan.unwrap();
    assert_eq!(plan.status.code(), Some(3), "{}", text(&plan));
    let missing = line(&text(&plan), "shop-2");
    assert!(missing.ends_with(": MISSING"), "{missing}");
    let journal = missing.split(' ').nth(1).unwrap().to_owned();
    let refused = shop.recover(None, &[]);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    assert!(text(&refused).contains(&journal), "{}", text(&refused));
    Loss { _store: store, shop, first, journal, last }
}

/// Operator's word that no counter has counted.
const NONE: &str = "--counters-above=0";

/// Recovers the store. The first server may report once more between the plan and the move.
fn recover(shop: &Shop, through: Option<&Server>, more: &[&str]) {
    let mut done = None;
    until("no report comes in between", || {
        let output = done.insert(shop.recover(through, more));
        !text(output).contains("store changed since")
    });
    let done = done.unwrap();
    assert!(done.status.success(), "{}", text(&done));
    assert!(text(&done).contains(": left out"), "{}", text(&done));
    assert!(text(&done).contains("must not run: stop it"), "{}", text(&done));
}

#[test]
fn server_left_out_joins_a_store_that_lies_above_its_journal() {
    let Loss { _store, mut shop, first, journal, .. } = lost("without-above");
    let unknown = shop.recover(None, &["--without", "5f0c3a1b9d2e4f60718293a4b5c6d7e8"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown));
    assert!(text(&unknown).contains("check the ID"), "{}", text(&unknown));
    let higher = ["invoices=100000", "numbers=100000", "parcels=100000"];
    let higher = higher.iter().flat_map(|next| ["--segment", *next]);
    let more: Vec<&str> = ["--without", &journal, NONE].into_iter().chain(higher).collect();
    recover(&shop, None, &more);
    let second = shop.start(2);
    for server in [&first, &second] {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
    for server in [first, second] {
        assert_eq!(server.stop(), 0);
    }
}

/// The operator named no number of one source, so the other server repeats numbers of it.
#[test]
fn server_left_out_stays_unready_below_its_journal() {
    let Loss { _store, shop, first, journal, last } = lost("without-below");
    let higher = ["--segment", "numbers=100000", "--segment", "parcels=100000"];
    recover(&shop, Some(&first), &[&["--without", journal.as_str(), NONE][..], &higher].concat());
    let again = next(&first);
    assert!(again < last, "{again} was not issued before, {last} was");
    let second = shop.start(2);
    // The reasons are JSON, so their quotes are escaped.
    let named = |source: &str| format!("\\\"{source}\\\"");
    second.not_ready(&["store rolled back: next number of source ", &named("invoices"), " was "]);
    let reasons = second.get("/readyz").1["reasons"].to_string();
    for other in ["numbers", "parcels"] {
        assert!(!reasons.contains(&named(other)), "{reasons}");
    }
    assert!(refuses(&second), "{}", second.printed());
    let response = curl(&[&second.url("/v1/ids/invoices")]);
    assert!(response.contains("store_rolled_back"), "{response}");
    // It puts the store in doubt no more: the other server continues.
    assert!(next(&first) > again);
    // The operator runs the command that the reason names, and nothing else moves.
    let named = named_options(&second);
    let [option, value] = named.each_ref().map(String::as_str);
    let from: u64 = value.strip_prefix("invoices=").unwrap().parse().unwrap();
    assert!(option == "--segment" && from > last, "{named:?}");
    for through in [Some(&first), None] {
        only_raises(&shop.plan_more(through, &[option, value]), value);
    }
    only_raises(&shop.recover(None, &[option, value]), value);
    assert!(next(&second) >= from);
    only_raises(&shop.recover(Some(&first), &[option, "invoices=200000"]), "invoices=200000");
    first.says("store raised: numbers at least invoices=200000");
    second.says("an operator has moved the store forward (a recovery, or values that were raised");
    for server in [&first, &second] {
        until("it continues there", || next(server) >= 200_000);
    }
    for server in [first, second] {
        assert_eq!(server.stop(), 0);
    }
}

/// Returns the options of the command that a reason of an unready server names.
fn named_options(server: &Server) -> [String; 2] {
    let mut options = Vec::new();
    // While the server tries to join again, it keeps the reason.
    for _ in 0..200 {
        let reasons = server.get("/readyz").1["reasons"].to_string();
        assert!(reasons.contains("run snowmint worker recover "), "{reasons}");
    }
    until("a reason names a command", || {
        let reasons = server.get("/readyz").1["reasons"].clone();
        let reasons: Vec<String> = serde_json::from_value(reasons).unwrap_or_default();
        let named = reasons.iter().find_map(|it| it.split_once("run snowmint worker recover "));
        options =
            named.map_or_else(Vec::new, |(_, named)| named.split(' ').map(str::to_owned).collect());
        !options.is_empty()
    });
    options.try_into().unwrap_or_else(|other| panic!("the command has {other:?}"))
}

/// Checks the output of a command that raised, or would raise, the number of a source.
fn only_raises(output: &Output, value: &str) {
    let (printed, (name, number)) = (text(output), value.split_once('=').unwrap());
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("only the values that are named are raised"), "{printed}");
    assert!(printed.contains(&format!("next number of {name}: at least {number}")), "{printed}");
    assert_eq!(printed.matches("next number of").count(), 1, "{printed}");
    for other in ["worker marks", "can begin", "writes: ", "1970"] {
        assert!(!printed.contains(other), "{other}: {printed}");
    }
    let journals = printed.lines().filter(|line| line.starts_with("journal "));
    let states: Vec<&str> = journals.filter_map(|line| line.rsplit(": ").next()).collect();
    // A journal that was left out is listed once its server has joined again.
    let are_unasked = !states.is_empty() && states.iter().all(|state| *state == "not asked");
    assert!(are_unasked, "{printed}");
}

/// A process that the operator takes for lost runs on, and has noticed neither doubt nor recovery.
#[test]
fn server_left_out_while_frozen_ends_at_its_next_call() {
    let store = Folder::new("left-out-frozen");
    let (file, copy) = (store.join("ids.db"), store.join("copy.db"));
    let mut shop = Shop::new("left-out-frozen", &format!("sqlite:{}", file.display()));
    let [first, second] = [1, 2].map(|number| shop.start(number));
    for server in [&first, &second] {
        server.ready();
        shop.mint(server, "invoices", 60);
    }
    let while_frozen = |action: &dyn Fn()| {
        [&first, &second].iter().for_each(|server| server.signal("-STOP"));
        action();
        first.signal("-CONT");
    };
    while_frozen(&|| copied(&file, &copy));
    second.signal("-CONT");
    // The first server finds out by these numbers that the store lacks something.
    shop.mint(&first, "numbers", 10);
    shop.mint(&second, "invoices", 1_000);
    while_frozen(&|| copied(&copy, &file));
    until("the first server refuses", || refuses(&first));
    let mut journal = None;
    until("the second is missing", || {
        let printed = text(&shop.plan(Some(&first)));
        let is_missing = |line: &&str| line.contains(" of shop-2 on ") && line.ends_with("MISSING");
        journal = printed
            .lines()
            .find(is_missing)
            .and_then(|line| line.split(' ').nth(1))
            .map(str::to_owned);
        journal.is_some() && printed.contains(": reported")
    });
    recover(&shop, Some(&first), &["--without", &journal.unwrap(), NONE]);
    next(&first);
    second.signal("-CONT");
    until("the second refuses", || refuses(&second));
    second.not_ready(&["without which the store was recovered", "--segment invoices="]);
    for server in [first, second] {
        assert_eq!(server.stop(), 0);
    }
}

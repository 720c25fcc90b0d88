//! A backup that was taken while the store was in doubt, restored after that doubt was recovered:
//! its reports are older than what the journals know.

use super::recovery::{Shop, refuses, text};
use super::recovery_from_here::copied;
use super::server::{Folder, Server, until};

fn owners(plan: &str, state: &str) -> Vec<String> {
    let lines = plan.lines().filter(|line| line.starts_with("journal ") && line.ends_with(state));
    lines.map(|line| line.split(' ').nth(3).unwrap().to_owned()).collect()
}

/// Waits until a plan of a store in doubt names these journals as missing.
fn missing_are(shop: &Shop, through: Option<&Server>, expected: &[&str]) {
    until("the plan names the missing journals", || {
        let plan = text(&shop.plan(through));
        !plan.contains("not in doubt") && owners(&plan, "MISSING") == expected
    });
}

fn recover(shop: &Shop, through: Option<&Server>) {
    let mut done = None;
    until("no report comes between the plan and the move", || {
        let output = done.insert(shop.recover(through, &[]));
        !text(output).contains("store changed since")
    });
    let done = done.unwrap();
    assert!(done.status.success(), "{}", text(&done));
}

#[test]
fn reports_that_a_restore_brought_back_are_awaited_again() {
    let folder = Folder::new("recovery-again");
    let (file, copy) = (folder.join("ids.db"), folder.join("copy.db"));
    let doubted = folder.join("doubted.db");
    let mut shop = Shop::new("again", &format!("sqlite:{}", file.display()));
    let stop = |servers: Vec<Server>| {
        servers.into_iter().for_each(|server| assert_eq!(server.stop(), 0));
    };
    let start = |shop: &Shop| [1, 2].map(|number| shop.start(number));
    let servers = start(&shop);
    for server in &servers {
        server.ready();
        shop.mint(server, "invoices", 60);
    }
    stop(servers.into());
    copied(&file, &copy);
    let servers = start(&shop);
    for server in &servers {
        server.ready();
        shop.mint(server, "invoices", 500);
    }
    stop(servers.into());
    copied(&copy, &file);

    // Both report. The store is copied in this state, and recovered.
    let servers = start(&shop);
    until("all refuse", || servers.iter().all(refuses));
    missing_are(&shop, None, &[]);
    stop(servers.into());
    copied(&file, &doubted);
    let servers = start(&shop);
    missing_are(&shop, None, &[]);
    recover(&shop, None);
    for server in &servers {
        shop.mint(server, "invoices", 1_000);
        shop.mint(server, "numbers", 500);
    }
    stop(servers.into());

    // The copy has reports of both, and what they know is more.
    copied(&doubted, &file);
    let second = shop.start(2);
    until("the second refuses", || refuses(&second));
    for through in [None, Some(&second)] {
        missing_are(&shop, through, &["shop-1"]);
        let refused = shop.recover(through, &[]);
        assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
        assert!(text(&refused).contains("shop-1 on "), "{}", text(&refused));
    }
    let first = shop.start(1);
    missing_are(&shop, Some(&first), &[]);
    recover(&shop, Some(&first));
    for server in [&first, &second] {
        shop.mint(server, "invoices", 3_000);
        shop.mint(server, "numbers", 1_500);
    }
    stop(vec![first, second]);
}

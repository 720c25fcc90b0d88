//! Machine IDs of CosId's clients, over servers that start and stop.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Folder, Server, TIMEOUT, curl, until};

const CONFIG: &str = "[compat.cosid]\nenabled = true\n[clock]\nskew_max = \"1s\"\n\
    [counters]\nlease = \"5s\"\n";
/// Time for which a number is kept after a client's last request: twice `skew_max` and, since
/// SQLite has no clock, twice `counters.lease`.
const MARGIN: Duration = Duration::from_secs(12);

/// A client of CosId.
#[derive(Clone, Debug)]
struct Client {
    instance: String,
    guard: &'static str,
}

impl Client {
    fn new(name: impl std::fmt::Display, guard: &'static str) -> Self {
        Self { instance: format!("10.0.0.7:8080%7C{name}"), guard }
    }

    fn ask(&self, server: &Server, method: &str, more: &str) -> (String, Value) {
        let Self { instance, guard } = self;
        let path = format!(
            "/machines/shop?instanceId={instance}&stable=false&safeGuardDuration={guard}{more}"
        );
        let response = curl(&["-X", method, "-w", "\n%{http_code}", &server.url(&path)]);
        let (body, status) = response.rsplit_once('\n').unwrap();
        (status.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }

    /// Requests a machine ID; returns it, or the code of the error. Repeats the request while it
    /// fails because the machine stood still.
    fn distribute(&self, server: &Server, bits: u32) -> Result<u64, String> {
        let (mut status, mut body) = Default::default();
        until("it can be done", || {
            (status, body) = self.ask(server, "POST", &format!("&machineBit={bits}"));
            status != "500"
        });
        match status.as_str() {
            "200" => Ok(body["machineId"].as_u64().unwrap()),
            _ => Err(body["code"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// Renews the machine ID; returns the code of the error, if any.
    fn guard(&self, server: &Server) -> Option<String> {
        let (status, body) = self.ask(server, "PATCH", "");
        (status != "200").then(|| body["code"].as_str().unwrap_or_default().to_owned())
    }
}

#[test]
fn clients_keep_their_machine_ids_when_servers_are_killed() {
    let folder = Folder::new("machines");
    let (one, two) = (Server::sharing(&folder, 1, CONFIG), Server::sharing(&folder, 2, CONFIG));
    let clients: Vec<_> = (0..4).map(|name| Client::new(name, "PT5M")).collect();
    let mut numbers = Vec::new();
    for (at, client) in clients.iter().enumerate() {
        numbers.push(client.distribute(if at % 2 == 0 { &one } else { &two }, 2).unwrap());
    }
    assert_eq!(numbers, [0, 1, 2, 3]);
    let late = Client::new("late", "PT5M");
    assert_eq!(late.distribute(&one, 2), Err("M-01".to_owned()));
    one.kill();
    let one = Server::sharing(&folder, 1, CONFIG);
    for server in [&two, &one, &two] {
        for (client, number) in clients.iter().zip(&numbers) {
            assert_eq!(client.guard(server), None, "{client:?}");
            assert_eq!(client.distribute(server, 2).as_ref(), Ok(number), "{client:?}");
        }
        assert_eq!(late.distribute(server, 2), Err("M-01".to_owned()));
        assert_eq!(late.guard(server), Some("M-02".to_owned()));
    }
    assert_eq!(two.stop(), 0);
    // A stopped server releases its own numbers, but no external leases.
    assert_eq!(late.distribute(&one, 2), Err("M-01".to_owned()));
    assert_eq!(clients[1].guard(&one), None);
    let (_, workers) = one.get("/v1/workers");
    let external: Vec<_> = workers["workers"].as_array().unwrap().iter().collect();
    let external = external.iter().filter(|worker| worker["pool"] == "lent-2-shop");
    assert_eq!(external.clone().count(), 4);
    assert!(external.clone().any(|worker| worker["owner"] == "10.0.0.7:8080|3"), "{workers}");
}

#[test]
fn machine_id_is_reassigned_only_after_expiry_and_margin() {
    let folder = Folder::new("machines-silent");
    let (one, two) = (Server::sharing(&folder, 1, CONFIG), Server::sharing(&folder, 2, CONFIG));
    let (silent, loud) = (Client::new("silent", "PT3S"), Client::new("loud", "PT3S"));
    let begun = Instant::now();
    assert_eq!(silent.distribute(&one, 1), Ok(0));
    assert_eq!(loud.distribute(&two, 1), Ok(1));
    let next = Client::new("next", "PT5M");
    loop {
        assert_eq!(loud.guard(&one), None);
        match next.distribute(&two, 1) {
            Ok(number) => {
                assert_eq!(number, 0, "the one that fell silent");
                break;
            }
            Err(code) => assert_eq!(code, "M-01"),
        }
        assert!(begun.elapsed() < TIMEOUT, "never");
        thread::sleep(Duration::from_millis(200));
    }
    assert!(begun.elapsed() >= Duration::from_secs(3) + MARGIN, "{:?}", begun.elapsed());
    assert_eq!(silent.guard(&one), Some("M-03".to_owned()), "this server knows that it had one");
    assert_eq!(silent.guard(&two), Some("M-02".to_owned()));
    assert_eq!(silent.distribute(&one, 1), Err("M-01".to_owned()));
    assert_eq!((loud.guard(&two), next.guard(&one)), (None, None));
}

#[test]
fn concurrent_clients_get_all_machine_ids() {
    let folder = Folder::new("machines-many");
    let (one, two) = (Server::sharing(&folder, 1, CONFIG), Server::sharing(&folder, 2, CONFIG));
    let numbers: Vec<u64> = thread::scope(|scope| {
        let asking: Vec<_> = (0..8)
            .map(|thread| {
                let server = if thread % 2 == 0 { &one } else { &two };
                scope.spawn(move || {
                    let client = |name| Client::new(format!("{thread}-{name}"), "PT5M");
                    let ask = |name| client(name).distribute(server, 5).unwrap();
                    (0..4).map(ask).collect::<Vec<_>>()
                })
            })
            .collect();
        asking.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(numbers.len(), 32);
    assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), (0..32).collect());
    assert_eq!(Client::new("one-more", "PT5M").distribute(&one, 5), Err("M-01".to_owned()));
}

#[test]
fn machine_ids_of_a_namespace_are_limited() {
    let folder = Folder::new("machines-most");
    let config = "[compat.cosid]\nenabled = true\nmachines_max = 2\n";
    let one = Server::sharing(&folder, 1, config);
    let clients: Vec<_> = (0..3).map(|name| Client::new(name, "PT5M")).collect();
    assert_eq!(clients[0].distribute(&one, 10), Ok(0));
    assert_eq!(clients[1].distribute(&one, 20), Ok(0));
    let (status, body) = clients[2].ask(&one, "POST", "&machineBit=31");
    assert_eq!((status.as_str(), &body["code"]), ("400", &"M-01".into()), "{body}");
    assert!(body["msg"].as_str().unwrap().contains("compat.cosid.machines_max"), "{body}");
    assert_eq!((clients[0].distribute(&one, 10), clients[1].guard(&one)), (Ok(0), None));
}

/// A client with a number mints with it, so the trail records it like a claim of an embedded
/// client.
#[test]
fn external_leases_leave_lines_in_the_audit_log() {
    let folder = Folder::new("machines-log");
    let config = "[compat.cosid]\nenabled = true\nmachines_max = 1\n";
    let server = Server::sharing(&folder, 1, config);
    let has_line = |parts: &[&str]| {
        until(&format!("{parts:?} in the trail"), || {
            let printed = server.printed();
            let mut trail = printed.lines().filter(|line| line.contains("audit"));
            trail.any(|line| parts.iter().all(|part| line.contains(part)))
        });
    };
    let (first, second) = (Client::new("first", "PT5M"), Client::new("second", "PT5M"));
    assert_eq!(first.distribute(&server, 3), Ok(0));
    let number =
        |name: &str, what: &str| format!("number of \"10.0.0.7:8080|{name}\" in \"shop\" {what}");
    let by = "who=anyone at 127.0.0.1:";
    has_line(&[number("first", "lent").as_str(), by, "after=number 0 for 300000 ms"]);
    assert_eq!(first.guard(&server), None);
    has_line(&[number("first", "kept").as_str(), by, "after=Held for 300000 ms"]);
    assert_eq!(second.distribute(&server, 3), Err("M-01".to_owned()));
    has_line(&[number("second", "not lent").as_str(), by, "why=", "compat.cosid.machines_max"]);
    assert_eq!(first.ask(&server, "DELETE", "").0, "200");
    has_line(&[number("first", "taken back").as_str(), by]);
    assert_eq!(server.stop(), 0);
}

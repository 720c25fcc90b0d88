//! Programs with a token for joining only, against shared state: real servers on a store without a
//! clock.

use snowmint_client::{ClientDeps, Credentials, RemoteStore, Settings};
use snowmint_coord::{
    ClaimRequest, Extend, Incarnation, Lease, Mark, Member, Pool, Preference, Presence, Reuse,
    Store, random,
};
use snowmint_core::{Clock as _, SystemClock, UnixMillis};

use super::{bearer, entry, put, token};
use crate::server::{Folder, Server, client};

const HOUR_MS: u64 = 3_600_000;

/// A malicious program.
pub(super) struct Guest {
    pub(super) store: RemoteStore,
    pub(super) member: Incarnation,
}

impl Guest {
    pub(super) async fn at(server: &Server, token: &str) -> Self {
        let shown =
            ClientDeps { credentials: Credentials::new().token(token), ..ClientDeps::default() };
        let url = format!("snowmint://{}", server.http);
        let store = RemoteStore::open_with(&url, "default", Settings::default(), shown).await;
        Self { store: store.unwrap(), member: random::incarnation().unwrap() }
    }

    /// Joins or renews, with a clock that is an hour ahead.
    pub(super) async fn join(&self, renewals: u64, ttl_ms: u64) -> snowmint_coord::Result<()> {
        let time = now().saturating_add(HOUR_MS);
        let member = Member {
            incarnation: self.member,
            owner: "guest".into(),
            host: "host".into(),
            process: 1,
            address: String::new(),
        };
        let presence = Presence { sample: time, renewals, ttl_ms };
        self.store.join(&member, presence, time).await
    }

    pub(super) async fn claim(&self, pool: &str, slots: u64) -> snowmint_coord::Result<Vec<Lease>> {
        let pool = Pool { name: pool.into(), slots, group: 1, reuse: Reuse::Recycle };
        let request = ClaimRequest {
            pool,
            member: self.member,
            owner: "guest".into(),
            count: 64,
            preference: Preference::Any,
            supersedes: None,
            mark_at_most: Mark::MAX,
            request: random::request()?,
        };
        self.store.claim(&request, now()).await
    }

    async fn extend(&self, lease: &Lease, to: Mark) -> snowmint_coord::Result<Mark> {
        let Lease { pool, slot, term, holder, mark: from, .. } = lease.clone();
        let request = random::request()?;
        let item = Extend { pool, slot, term, holder, from, to, request, ahead_max_ms: None };
        self.store.extend(&[item], now()).await?.remove(0).map(|extended| extended.mark)
    }
}

pub(super) fn now() -> UnixMillis {
    SystemClock.unix_ms()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: snowmint_coord::Result<T>, part: &str) {
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains(part), "{part}: {message}");
}

/// Returns the number of times that a server has listed the members.
fn looks(server: &Server, token: &str) -> u64 {
    let metrics = client("curl", &["-sS", "-H", &bearer(token), &server.url("/metrics")]);
    let count = "snowmint_store_call_seconds_count{verb=\"members\"}";
    let line = metrics.lines().find_map(|line| line.strip_prefix(count));
    line.unwrap_or_else(|| panic!("{metrics}")).trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_client_takes_its_share_and_harms_no_server() {
    let folder = Folder::new("programs");
    let (made, watcher) = (token(), token());
    let tokens = entry("guest", &[&made.hash], &["join tmp-x"])
        + &entry("watcher", &[&watcher.hash], &["metrics *"]);
    let tokens = put(&folder, "tokens.toml", &tokens);
    let config = format!("[store]\noffered = true\n[tokens]\nfile = {tokens:?}\n");
    let first = Server::sharing(&folder, 1, &config);
    let guest = Guest::at(&first, &made.token).await;
    refused(guest.join(0, 41 * 86_400_000).await, "counters.lease");
    guest.join(0, 10_000).await.unwrap();
    refused(guest.claim("workers-17", 1 << 17).await, "workers-17");
    let leases = guest.claim("workers-10", 1_024).await.unwrap();
    assert_eq!(leases.len(), 16);
    refused(guest.claim("workers-10", 1_024).await, "limits.workers_max");
    for lease in &leases {
        refused(guest.extend(lease, Mark::new(1 << 62)).await, "worker.window");
        guest.extend(lease, now().saturating_add(60_000).into()).await.unwrap();
    }
    guest.store.leave(guest.member, now()).await.unwrap();

    // A second server still gets a worker number.
    let second = Server::sharing(&folder, 2, &config);
    let mut guests = Vec::new();
    for _ in 0..3 {
        let guest = Guest::at(&first, &made.token).await;
        guest.join(0, 10_000).await.unwrap();
        guests.push(guest);
    }
    // The guests renew often enough to stay members, for several polls of both servers.
    let count = || [&first, &second].map(|server| looks(server, &watcher.token));
    let (before, mut renewals) = (count(), 0);
    loop {
        renewals += 1;
        for guest in &guests {
            guest.join(renewals, 10_000).await.unwrap();
        }
        for server in [&first, &second] {
            server.ready();
        }
        if count().iter().zip(before).all(|(now, before)| *now >= before + 6) {
            break;
        }
    }
    for server in [&first, &second] {
        assert!(!server.printed().contains("clock disagrees"), "{}", server.printed());
    }
    // The store has the server's time in place of theirs. Tests of `coord` show that their time
    // would be ignored.
    guests[0].join(renewals + 1, 10_000).await.unwrap();
    let members = guests[0].store.members(now()).await.unwrap();
    let soon = now().saturating_add(HOUR_MS / 2);
    let is_right = |time: UnixMillis| time < soon;
    assert!(!members.is_empty());
    for info in members {
        let times = [info.presence.sample, info.renewed_at, info.joined_at];
        assert!(times.into_iter().all(is_right), "{info:?}");
    }
    for server in [first, second] {
        assert_eq!(server.stop(), 0);
    }
}

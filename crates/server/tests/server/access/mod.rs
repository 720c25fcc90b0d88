//! Tests of rights over every protocol: each call is tried with no token, a wrong one, one without
//! the right and one with it.

mod anonymous;
mod compat;
mod details;
pub(crate) mod grpc;
mod guesses;
mod own;

use std::sync::Arc;

use snowmint_coord::{BootTimer, ManualTimer, Timer as _};
use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use snowmint_server::{Access, Limits, Secret, Settings, TokenHash, TokenSettings, Tokens};
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::DefineSourceRequest;
use tonic::Code;
use tonic_types::StatusExt as _;

pub(super) use self::grpc::named;
use crate::common::{Server, node, request, server_for, settings, timer};
use crate::grpc::{reason, wish};

pub(crate) const MINTER: &str = "minter-0123456789abcdef0123456789";
const READER: &str = "reader-0123456789abcdef0123456789";
pub(crate) const ADMIN: &str = "admin-0123456789abcdef0123456789";
const SLOW: &str = "slow-0123456789abcdef0123456789";
const DEFINER: &str = "definer-0123456789abcdef0123456789";
const JOINER: &str = "joiner-0123456789abcdef0123456789abcdef";
const SHARER: &str = "sharer-0123456789abcdef0123456789";
const SCRAPER: &str = "scraper-0123456789abcdef0123456789";
const BARE: &str = "bare-0123456789abcdef0123456789";
const KEYED: &str = "keyed-0123456789abcdef0123456789";
const PEER: &str = "peer-0123456789abcdef0123456789abcdef";

fn token(secret: &str, grants: &[&str], rates: &[&str]) -> TokenSettings {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    TokenSettings {
        hashes: vec![TokenHash::of(secret.as_bytes()).to_string()],
        grants: texts(grants),
        rates: texts(rates),
        ..TokenSettings::default()
    }
}

fn tokens() -> Tokens {
    let tokens = [
        ("minter", token(MINTER, &["mint default", "mint,reserve num*"], &[])),
        ("reader", token(READER, &["decode *"], &[])),
        ("joiner", token(JOINER, &["join default", "reserve num*"], &[])),
        ("admin", token(ADMIN, &["mint,reserve,join,decode,admin,metrics *"], &[])),
        ("scraper", token(SCRAPER, &["metrics *"], &[])),
        ("bare", token(BARE, &[], &[])),
        ("keyed", token(KEYED, &["admin key:1", "admin store:b"], &[])),
        ("slow", token(SLOW, &["mint *"], &["2/h default", "10/s burst=10 *"])),
        ("sharer", token(SHARER, &["mint,admin mine-*", "admin ours"], &[])),
        ("definer", token(DEFINER, &["mint,admin *"], &["5/h *"])),
    ];
    let tokens = tokens.map(|(name, token)| (name.to_owned(), token)).into();
    Tokens { tokens, peers: vec![Secret::new(PEER)], open_metrics: false }
}

fn access(timer: &ManualTimer) -> Access {
    Access::new("test", &tokens(), Arc::new(timer.clone())).unwrap()
}

pub(super) async fn guarded() -> (Server, Access) {
    guarded_with(|_| {}).await
}

pub(crate) async fn guarded_with(change: impl FnOnce(&mut Settings)) -> (Server, Access) {
    let timer = timer();
    let access = access(&timer);
    let mut settings = settings();
    change(&mut settings);
    (server_for(node().await, settings, (Some(access.clone()), timer)).await, access)
}

impl Server {
    async fn status_as(&self, token: &str, method: &str, path: &str, body: &str) -> u16 {
        let headers = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let response = self.send(method, path, &headers, body).await;
        if response.status == 401 {
            assert_eq!(response.header("www-authenticate"), Some("bearer"));
        }
        if response.status >= 400 {
            response.code();
            assert!(token.is_empty() || !response.body.contains(token), "{response:?}");
        }
        response.status
    }
}

#[tokio::test]
async fn http_requires_a_token_and_its_rights() {
    let (server, _) = guarded().await;
    let define = r#"{"name":"orders","kind":"segment"}"#;
    // Path, and the status without a token, with a wrong one, a minter's, a reader's, an
    // administrator's.
    for (method, path, body, wanted) in [
        ("GET", "/livez", "", [200; 5]),
        ("GET", "/readyz", "", [200; 5]),
        ("GET", "/", "", [200; 5]),
        ("GET", "/console/main.js", "", [200; 5]),
        ("GET", "/v1/layouts", "", [200; 5]),
        ("GET", "/v1/server", "", [401, 401, 200, 200, 200]),
        ("GET", "/nowhere", "", [404; 5]),
        ("GET", "/metrics", "", [401, 401, 403, 403, 200]),
        ("GET", "/v1/ids/default", "", [401, 401, 200, 403, 200]),
        ("GET", "/v1/ids/default?count=3", "", [401, 401, 200, 403, 200]),
        ("POST", "/v1/ids/numbers", "", [401, 401, 200, 403, 200]),
        ("POST", "/v1/ids/counters", r#"{"key":"k"}"#, [401, 401, 403, 403, 200]),
        // A caller without the right does not learn which sources exist.
        ("GET", "/v1/ids/absent", "", [401, 401, 403, 403, 404]),
        ("GET", "/v1/counters/counters/k", "", [401, 401, 403, 403, 200]),
        ("PUT", "/v1/counters/counters/k", r#"{"bound":"70"}"#, [401, 401, 403, 403, 200]),
        ("POST", "/v1/segments/numbers", r#"{"length":5}"#, [401, 401, 200, 403, 200]),
        ("GET", "/v1/decode/1?source=numbers", "", [401, 401, 403, 200, 200]),
        ("GET", "/v1/decode/1?layout=twitter", "", [401, 401, 403, 200, 200]),
        ("GET", "/v1/decode/1", "", [401, 401, 403, 200, 200]),
        ("GET", "/v1/sources", "", [401, 401, 200, 200, 200]),
        ("GET", "/v1/sources/counters", "", [401, 401, 403, 200, 200]),
        ("POST", "/v1/sources", define, [401, 401, 403, 403, 200]),
        ("PATCH", "/v1/sources/orders", r#"{"enabled":true}"#, [401, 401, 403, 403, 200]),
        (
            "POST",
            "/v1/sources/orders/restripe",
            r#"{"offset":1,"increment":2}"#,
            [401, 401, 403, 403, 200],
        ),
        ("DELETE", "/v1/sources/orders", "", [401, 401, 403, 403, 204]),
        ("GET", "/v1/workers", "", [401, 401, 403, 403, 200]),
        ("GET", "/v1/servers", "", [401, 401, 403, 403, 200]),
        ("GET", "/v1/history", "", [401, 401, 403, 403, 200]),
        ("GET", "/v1/recovery", "", [401, 401, 403, 403, 200]),
        ("POST", "/v1/recovery", "{}", [401, 401, 403, 403, 200]),
        ("POST", "/v1/peers/catalog", "", [401, 401, 403, 403, 403]),
    ] {
        for (token, status) in ["", "wrong", MINTER, READER, ADMIN].into_iter().zip(wanted) {
            let actual = server.status_as(token, method, path, body).await;
            assert_eq!(actual, status, "{method} {path} with {token:?}");
        }
    }
    assert_eq!(server.status_as(PEER, "POST", "/v1/peers/catalog", "").await, 204);
    let about = server.send("GET", "/v1/server", &bearer(MINTER), "").await;
    let token = serde_json::json!(
        { "name": "minter", "grants": ["mint default", "mint,reserve num*"], "rates": [] }
    );
    assert_eq!(about.json()["token"], token);
    let hash = TokenHash::of(MINTER.as_bytes()).to_string();
    assert!(!about.body.contains(&hash["sha256:".len()..]), "{about:?}");
    let of_minter = server.send("GET", "/v1/sources", &bearer(MINTER), "").await.json();
    let names: Vec<_> =
        of_minter["sources"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["default", "numbers"], "only what he has a right over");
}

#[tokio::test]
async fn token_for_metrics_sees_nothing_else() {
    let (server, access) = guarded().await;
    for (path, status) in [
        ("/metrics", 200),
        ("/v1/server", 200),
        ("/v1/sources/default", 403),
        ("/v1/workers", 403),
        ("/v1/ids/default", 403),
    ] {
        assert_eq!(server.status_as(SCRAPER, "GET", path, "").await, status, "{path}");
    }
    let sources = server.send("GET", "/v1/sources", &bearer(SCRAPER), "").await;
    assert_eq!(sources.json()["sources"], serde_json::json!([]));
    let one = [("scraper".to_owned(), token(SCRAPER, &["metrics num*"], &[]))].into();
    access.replace(&Tokens { tokens: one, ..Tokens::default() }).unwrap();
    assert_eq!(server.status_as(SCRAPER, "GET", "/metrics", "").await, 403, "it is of all sources");
    access.replace(&Tokens { open_metrics: true, ..Tokens::default() }).unwrap();
    assert_eq!(server.status_as("", "GET", "/metrics", "").await, 200);
}

/// Returns the minter's token alone, with this end.
fn until(expires: &str) -> Tokens {
    let expires = Some(expires.to_owned());
    let token = TokenSettings { expires, ..token(MINTER, &["mint *"], &[]) };
    Tokens { tokens: [("minter".to_owned(), token)].into(), ..Tokens::default() }
}

#[tokio::test]
async fn token_ends_when_it_expires() {
    let (server, access) = guarded().await;
    let mut resp = server.resp().await;
    access.replace(&until("2999-01-01T00:00:00Z")).unwrap();
    assert_eq!(server.status_as(MINTER, "GET", "/v1/ids/default", "").await, 200);
    assert_eq!(resp.ask(&["AUTH", "minter", MINTER]).await, "+OK");
    assert!(resp.ask(&["INCR", "numbers"]).await.starts_with(':'));
    access.replace(&until("2026-01-01T00:00:00+01:00")).unwrap();
    assert_eq!(server.status_as(MINTER, "GET", "/v1/ids/default", "").await, 401);
    let refused = resp.ask(&["INCR", "numbers"]).await;
    assert!(refused.starts_with("-NOAUTH"), "{refused}");
    assert!(resp.ask(&["AUTH", "minter", MINTER]).await.starts_with("-WRONGPASS"));
    for wrong in ["soon", "2027-01-01", "1900-01-01T00:00:00Z", ""] {
        let error = access.replace(&until(wrong)).unwrap_err();
        assert!(error.contains("minter") && error.contains("expires"), "{wrong}: {error}");
    }
    assert_eq!(access.expiring().len(), 1);
}

/// Metrics have no secret, only names and times.
#[tokio::test]
async fn metrics_show_when_tokens_expire() {
    let (server, access) = guarded().await;
    let lines = async || {
        let page = server.send("GET", "/metrics", &bearer(SCRAPER), "").await.body;
        let of_tokens = |line: &&str| line.starts_with("snowmint_token_");
        page.lines().filter(of_tokens).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(lines().await.is_empty(), "no token expires");
    for (expires, seconds) in [
        ("2999-01-01T00:00:00Z", "32472144000.0"),
        ("2026-01-01T01:00:00.25+01:00", "1767225600.25"),
    ] {
        let mut all = tokens();
        all.tokens.extend(until(expires).tokens);
        access.replace(&all).unwrap();
        let expected =
            format!("snowmint_token_expiry_timestamp_seconds{{token=\"minter\"}} {seconds}");
        assert_eq!(lines().await, [expected], "{expires}");
    }
}

/// Only the time passes: the tokens stay the same.
#[tokio::test]
async fn token_on_an_open_connection_ends_by_itself() {
    let (server, access) = guarded().await;
    access.replace(&until("2999-01-01T00:00:00Z")).unwrap();
    // A connection caches the source that it used last, so each uses one.
    let targets = ["numbers", "counters:k"];
    let mut clients = [server.resp().await, server.resp().await];
    for client in &mut clients {
        assert_eq!(client.ask(&["AUTH", "minter", MINTER]).await, "+OK");
    }
    // A slow machine gets a later end, so that the sources are cached before it.
    let mut ahead_ms = 1_000;
    let expires = loop {
        let expires = SystemClock.unix_ms().saturating_add(ahead_ms);
        access.replace(&until(&Rfc3339(expires).to_string())).unwrap();
        let mut are_minted = true;
        for (client, target) in clients.iter_mut().zip(targets) {
            are_minted &= client.ask(&["INCR", target]).await.starts_with(':');
        }
        if are_minted {
            break expires;
        }
        ahead_ms *= 2;
    };
    while SystemClock.unix_ms() < expires {
        BootTimer.sleep_ms(10).await;
    }
    for (client, target) in clients.iter_mut().zip(targets) {
        for command in [&["INCR", target][..], &["INFO"]] {
            let refused = client.ask(command).await;
            assert!(refused.starts_with("-NOAUTH"), "{command:?}: {refused}");
        }
    }
    assert_eq!(server.status_as(MINTER, "GET", "/v1/ids/numbers", "").await, 401);
}

pub(crate) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// A request that exceeds a limit takes nothing, and costs nothing of the rate.
#[tokio::test]
async fn request_over_a_limit_costs_nothing_of_a_rate() {
    let (server, _) = guarded_with(|settings| {
        settings.limits.batch_max = 1;
        settings.limits.incrby_max = 1;
    })
    .await;
    for _ in 0..3 {
        assert_eq!(server.status_as(SLOW, "GET", "/v1/ids/default?count=2", "").await, 413);
    }
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", SLOW]).await, "+OK");
    for source in ["default", "default:key"] {
        let refused = client.ask(&["INCRBY", source, "2"]).await;
        assert!(refused.starts_with("-ERR count 2 exceeds limits."), "{refused}");
    }
    for status in [200, 200, 429] {
        assert_eq!(server.status_as(SLOW, "GET", "/v1/ids/default", "").await, status);
    }
}

/// The right over the last source gives none over the default counter source.
#[tokio::test]
async fn right_over_one_source_excludes_the_default_counter() {
    let default = |settings: &mut Settings| {
        settings.resp.default_counter_source = "counters".into();
    };
    let (server, _) = guarded_with(default).await;
    // A per-request source.
    let each = r#"{"name":"num-each","kind":"segment","step":{"rule":"fixed","size":1}}"#;
    assert_eq!(server.status_as(ADMIN, "POST", "/v1/sources", each).await, 200);
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    for source in ["default", "num-each"] {
        assert!(client.ask(&["MINT", source]).await.starts_with(':'));
        let refused = client.ask(&["INCR", source]).await;
        assert!(refused.starts_with("-NOPERM"), "{source}: {refused}");
    }
}

/// As in Redis, and before the owner of a key is named.
#[tokio::test]
async fn right_is_checked_while_a_command_is_queued() {
    let (server, _) = guarded().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    let first = client.ask(&["INCR", "numbers"]).await;
    for wrong in [
        &["INCR", "counters:a"][..],
        &["INCRBY", "counters:a", "2"],
        &["MINT", "absent", "2"],
        &["GET", "counters:a"],
        &["HINCRBY", "counters", "a", "1"],
        &["HGET", "counters", "a"],
        &["DECODE", "1", "default"],
    ] {
        assert_eq!(client.ask(&["MULTI"]).await, "+OK");
        let refused = client.ask(wrong).await;
        assert!(refused.starts_with("-NOPERM token minter has no right"), "{wrong:?}: {refused}");
        assert_eq!(client.ask(&["INCR", "numbers"]).await, "+QUEUED");
        assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "), "{wrong:?}");
    }
    assert_eq!((first.as_str(), client.ask(&["INCR", "numbers"]).await.as_str()), (":1", ":2"));
    // A right over the source that is not the right to mint.
    assert_eq!(client.ask(&["AUTH", READER]).await, "+OK");
    assert_eq!(client.ask(&["MULTI"]).await, "+OK");
    assert_eq!(client.ask(&["DECODE", "1", "default"]).await, "+QUEUED");
    let refused = client.ask(&["INCR", "default"]).await;
    assert!(refused.starts_with("-NOPERM token reader has no right"), "{refused}");
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
}

#[tokio::test]
async fn only_administrators_exceed_the_limits() {
    let (server, _) = guarded_with(|settings| {
        settings.limits.batch_max = 10;
        settings.limits.segment_max = 10;
        settings.limits.incrby_max = 10;
    })
    .await;
    for (token, status) in [(MINTER, 413), (ADMIN, 200), (PEER, 200)] {
        let batch = server.status_as(token, "GET", "/v1/ids/numbers?count=11", "").await;
        let segment =
            server.status_as(token, "POST", "/v1/segments/numbers", r#"{"length":11}"#).await;
        assert_eq!((batch, segment), (status, status), "{token}");
    }
    let mut client = server.resp().await;
    for (token, begin) in [(MINTER, "-ERR count 11 exceeds"), (ADMIN, ":")] {
        assert_eq!(client.ask(&["AUTH", token]).await, "+OK");
        let line = client.ask(&["INCRBY", "numbers", "11"]).await;
        assert!(line.starts_with(begin), "{line}");
    }
}

#[tokio::test]
async fn a_rate_is_kept_over_every_protocol() {
    let (server, _) = guarded().await;
    assert_eq!(server.status_as(SLOW, "GET", "/v1/ids/default", "").await, 200);
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", SLOW]).await, "+OK");
    assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
    let over = client.ask(&["INCR", "default"]).await;
    assert!(over.starts_with("-TRYAGAIN token slow exceeds its rate"), "{over}");
    let over = server.send("GET", "/v1/ids/default", &bearer(SLOW), "").await;
    assert_eq!((over.status, over.code().as_str()), (429, "rate_limited"));
    assert_eq!(over.header("retry-after"), Some("1800"), "half an hour for each");
    // Another source, and another token, have rates of their own.
    assert_eq!(server.status_as(SLOW, "GET", "/v1/ids/numbers?count=10", "").await, 200);
    assert_eq!(server.status_as(SLOW, "GET", "/v1/ids/numbers?count=11", "").await, 413);
    assert_eq!(server.status_as(MINTER, "GET", "/v1/ids/default", "").await, 200);

    let mut grpc = server.grpc().await;
    let status = grpc.mint(named(wish("default", None), SLOW)).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::ResourceExhausted, ErrorCode::RateLimited));
    let delay = status.get_details_retry_info().and_then(|info| info.retry_delay).unwrap();
    assert_eq!(delay.as_secs(), 1_800, "{delay:?}");
}

/// Rates apply to existing sources. A source that does not exist yet, or is disabled, cannot be
/// minted from, and a caller with the right may define it: a bounded number of times in all.
#[tokio::test]
async fn rate_limited_caller_defines_and_enables_new_sources() {
    let (server, _) = guarded().await;
    let define = r#"{"name":"orders","kind":"segment","enabled":false}"#;
    assert_eq!(server.status_as(DEFINER, "POST", "/v1/sources", define).await, 200);
    let (at, on) = ("/v1/sources/orders", r#"{"enabled":true}"#);
    assert_eq!(server.status_as(DEFINER, "PATCH", at, on).await, 200);
    assert_eq!(server.status_as(DEFINER, "GET", "/v1/ids/orders", "").await, 200);
    // An existing source counts: of five an hour, the change and the ID took two.
    let mut changes = Vec::new();
    for _ in 0..5 {
        changes.push(server.status_as(DEFINER, "PATCH", at, on).await);
    }
    assert_eq!(changes, [200, 200, 200, 429, 429]);
    // A caller without the right gets the usual error.
    assert_eq!(server.status_as(SLOW, "POST", "/v1/sources", define).await, 403);
    assert_eq!(server.status_as(DEFINER, "DELETE", "/v1/sources/absent", "").await, 404);
    // Two of five definitions of missing sources were these; the count is the same over every
    // protocol.
    let define = |number: u32| format!(r#"{{"name":"more-{number}","kind":"segment"}}"#);
    for number in 0..3 {
        assert_eq!(server.status_as(DEFINER, "POST", "/v1/sources", &define(number)).await, 200);
    }
    assert_eq!(server.status_as(DEFINER, "POST", "/v1/sources", &define(3)).await, 429);
    let mut grpc = server.grpc().await;
    let wish = DefineSourceRequest { name: "more-4".into(), ..DefineSourceRequest::default() };
    let status = grpc.define_source(named(wish, DEFINER)).await.unwrap_err();
    assert_eq!((status.code(), reason(&status)), (Code::ResourceExhausted, ErrorCode::RateLimited));
    assert!(status.message().contains("definitions"), "{status:?}");
}

/// Definitions take room that is never free again, or that all share: each name, and the memory of
/// queues.
#[tokio::test]
async fn definitions_of_a_token_use_a_share_of_the_catalog() {
    let (server, _) = guarded_with(|settings| {
        settings.limits.sources_max = 12;
        settings.limits.prefill_ids_max = 4 * 16_384;
    })
    .await;
    let define = async |token: &str, name: &str, keys: &str| {
        let body = format!(r#"{{"name":"{name}"{keys}}}"#);
        let bearer = bearer(token);
        let response = server.send("POST", "/v1/sources", &bearer, &body).await;
        (response.status, response.body)
    };
    let full = |response: (u16, String), key: &str| {
        assert!(response.0 == 413 && response.1.contains(key), "{key}: {response:?}");
    };
    let kind = r#","kind":"segment""#;
    // Three are built in, and count for no share.
    for name in ["mine-1", "ours", "mine-2"] {
        assert_eq!(define(SHARER, name, kind).await.0, 200, "{name}");
    }
    full(define(SHARER, "mine-3", kind).await, "a quarter of limits.sources_max");
    assert_eq!(define(SHARER, "mine-1", kind).await.0, 200, "it is there");
    // The name of a deleted source stays.
    assert_eq!(server.status_as(SHARER, "DELETE", "/v1/sources/mine-1", "").await, 204);
    full(define(SHARER, "mine-3", kind).await, "limits.sources_max");
    assert_eq!(define(SHARER, "mine-1", kind).await.0, 200);
    for number in 7..=12 {
        assert_eq!(define(ADMIN, &format!("more-{number}"), kind).await.0, 200, "{number}");
    }
    full(define(ADMIN, "more-13", kind).await, "limits.sources_max (12)");
    let limits = server.handle.service().limits();
    server.handle.service().set_limits(Limits { sources_max: 40, ..(*limits).clone() });

    // 4,096 IDs of a tick, doubled.
    let queue = |boost: u32| format!(r#","prefill":{{"enabled":true,"boost":{boost}}}"#);
    full(define(SHARER, "mine-q", &queue(3)).await, "a quarter of limits.prefill_ids_max");
    assert_eq!(define(SHARER, "mine-q", &queue(1)).await.0, 200);
    assert_eq!(define(SHARER, "mine-r", &queue(1)).await.0, 200);
    full(define(SHARER, "mine-s", &queue(0)).await, "limits.prefill_ids_max");
    let larger = r#"{"prefill":{"boost":2}}"#;
    let patch =
        async |token: &str| server.status_as(token, "PATCH", "/v1/sources/mine-q", larger).await;
    assert_eq!(patch(SHARER).await, 413);
    assert_eq!(patch(ADMIN).await, 200, "who may define all has all of it");
    full(define(ADMIN, "all", &queue(4)).await, "limits.prefill_ids_max");
    assert_eq!(define(ADMIN, "all", &queue(3)).await.0, 200);
    assert_eq!(server.status_as(ADMIN, "GET", "/v1/ids/all", "").await, 200);
}

#[tokio::test]
async fn pipeline_under_a_rate_gets_every_reply_and_counts_each() {
    let (server, _) = guarded().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", SLOW]).await, "+OK");
    // Ten a second of this source, and ten at most at once.
    client.send(request(&["INCR", "numbers"]).repeat(200)).await;
    let mut numbers = Vec::new();
    for place in 0..200 {
        let line = client.line().await;
        match line.strip_prefix(':') {
            Some(number) if place < 10 => numbers.push(number.parse::<u64>().unwrap()),
            _ => assert!(line.starts_with("-TRYAGAIN token slow exceeds its rate"), "{line}"),
        }
    }
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    // Failed requests took no number.
    assert_eq!(server.send("GET", "/v1/ids/numbers", &bearer(ADMIN), "").await.ids(), [11]);
    // Together they take no more than one by one.
    server.timer.advance_ms(300);
    let together =
        [request(&["MULTI"]), request(&["INCR", "numbers"]).repeat(200), request(&["EXEC"])];
    client.send(together.concat()).await;
    client.expect(&format!("+OK\r\n{}*200\r\n", "+QUEUED\r\n".repeat(200))).await;
    for number in 12..212_u64 {
        let line = client.line().await;
        if number < 15 {
            assert_eq!(line, format!(":{number}"));
        } else {
            assert!(line.starts_with("-TRYAGAIN token slow exceeds its rate"), "{line}");
        }
    }
    // The connection stays open, and another source works, which has a rate of its own.
    assert_eq!(client.ask(&["PING"]).await, "+PONG");
    assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
}

#[tokio::test]
async fn resp_requires_a_name_and_a_token() {
    let (server, _) = guarded().await;
    let mut client = server.resp().await;
    for command in
        [&["PING"][..], &["INCR", "default"], &["CLIENT", "LIST"], &["INFO"], &["NOSUCH", ADMIN]]
    {
        assert_eq!(client.ask(command).await, "-NOAUTH Authentication required.", "{command:?}");
    }
    // Each is counted, also an unknown command: so attempts are visible.
    let page = server.send("GET", "/metrics", &bearer(ADMIN), "").await.body;
    let refused = "snowmint_request_errors_total{protocol=\"resp\",code=\"unauthenticated\"} 5\n";
    assert!(page.contains(refused), "{page}");
    assert!(client.ask(&["HELLO", "3"]).await.starts_with("-NOAUTH"));
    for wrong in [
        &["AUTH", "wrong"][..],
        &["AUTH", "reader", MINTER],
        &["AUTH", "absent", MINTER],
        &["AUTH", PEER],
        &["AUTH", "minter", ""],
    ] {
        assert!(client.ask(wrong).await.starts_with("-WRONGPASS"), "{wrong:?}");
    }
    assert!(client.ask(&["INCR", "default"]).await.starts_with("-NOAUTH"));
    for right in [&["AUTH", MINTER][..], &["AUTH", "default", MINTER], &["AUTH", "minter", MINTER]]
    {
        assert_eq!(client.ask(right).await, "+OK", "{right:?}");
    }
    for _ in 0..3 {
        assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
    }
    for forbidden in [
        &["INCR", "counters:k"][..],
        &["GET", "counters:k"],
        &["DECODE", "1", "numbers"],
        &["CLIENT", "LIST"],
    ] {
        assert!(client.ask(forbidden).await.starts_with("-NOPERM"), "{forbidden:?}");
    }
    // The source cached for the one caller is not the other's.
    assert_eq!(client.ask(&["AUTH", READER]).await, "+OK");
    assert!(client.ask(&["INCR", "default"]).await.starts_with("-NOPERM"));
    // A wrong token changes nothing, as in Redis.
    assert!(client.ask(&["AUTH", "wrong"]).await.starts_with("-WRONGPASS"));
    assert_eq!(client.ask(&["PING"]).await, "+PONG");
    assert_eq!(client.ask(&["RESET"]).await, "+RESET");
    assert!(client.ask(&["PING"]).await.starts_with("-NOAUTH"));

    let mut hello = server.resp().await;
    assert!(hello.ask(&["HELLO", "3", "AUTH", "minter", "wrong"]).await.starts_with("-WRONGPASS"));
    assert_eq!(hello.ask(&["HELLO", "3", "AUTH", "minter", MINTER]).await, "%7");
}

#[tokio::test]
async fn a_connection_follows_its_token() {
    let (server, access) = guarded().await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    for _ in 0..3 {
        assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
    }
    // Rotated: both are valid for a while.
    let mut rotated = tokens();
    let minter = rotated.tokens.get_mut("minter").unwrap();
    minter.hashes.push(TokenHash::of(b"the next one").to_string());
    access.replace(&rotated).unwrap();
    assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
    // It has fewer rights.
    rotated.tokens.get_mut("minter").unwrap().grants = vec!["decode *".to_owned()];
    access.replace(&rotated).unwrap();
    assert!(client.ask(&["INCR", "default"]).await.starts_with("-NOPERM"));
    assert!(client.ask(&["INCR", "default"]).await.starts_with("-NOPERM"));
    // It is removed.
    rotated.tokens.get_mut("minter").unwrap().hashes.remove(0);
    access.replace(&rotated).unwrap();
    assert!(client.ask(&["INCR", "default"]).await.starts_with("-NOAUTH"));
    assert_eq!(client.ask(&["AUTH", "minter", "the next one"]).await, "+OK");
}

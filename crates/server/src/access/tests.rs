//! Tests of access control, over whole tables.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use snowmint_coord::ManualTimer;
use snowmint_wire::error::Code;

use super::*;
use crate::error::Error;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Returns a connection from this address.
fn from(address: IpAddr) -> Arc<TrackedConnection> {
    Arc::new(TrackedConnection::new(1, SocketAddr::new(address, 51_334), 0))
}

fn token(secrets: &[&str], grants: &[&str]) -> TokenSettings {
    TokenSettings {
        hashes: secrets.iter().map(|secret| TokenHash::of(secret.as_bytes()).to_string()).collect(),
        grants: grants.iter().map(|&grant| grant.to_owned()).collect(),
        ..TokenSettings::default()
    }
}

fn tokens(all: &[(&str, TokenSettings)]) -> Tokens {
    let tokens = all.iter().map(|(name, token)| ((*name).to_owned(), token.clone())).collect();
    Tokens { tokens, ..Tokens::default() }
}

fn access(tokens: &Tokens) -> Access {
    Access::new("prod", tokens, Arc::new(ManualTimer::new(0))).unwrap()
}

fn code(outcome: Result<(), Error>) -> Option<Code> {
    outcome.err().map(|error| error.code())
}

#[test]
fn token_permits_only_its_grants() {
    let access = access(&tokens(&[
        (
            "orders",
            token(&["o"], &["mint,decode orders-*", "reserve prod/numbers", "admin test/*"]),
        ),
        ("root", token(&["r"], &["mint,reserve,decode,admin *"])),
        ("nothing", token(&["n"], &[])),
    ]));
    let orders = access.caller(b"o", &from(HERE));
    assert_eq!(orders.name(), Some("orders"));
    assert_eq!(code(orders.may(Right::Mint, "orders-1")), None);
    assert_eq!(code(orders.may(Right::Reserve, "numbers")), None);
    for (right, source) in
        [(Right::Mint, "numbers"), (Right::Reserve, "orders-1"), (Right::Admin, "orders-1")]
    {
        assert_eq!(code(orders.may(right, source)), Some(Code::Forbidden), "{right} {source}");
    }
    assert_eq!(code(orders.may_see("numbers")), None);
    assert_eq!(code(orders.may_see("other")), Some(Code::Forbidden));
    assert_eq!(code(orders.may_somewhere(Right::Decode)), None);
    assert_eq!(code(orders.may_somewhere(Right::Admin)), Some(Code::Forbidden));
    assert!(!orders.may_beyond_limits("orders-1"));

    let root = access.caller(b"r", &from(HERE));
    assert_eq!(code(root.may_over_all(Right::Admin)), None);
    assert!(root.may_beyond_limits("anything"));
    let nothing = access.caller(b"n", &from(HERE));
    assert!(nothing.is_known());
    assert_eq!(code(nothing.may(Right::Mint, "orders-1")), Some(Code::Forbidden));
    for anonymous in [
        access.caller(b"x", &from(HERE)),
        access.caller(b"", &from(HERE)),
        Caller::anonymous(AnonymousReason::NothingShown),
    ] {
        assert_eq!(code(anonymous.may(Right::Mint, "orders-1")), Some(Code::Unauthenticated));
        assert_eq!(code(anonymous.must_be_known()), Some(Code::Unauthenticated));
        assert_eq!(code(anonymous.must_be_a_server()), Some(Code::Unauthenticated));
        assert!(!anonymous.is_known() && !anonymous.may_beyond_limits("orders-1"));
    }
}

#[test]
fn limits_apply_to_all_without_tokens() {
    let unrestricted = Caller::unrestricted();
    assert!(
        unrestricted.is_unrestricted()
            && unrestricted.is_known()
            && !unrestricted.may_beyond_limits("orders")
    );
    assert_eq!(code(unrestricted.may_over_all(Right::Admin)), None);
    assert_eq!(code(unrestricted.spend("orders", u64::MAX)), None);
}

#[test]
fn token_rotation_does_not_disturb_callers() {
    let grants = &["mint *"][..];
    let access = access(&tokens(&[("a", token(&["old"], grants))]));
    let (old, generation) = (access.caller(b"old", &from(HERE)), access.generation());
    assert_eq!(
        code(access.caller(b"new", &from(HERE)).may(Right::Mint, "x")),
        Some(Code::Unauthenticated)
    );

    let changes = access.replace(&tokens(&[("a", token(&["old", "new"], grants))])).unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_ne!(access.generation(), generation);
    let new = access.caller(b"new", &from(HERE));
    assert_eq!(code(old.may(Right::Mint, "x")), None);
    assert_eq!(code(new.may(Right::Mint, "x")), None);

    access.replace(&tokens(&[("a", token(&["new"], grants))])).unwrap();
    assert_eq!(code(old.may(Right::Mint, "x")), Some(Code::Unauthenticated));
    assert!(!old.is_known());
    assert_eq!(code(new.may(Right::Mint, "x")), None);

    // Removed rights are lost for connected callers, too.
    access.replace(&tokens(&[("a", token(&["new"], &["decode *"]))])).unwrap();
    assert_eq!(code(new.may(Right::Mint, "x")), Some(Code::Forbidden));
    access.replace(&tokens(&[])).unwrap();
    assert_eq!(code(new.may(Right::Decode, "x")), Some(Code::Unauthenticated));
}

#[test]
fn token_changes_are_logged_without_secrets() {
    let secret = "hunter2-hunter2-hunter2";
    let access = access(&tokens(&[]));
    let both = tokens(&[("a", token(&[secret], &["mint *"])), ("b", token(&["b"], &[]))]);
    let changes = access.replace(&both).unwrap();
    assert!(changes[0].starts_with("token a added") && changes[1].starts_with("token b added"));
    assert_eq!(access.replace(&both).unwrap(), Vec::<String>::new());
    let changes = access.replace(&tokens(&[("a", token(&[secret], &["decode *"]))])).unwrap();
    assert!(changes[0].contains("mint") && changes[0].contains("decode"), "{changes:?}");
    assert!(changes[1].starts_with("token b removed"), "{changes:?}");
    let hash = TokenHash::of(secret.as_bytes()).to_string();
    assert!(!format!("{changes:?}{access:?}").contains(&hash[..20]));
}

#[test]
fn a_table_that_is_not_possible_changes_nothing() {
    let access = access(&tokens(&[("a", token(&["a"], &["mint *"]))]));
    let mut no_hash = token(&["b"], &[]);
    no_hash.hashes = vec!["hunter2".into()];
    let mut no_rate = token(&["b"], &[]);
    no_rate.rates = vec!["fast".into()];
    for wrong in [
        tokens(&[("b", token(&[], &[]))]),
        tokens(&[("no name", token(&["b"], &[]))]),
        tokens(&[("b", token(&["b"], &["steal *"]))]),
        tokens(&[("b", token(&["b"], &[])), ("c", token(&["b"], &[]))]),
        tokens(&[("b", no_hash)]),
        tokens(&[("b", no_rate)]),
        Tokens { peers: vec![Secret::new("short")], ..Tokens::default() },
    ] {
        let error = access.replace(&wrong).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        assert_eq!(code(access.caller(b"a", &from(HERE)).may(Right::Mint, "x")), None);
    }
}

#[test]
fn servers_know_each_other() {
    let (old, new) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    let peers = vec![Secret::new(new), Secret::new(old)];
    let access = access(&Tokens { peers, ..Tokens::default() });
    for secret in [old, new] {
        let peer = access.caller(secret.as_bytes(), &from(HERE));
        assert_eq!(code(peer.must_be_a_server()), None);
        assert!(peer.may_beyond_limits("x"));
    }
    assert_eq!(access.shown_to_peers(), Some(Secret::new(new)));
}

#[test]
fn a_bearer_is_read_from_its_header() {
    let access = access(&tokens(&[("a", token(&["secret"], &["mint *"]))]));
    let known = |value: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        access.caller_of(&headers, &CertificateNames::default(), &from(HERE)).is_known()
    };
    assert!(known("Bearer secret") && known("bearer secret") && known("BEARER   secret"));
    for value in
        ["", "secret", "Bearer", "Bearer ", "Basic secret", "Bearer secret2", "Bearersecret"]
    {
        assert!(!known(value), "{value}");
    }
    assert!(
        !access.caller_of(&HeaderMap::new(), &CertificateNames::default(), &from(HERE)).is_known()
    );
}

/// Returns the names in a certificate for these hosts, besides "rcgen self signed cert".
fn names(hosts: &[&str]) -> CertificateNames {
    let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
    let params = rcgen::CertificateParams::new(hosts).unwrap();
    let signed = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
    CertificateNames::of(signed.der())
}

fn certified(certificates: &[&str], grants: &[&str]) -> TokenSettings {
    let certificates = certificates.iter().map(|&name| name.to_owned()).collect();
    TokenSettings { certificates, ..token(&[], grants) }
}

const COMMON: &str = "CN=rcgen self signed cert";

#[test]
fn a_certificate_stands_for_a_token_by_a_whole_name() {
    let access = access(&tokens(&[
        ("orders", certified(&["DNS=Orders.internal", "DNS=bills.internal"], &["mint *"])),
        ("common", certified(&[COMMON], &[])),
    ]));
    for (hosts, whose) in [
        (&["orders.INTERNAL"][..], "orders"),
        (&["elsewhere", "bills.internal"], "orders"),
        (&["xorders.internal"], "common"),
        (&["orders.internal.x"], "common"),
        (&["*.internal"], "common"),
        (&[], "common"),
    ] {
        assert_eq!(
            access.caller_named(&names(hosts), &from(HERE)).name(),
            Some(whose),
            "{hosts:?}"
        );
    }
    let orders = access.caller_named(&names(&["bills.internal"]), &from(HERE));
    assert_eq!(code(orders.may(Right::Mint, "x")), None);
    let who = "token orders (by certificate \"DNS=bills.internal\") at 127.0.0.1:51334";
    assert_eq!(orders.to_string(), who);
    assert_eq!(orders.admitted().unwrap().unwrap().name(), "orders");
    assert_eq!(orders.certificate().map(AsRef::as_ref), Some("DNS=bills.internal"));
    assert!(!orders.has_shown());
    let anonymous = access.caller_named(&CertificateNames::default(), &from(HERE));
    assert_eq!(code(anonymous.must_be_known()), Some(Code::Unauthenticated));
    assert_eq!(code(anonymous.must_be_a_server()), Some(Code::Unauthenticated));
    // A certificate with any name does not make a peer.
    assert_eq!(code(orders.must_be_a_server()), Some(Code::Forbidden));
}

#[test]
fn certificate_name_may_change_its_token_at_any_time() {
    let access = access(&tokens(&[("a", certified(&[COMMON], &["mint *"]))]));
    let names = names(&[]);
    let open = access.caller_named(&names, &from(HERE));
    assert_eq!(code(open.may(Right::Mint, "x")), None);
    let changes = access.replace(&tokens(&[("b", certified(&[COMMON], &["decode *"]))])).unwrap();
    assert!(changes.iter().all(|line| line.contains(COMMON)), "{changes:?}");
    assert_eq!(code(open.may(Right::Mint, "x")), Some(Code::Forbidden));
    assert_eq!(code(open.may(Right::Decode, "x")), None);
    access.replace(&tokens(&[("b", token(&["b"], &["decode *"]))])).unwrap();
    assert_eq!(code(open.may(Right::Decode, "x")), Some(Code::Unauthenticated));
    let error = access.caller_named(&names, &from(HERE)).must_be_known().unwrap_err();
    assert!(error.message().contains(COMMON), "{}", error.message());
}

#[test]
fn no_name_of_a_certificate_is_of_two_tokens() {
    let access = access(&tokens(&[]));
    for wrong in [
        tokens(&[("a", certified(&["DNS=x"], &[])), ("b", certified(&["DNS=X"], &[]))]),
        tokens(&[("a", certified(&["CN=x", "CN=x"], &[]))]),
        tokens(&[("a", certified(&["DNS=*.x"], &[]))]),
        tokens(&[("a", certified(&["x"], &[]))]),
    ] {
        assert!(access.replace(&wrong).unwrap_err().contains("token "));
    }
}

#[test]
fn certificate_counts_after_a_token_and_not_cross_site() {
    let access =
        access(&tokens(&[("a", token(&["secret"], &[])), ("b", certified(&[COMMON], &[]))]));
    let names = names(&[]);
    let caller = |headers: &[(&'static str, &'static str)]| {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, HeaderValue::from_static(value));
        }
        access.caller_of(&all, &names, &from(HERE)).name().map(str::to_owned)
    };
    let bearer = |value| ("authorization", value);
    assert_eq!(caller(&[]).as_deref(), Some("b"));
    assert_eq!(caller(&[bearer("Bearer secret")]).as_deref(), Some("a"));
    for wrong in ["Bearer wrong", "Basic x", ""] {
        assert_eq!(caller(&[bearer(wrong)]), None, "{wrong}");
    }
    for own in ["same-origin", "none"] {
        assert_eq!(caller(&[(SITE, own)]).as_deref(), Some("b"), "{own}");
    }
    for other in ["cross-site", "same-site", "", "else"] {
        assert_eq!(caller(&[(SITE, other)]), None, "{other}");
        let shown = caller(&[(SITE, other), bearer("Bearer secret")]);
        assert_eq!(shown.as_deref(), Some("a"), "a page that has the token may show it");
    }
}

/// A guesser at an address does not lock out callers with a token there.
#[test]
fn guesses_are_slowed_and_right_tokens_in_use_are_not() {
    let timer = ManualTimer::new(1_000);
    let all = tokens(&[("a", token(&["a"], &["mint *"])), ("b", token(&["b"], &["mint *"]))]);
    let access = Access::new("prod", &all, Arc::new(timer.clone())).unwrap();
    let there = IpAddr::from([10, 0, 0, 9]);
    let may = |token: &[u8], at| code(access.caller(token, &from(at)).may(Right::Mint, "x"));
    assert_eq!(may(b"a", HERE), None);
    let guessed = |_: &u32| may(b"guess", HERE) == Some(Code::Unauthenticated);
    let looked_at = (0..10_000).filter(guessed).count();
    assert!((100..=300).contains(&looked_at), "{looked_at}");
    let slowed = access.caller(b"guess", &from(HERE)).may(Right::Mint, "x").unwrap_err();
    assert_eq!(slowed.code(), Code::RateLimited);
    let wait_ms = slowed.retry_after_ms().unwrap();
    assert!((1..=100).contains(&wait_ms), "{wait_ms}");
    assert_eq!(may(b"a", HERE), None, "in use");
    assert_eq!(may(b"b", HERE), Some(Code::RateLimited), "not seen here before");
    assert_eq!(may(b"b", there), None, "elsewhere");
    // Reloaded tokens count as in use at their previous addresses.
    access.replace(&all).unwrap();
    assert_eq!(may(b"a", HERE), None);
    timer.advance_ms(wait_ms);
    assert_eq!(may(b"b", HERE), None);
}

#[test]
fn a_token_that_has_expired_is_a_guess() {
    let expires = Some("2020-01-01T00:00:00Z".to_owned());
    let old = TokenSettings { expires, ..token(&["old"], &["mint *"]) };
    let access = access(&tokens(&[("old", old)]));
    let code_of_caller = |_| code(access.caller(b"old", &from(HERE)).may(Right::Mint, "x"));
    let refused: Vec<_> = (0..1_000).map(code_of_caller).collect();
    assert_eq!(refused.first(), Some(&Some(Code::Unauthenticated)));
    assert_eq!(refused.last(), Some(&Some(Code::RateLimited)));
}

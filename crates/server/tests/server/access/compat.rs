//! Tests of tokens in the compatibility APIs.

use snowmint_server::{Secret, TokenHash, Tokens};

use super::{ADMIN, MINTER, READER, SLOW, bearer, guarded_with, token};

#[tokio::test]
async fn compatibility_apis_require_tokens() {
    let (server, _) = guarded_with(|settings| {
        settings.compat.leaf.enabled = true;
        settings.compat.tinyid.enabled = true;
        settings.compat.cosid.enabled = true;
        settings.compat.cosid.define = true;
    })
    .await;
    for (method, path, right) in [
        ("GET", "/api/segment/get/numbers", 200),
        ("GET", "/api/snowflake/get/default", 200),
        ("GET", "/decodeSnowflakeId?snowflakeId=1", 200),
        ("GET", "/ids/numbers", 200),
        ("GET", "/ids/as-string/numbers", 200),
        ("PATCH", "/segments/a/b?step=5", 400),
        ("POST", "/segments/distributor/a/b?offset=0&step=5", 200),
    ] {
        let status = async |headers: &str| {
            let response = server.send(method, path, headers, "").await;
            if response.status == 401 {
                assert_eq!(response.header("www-authenticate"), Some("bearer"), "{path}");
            }
            response.status
        };
        assert_eq!(status("").await, 401, "{path}");
        assert_eq!(status(&bearer("wrong")).await, 401, "{path}");
        assert_eq!(status(&bearer(ADMIN)).await, right, "{path}");
    }
    assert_eq!(
        server.send("GET", "/api/segment/get/numbers", &bearer(READER), "").await.status,
        403
    );
    // Tinyid's clients send their token in the query.
    for (token, code) in [("", 5), ("wrong", 5), (READER, 5), (MINTER, 200)] {
        let path = format!("/id/nextId?bizType=numbers&token={token}");
        assert_eq!(server.get(&path).await.json()["code"], code, "{token}");
    }
    // They are counted like all others, those with status 200 too.
    let page = server.send("GET", "/metrics", &bearer(ADMIN), "").await.body;
    for refused in ["code=\"unauthenticated\"} 16\n", "code=\"forbidden\"} 2\n"] {
        let line = format!("snowmint_request_errors_total{{protocol=\"http\",{refused}");
        assert!(page.contains(&line), "{line}{page}");
    }
}

#[tokio::test]
async fn tinyid_tokens_permit_only_minting() {
    let (server, _) = guarded_with(|settings| {
        settings.compat.tinyid.enabled = true;
        let hash = TokenHash::of(b"hashed").to_string();
        let tokens = [("plain", "numbers"), (hash.as_str(), "*")];
        let tokens = tokens.map(|(token, types)| (Secret::new(token), types.to_owned()));
        settings.compat.tinyid.tokens = tokens.into();
    })
    .await;
    for (token, code) in [("plain", 200), ("hashed", 200), ("", 5), ("other", 5), (MINTER, 5)] {
        for call in ["nextId", "nextSegmentId"] {
            let path = format!("/tinyid/id/{call}?bizType=numbers&token={token}");
            assert_eq!(server.get(&path).await.json()["code"], code, "{call} {token}");
        }
    }
    assert_eq!(server.status_as("plain", "GET", "/v1/ids/numbers", "").await, 401);
}

/// Counted like the claims of programs: each makes a number unusable for others for a while.
#[tokio::test]
async fn external_leases_count_against_the_rate() {
    let (server, access) = guarded_with(|settings| settings.compat.cosid.enabled = true).await;
    let slow = token(SLOW, &["reserve *"], &["2/h *"]);
    let tokens = [("slow".to_owned(), slow)].into();
    access.replace(&Tokens { tokens, ..Tokens::default() }).unwrap();
    let ask = async |method: &str, name: &str| {
        let machine = "stable=false&machineBit=4&safeGuardDuration=PT5M";
        let path = format!("/machines/shop?instanceId={name}&{machine}");
        server.send(method, &path, &bearer(SLOW), "").await
    };
    for (name, number) in [("a", 0), ("b", 1)] {
        let response = ask("POST", name).await;
        assert_eq!(
            (response.status, &response.json()["machineId"]),
            (200, &number.into()),
            "{response:?}"
        );
    }
    let refused = ask("POST", "c").await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.body.contains("claims"), "{refused:?}");
    assert_eq!(ask("PATCH", "a").await.status, 200, "it continues with what it has");
}

/// A pattern has any number of namespaces.
#[tokio::test]
async fn external_leases_of_a_token_count_over_all_namespaces() {
    let (server, access) = guarded_with(|settings| {
        settings.compat.cosid.enabled = true;
        settings.compat.cosid.machines_max = 3;
    })
    .await;
    let tokens = [
        ("minter".to_owned(), token(MINTER, &["reserve tmp-*"], &[])),
        ("slow".to_owned(), token(SLOW, &["reserve shop"], &[])),
        ("admin".to_owned(), token(ADMIN, &["reserve,admin *"], &[])),
    ];
    access.replace(&Tokens { tokens: tokens.into(), ..Tokens::default() }).unwrap();
    let distribute = async |token: &str, namespace: &str| {
        let machine = "instanceId=a&stable=true&machineBit=10&safeGuardDuration=PT5M";
        let path = format!("/machines/{namespace}?{machine}");
        server.send("POST", &path, &bearer(token), "").await
    };
    for namespace in ["tmp-1", "tmp-2", "tmp-3"] {
        assert_eq!(distribute(MINTER, namespace).await.status, 200, "{namespace}");
    }
    let refused = distribute(MINTER, "tmp-4").await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &"M-01".into()), "{refused:?}");
    for part in ["tmp-4", "makes 4, limit 3", "compat.cosid.machines_max"] {
        assert!(refused.body.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(distribute(MINTER, "tmp-2").await.status, 200, "a holder gets the same number");
    assert_eq!(distribute(SLOW, "shop").await.status, 200, "another token has its own count");
    assert_eq!(
        distribute(ADMIN, "tmp-4").await.status,
        200,
        "and who administers all, one for each namespace"
    );
}

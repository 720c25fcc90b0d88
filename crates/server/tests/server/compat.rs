//! Tests of the compatibility APIs: their responses without IDs, and to requests that are too long.
//! `crates/cli/tests/end_to_end/compat` compares the rest with golden files.

use snowmint_server::Settings;

use crate::common::{node, server_of, server_with, settings};

fn all_open(settings: &mut Settings) {
    settings.compat.leaf.enabled = true;
    settings.compat.tinyid.enabled = true;
    settings.compat.cosid.enabled = true;
}

#[tokio::test]
async fn each_compatibility_api_reports_unavailable_ids_in_its_form() {
    let node = node().await;
    let mut settings = settings();
    all_open(&mut settings);
    let server = server_of(node.clone(), settings).await;
    assert_eq!(server.get("/api/segment/get/numbers").await.status, 200);
    node.close().await.unwrap();

    for path in ["/api/segment/get/numbers", "/api/snowflake/get/default"] {
        let leaf = server.get(path).await;
        assert_eq!(leaf.status, 500);
        assert_eq!(leaf.json()["message"], "Result{id=-1, status=EXCEPTION}");
        assert_eq!(leaf.header("retry-after"), Some("1"));
    }
    for name in ["nextId", "nextSegmentId"] {
        let tinyid = server.get(&format!("/id/{name}?bizType=numbers")).await;
        assert_eq!(tinyid.status, 200);
        let body = tinyid.json();
        assert_eq!((&body["data"], &body["code"]), (&serde_json::Value::Null, &6.into()));
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        let simple = server.get(&format!("/tinyid/id/{name}Simple?bizType=numbers")).await;
        assert_eq!(simple.status, 503);
        assert_eq!(simple.json(), body);
        assert_eq!(simple.header("retry-after"), Some("1"));
    }
    let segment = server.send("PATCH", "/segments/a/b?step=5", "", "").await;
    assert_eq!((segment.status, &segment.json()["code"]), (400, &"400".into()), "no such source");
    let id = server.get("/ids/numbers").await;
    assert_eq!((id.status, &id.json()["code"]), (500, &"500".into()));
    assert_eq!(id.header("retry-after"), Some("1"));
}

/// All invalid texts would otherwise count as one.
#[tokio::test]
async fn invalid_text_is_rejected_by_each_compatibility_api() {
    let server = server_with(all_open).await;
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    for text in ["%FF", "%FE", "%C3%28", "%C3&x=%A9"] {
        let machine = "stable=false&machineBit=3&safeGuardDuration=PT5M&instanceId=";
        let cosid = format!("/machines/shop?{machine}{text}");
        let cosid = server.send("POST", &cosid, "", "").await;
        assert_eq!((cosid.status, &cosid.json()["code"]), (400, &"400".into()), "{cosid:?}");
        let body = format!("{machine}{text}");
        let cosid = server.send("POST", "/machines/shop", form, &body).await;
        assert_eq!((cosid.status, &cosid.json()["code"]), (400, &"400".into()), "{cosid:?}");

        let params = format!("bizType=numbers&secret={text}");
        let query = server.get(&format!("/id/nextId?{params}")).await;
        let body = server.send("POST", "/id/nextId", form, &params).await;
        for tinyid in [query, body] {
            assert_eq!((tinyid.status, &tinyid.json()["code"]), (200, &6.into()), "{tinyid:?}");
            assert!(tinyid.body.contains("UTF-8") && !tinyid.body.contains("secret"), "{tinyid:?}");
        }
        let leaf = server.get(&format!("/decodeSnowflakeId?snowflakeId={text}")).await;
        assert_eq!((leaf.status, &leaf.json()["status"]), (400, &400.into()), "{leaf:?}");
        assert!(leaf.body.contains("UTF-8"), "{leaf:?}");
    }
    let body = "bizType=numbers&name=%C3%A9";
    assert_eq!(server.send("POST", "/id/nextId", form, body).await.json()["code"], 200);
}

/// CosId's groups by date: each has numbers of its own, from the offset on.
#[tokio::test]
async fn each_group_of_cosid_has_a_source_of_its_own() {
    let with_keys = |define: bool| {
        server_with(move |settings| {
            all_open(settings);
            settings.compat.cosid.define = define;
            for (key, source) in [("shop.bills", "invoices"), ("shop.bills@2025", "old")] {
                settings.compat.cosid.keys.insert(key.into(), source.into());
            }
        })
    };
    let server = with_keys(true).await;
    for (name, source, offset) in [
        ("orders@20261129", "shop.orders-20261129", 0),
        ("orders@20261130", "shop.orders-20261130", 100),
        ("bills@2026-11", "invoices-2026-11", 0),
        ("bills@2025", "old", 0),
        ("a@b@c", "", 0),
    ] {
        let path = format!("/segments/distributor/shop/{name}?offset={offset}&step=10");
        let made = server.send("POST", &path, "", "").await;
        let taken = server.send("PATCH", &format!("/segments/shop/{name}?step=10"), "", "").await;
        if source.is_empty() {
            assert_eq!((made.status, taken.status), (400, 400), "{made:?}");
            assert!(made.body.contains("shop.a@b-c"), "{made:?}");
        } else {
            assert_eq!(made.status, 200, "{made:?}");
            assert_eq!(taken.body, (offset + 10).to_string(), "{name}");
            assert_eq!(server.get(&format!("/v1/sources/{source}")).await.status, 200, "{source}");
        }
    }
    // Without `define` the error names the source that is missing.
    let server = with_keys(false).await;
    let path = "/segments/distributor/shop/orders@20261129?offset=0&step=10";
    let missing = server.send("POST", path, "", "").await;
    assert_eq!(missing.status, 400);
    assert!(missing.body.contains("shop.orders-20261129"), "{missing:?}");
}

/// Lists show the label of a client with an external lease.
#[tokio::test]
async fn external_client_label_consists_of_visible_characters() {
    let server = server_with(all_open).await;
    let ask = async |label: &str| {
        let machine = "stable=false&machineBit=3&safeGuardDuration=PT5M";
        let path = format!("/machines/shop?{machine}&instanceId={label}");
        server.send("POST", &path, "", "").await
    };
    for label in ["a%1B%5B2J", "a%0Ab", "%E2%80%AEa"] {
        let refused = ask(label).await;
        assert_eq!(refused.status, 400, "{label}: {refused:?}");
        assert!(refused.body.contains("client's label"), "{label}: {refused:?}");
        assert!(!refused.body.contains('\u{1b}'), "{label}: {refused:?}");
    }
    assert_eq!(ask("a").await.status, 200);
}

#[tokio::test]
async fn a_form_has_the_limits_of_every_body() {
    let server = server_with(|settings| {
        all_open(settings);
        settings.http.body_bytes_max = 100;
    })
    .await;
    let form = "content-type: application/x-www-form-urlencoded; charset=UTF-8\r\n";
    let fits = format!("bizType=numbers&more={}", "x".repeat(70));
    let response = server.send("POST", "/id/nextId", form, &fits).await;
    assert_eq!(response.json()["code"], 200, "{response:?}");
    let response = server.send("POST", "/id/nextId", form, &format!("{fits}xxxxxxxxxx")).await;
    assert_eq!(response.json()["code"], 6);
    assert!(response.body.contains("http.body_bytes_max"), "{response:?}");
    // A body that is not a form has no parameters.
    let response = server.post("/id/nextId", "bizType=numbers").await;
    assert_eq!(response.json()["message"], "parameter bizType is missing; send it");
}

/// Spring matches paths in this way in the versions that Leaf and Tinyid are built with.
#[tokio::test]
async fn path_may_end_in_a_slash_as_in_the_original_api() {
    let server = server_with(all_open).await;
    for path in ["/api/segment/get/numbers/", "/api/snowflake/get/default/"] {
        let id = server.get(path).await;
        assert_eq!(id.status, 200, "{path}: {id:?}");
        assert!(id.body.parse::<u64>().is_ok(), "{path}: {id:?}");
        assert_eq!(server.send("HEAD", path, "", "").await.status, 405, "{path}");
    }
    let decoded = server.get("/decodeSnowflakeId/?snowflakeId=1234567890123456789").await;
    assert_eq!(decoded.status, 200, "{decoded:?}");
    for prefix in ["", "/tinyid"] {
        for name in ["nextId", "nextIdSimple", "nextSegmentId", "nextSegmentIdSimple"] {
            let path = format!("{prefix}/id/{name}/?bizType=numbers");
            assert_eq!(server.get(&path).await.status, 200, "{path}");
        }
    }
    assert_eq!(server.get("/api/segment/get/").await.status, 404);
    assert_eq!(server.get("/api/segment/get/numbers//").await.status, 404);
}

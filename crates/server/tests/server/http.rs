//! Tests of HTTP, over real sockets.

use std::sync::Arc;

use snowmint_coord::{MemoryStore, Node, NodeSettings};

use super::common::{node_on, request, server, server_of, settings, soon};

#[tokio::test]
async fn ids_come_as_json_and_as_text() {
    let server = server().await;
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [1]);
    assert_eq!(server.get("/v1/ids/numbers?count=3").await.ids(), [2, 3, 4]);
    assert_eq!(server.post("/v1/ids/numbers", "").await.ids(), [5]);
    assert_eq!(server.post("/v1/ids/numbers", "{\"count\":2}").await.ids(), [6, 7]);
    assert_eq!(server.post("/v1/ids/numbers", "{\"count\":\"2\"}").await.ids(), [8, 9]);

    let text = server.send("GET", "/v1/ids/numbers?count=2", "accept: text/plain\r\n", "").await;
    assert_eq!(text.body, "10\n11\n");
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(text.header("cache-control"), Some("no-store"));
    // On the fast path, too, and by what contains it.
    for (accept, is_text) in [
        ("text/*", true),
        ("text/plain", true),
        ("application/json;q=0.5, text/*;q=0.6", true),
        ("*/*", false),
        ("text/html, */*;q=0.8", false),
    ] {
        for path in ["/v1/ids/default", "/v1/ids/default?count=2"] {
            let header = format!("accept: {accept}\r\n");
            let response = server.send("GET", path, &header, "").await;
            let kind = if is_text { "text/plain; charset=utf-8" } else { "application/json" };
            assert_eq!(response.header("content-type"), Some(kind), "{accept} {path}");
            assert_eq!(response.body.starts_with('{'), !is_text, "{accept} {path}");
        }
    }

    let numbers = server.get("/v1/ids/numbers?count=2&format=number").await;
    assert_eq!(numbers.body, "{\"ids\":[12,13]}");
    assert_eq!(numbers.header("cache-control"), Some("no-store"));
    assert_eq!(numbers.header("content-type"), Some("application/json"));
    assert_eq!(server.get("/v1/ids/numbers?format=hex").await.body, "{\"ids\":[\"e\"]}");
    assert_eq!(server.post("/v1/ids/numbers?count=2", "").await.ids(), [15, 16]);

    let many = server.get("/v1/ids/default?count=100000").await.ids();
    assert_eq!(many.len(), 100_000);
    assert!(many.is_sorted_by(|a, b| a < b));
}

/// A retry is safe: numbers are skipped, and none comes twice.
#[tokio::test]
async fn idempotency_key_is_ignored() {
    let server = server().await;
    for (method, path, body) in [
        ("GET", "/v1/ids/numbers", ""),
        ("POST", "/v1/ids/numbers", "{}"),
        ("POST", "/v1/ids/counters", "{\"key\":\"alice\"}"),
        ("POST", "/v1/segments/numbers", "{\"length\":10}"),
    ] {
        let key = "idempotency-key: a\r\n";
        let first = server.send(method, path, key, body).await;
        let again = server.send(method, path, key, body).await;
        assert_eq!((first.status, again.status), (200, 200), "{path}");
        assert_ne!(first.body, again.body, "{path}");
    }
    for headers in ["idempotency-key: k\r\nidempotency-key: l\r\n", "idempotency-key: \r\n"] {
        assert_eq!(server.send("GET", "/v1/ids/numbers", headers, "").await.ids().len(), 1);
    }
}

#[tokio::test]
async fn bad_input_is_rejected_in_the_documented_form() {
    let server = server().await;
    let long = format!("/v1/ids/{}", "a".repeat(64));
    for (path, status, code) in [
        ("/v1/ids/default?count=0", 400, "bad_request"),
        ("/v1/ids/default?count=-1", 400, "bad_request"),
        ("/v1/ids/default?count=1e18", 400, "bad_request"),
        ("/v1/ids/default?count=", 400, "bad_request"),
        ("/v1/ids/default?count=1&count=2", 400, "bad_request"),
        ("/v1/ids/default?cuont=5", 400, "bad_request"),
        ("/v1/ids/default?format=roman", 400, "bad_request"),
        ("/v1/ids/default?key=x", 400, "bad_request"),
        ("/v1/ids/counters?key=%FF", 400, "bad_request"),
        ("/v1/counters/counters/%FF", 400, "bad_request"),
        ("/v1/ids/default?count=100001", 413, "limit_exceeded"),
        ("/v1/ids/default?count=1000000000000000000", 413, "limit_exceeded"),
        ("/v1/ids/default?count=99999999999999999999999", 413, "limit_exceeded"),
        ("/v1/ids/absent", 404, "unknown_source"),
        ("/v1/ids/a%2Fb", 400, "bad_request"),
        ("/v1/ids/a%3Fb", 400, "bad_request"),
        ("/v1/ids/a%25b", 400, "bad_request"),
        ("/v1/ids/a%b", 400, "bad_request"),
        ("/v1/ids/%F0%9F%98%80", 400, "bad_request"),
        ("/v1/ids/%FF", 400, "bad_request"),
        (&long, 400, "bad_request"),
        ("/v1/ids/", 404, "not_found"),
        ("/v1/ids", 404, "not_found"),
        ("/v1/ids/a/b", 404, "not_found"),
        ("/nothing", 404, "not_found"),
        ("/v1/decode/not%20an%20id", 400, "bad_request"),
        ("/v1/decode/18446744073709551616", 400, "bad_request"),
        ("/v1/decode/1?source=default&layout=twitter", 400, "bad_request"),
        ("/v1/decode/x?layout=twitter", 400, "bad_request"),
        ("/v1/decode/+1?layout=twitter", 400, "bad_request"),
        ("/v1/decode/18446744073709551615?layout=twitter", 400, "bad_request"),
        ("/v1/decode/-1?layout=twitter", 400, "bad_request"),
        ("/v1/decode/-0?layout=discord", 400, "bad_request"),
        ("/v1/decode/1?layout=nothing", 400, "bad_request"),
        ("/v1/decode/1?source=absent", 404, "unknown_source"),
        ("/v1/layouts/nothing", 404, "not_found"),
        ("/v1/layouts/time=99", 400, "bad_request"),
        ("/v1/sources/absent", 404, "unknown_source"),
    ] {
        let response = server.get(path).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (status, code),
            "{path}: {response:?}"
        );
    }
    for (path, body, status, code) in [
        ("/v1/ids/default", "{", 400, "bad_request"),
        ("/v1/ids/default", "[]", 400, "bad_request"),
        ("/v1/ids/default", "{\"count\":0}", 400, "bad_request"),
        ("/v1/ids/default", "{\"count\":1e18}", 400, "bad_request"),
        ("/v1/ids/default", "{\"count\":1,\"x\":2}", 400, "bad_request"),
        ("/v1/ids/default", "{\"count\":100001}", 413, "limit_exceeded"),
        ("/v1/ids/default?cuont=2", "", 400, "bad_request"),
        ("/v1/ids/default?count=2", "{\"count\":2}", 400, "bad_request"),
        ("/v1/segments/numbers", "", 400, "bad_request"),
        ("/v1/segments/numbers", "{\"length\":0}", 400, "bad_request"),
        ("/v1/segments/numbers", "{\"length\":1000001}", 413, "limit_exceeded"),
        ("/v1/segments/default", "{\"length\":1}", 400, "bad_request"),
        ("/v1/segments/absent", "{\"length\":1}", 404, "unknown_source"),
        ("/v1/sources", "{}", 400, "bad_request"),
        ("/v1/sources", "{\"name\":\"a/b\"}", 400, "bad_request"),
        ("/v1/sources", "{\"name\":\"a\",\"nonsense\":1}", 400, "bad_request"),
        ("/v1/sources", "{\"name\":\"a\",\"layout\":\"nothing\"}", 400, "bad_request"),
        ("/livez", "", 405, "method_not_allowed"),
    ] {
        let response = server.post(path, body).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (status, code),
            "{path} {body}: {response:?}"
        );
    }
    for method in ["DELETE", "PUT", "BREW"] {
        let response = server.send(method, "/v1/ids/default", "", "").await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (405, "method_not_allowed"),
            "{method}"
        );
    }
    // A HEAD would mint an ID that no caller sees.
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [1]);
    let refused = server.send("HEAD", "/v1/ids/numbers", "", "").await;
    assert!(refused.head.starts_with("http/1.1 405"));
    assert_eq!(refused.header("allow"), Some("get,post"));
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [2]);
}

#[tokio::test]
async fn a_range_is_the_callers_own() {
    let server = server().await;
    let range = server.post("/v1/segments/numbers", "{\"length\":1000}").await.json();
    let number = |name: &str| range[name].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(number("last") - number("first"), 999);
    assert_eq!(range["increment"], 1);
    let next = server.get("/v1/ids/numbers?count=100").await.ids();
    assert!(next.iter().all(|id| !(number("first")..=number("last")).contains(id)));
}

#[tokio::test]
async fn layouts_are_described_and_ids_decoded() {
    let server = server().await;
    let layouts = server.get("/v1/layouts").await.json();
    assert!(
        layouts["layouts"].as_array().unwrap().iter().any(|layout| layout["name"] == "twitter")
    );
    let twitter = server.get("/v1/layouts/twitter").await.json();
    assert_eq!(twitter["bits"]["worker"], 10);
    assert_eq!(twitter["workers"], 1024);
    assert_eq!(twitter["ids_per_second"], 4_096_000);
    assert_eq!(twitter["end"], "2080-07-10T17:30:30.209Z");
    let own = "time=41,clock=3,worker=7,sequence=12,unit=1ms,epoch=2024-01-01T00:00:00%2B08:00";
    assert_eq!(server.get(&format!("/v1/layouts/{own}")).await.json()["bits"]["clock"], 3);

    // Discord's own example.
    let decoded = server.get("/v1/decode/175928847299117063?layout=discord").await.json();
    assert_eq!(decoded["time"], "2016-04-30T11:18:25.796Z");
    assert_eq!(decoded["id"], "175928847299117063");
    assert_eq!(decoded["worker_parts"], serde_json::json!([1, 0]));
    assert_eq!(decoded["sequence"], 7);

    // Texts that are the only form of their layout's IDs.
    for (id, layout, time) in [
        ("BsOGulcndj-", "instagram", "2019-01-04T17:05:45.106Z"),
        ("0AWG1PRQQFZ8D", "tsid", "2022-12-18T18:10:05.117Z"),
    ] {
        let decoded = server.get(&format!("/v1/decode/{id}?layout={layout}")).await.json();
        assert_eq!(decoded["time"], time, "{decoded}");
    }

    // Layouts that only decode: CockroachDB's has no sequence, and uid-generator's IDs are negative.
    let decoded = server.get("/v1/decode/568469873039769601?layout=cockroachdb").await.json();
    assert_eq!(decoded["time"], "2020-06-30T21:47:17.622Z");
    assert_eq!((&decoded["worker"], decoded.get("sequence")), (&1.into(), None));
    let decoded = server.get("/v1/decode/-7055142081907384320?layout=baidu-2016").await.json();
    assert_eq!(decoded["time"], "2026-11-20T22:14:13.000Z");
    assert_eq!(decoded["number"], "11391601991802167296");
    let cockroachdb = server.get("/v1/layouts/cockroachdb").await.json();
    assert_eq!((&cockroachdb["unit_ms"], &cockroachdb["unit_ns"]), (&0.into(), &10_000.into()));
    assert_eq!(cockroachdb["can_mint"], false);
    let own = server.get("/v1/layouts/worker=10,time=41,sequence=12").await.json();
    assert_eq!(own["can_mint"], false);

    let id = server.get("/v1/ids/default").await.ids()[0];
    let decoded = server.get(&format!("/v1/decode/{id}?source=default")).await.json();
    assert_eq!(decoded["id"], id.to_string());
    assert!(decoded["tick"].as_u64().is_some() && decoded["worker"].as_u64().is_some());
}

#[tokio::test]
async fn id_minted_in_a_chosen_form_is_decoded_in_it() {
    let server = server().await;
    for form in ["number", "decimal", "hex", "base62", "base58-padded", "friendly"] {
        let minted = server.get(&format!("/v1/ids/default?format={form}")).await.json();
        let id = minted["ids"][0].to_string();
        let id = id.trim_matches('"');
        let path = format!("/v1/decode/{id}?format={form}");
        let decoded = server.get(&format!("{path}&source=default")).await.json();
        assert_eq!(decoded["id"], id, "{form}: {decoded}");
        assert!(decoded["tick"].is_u64(), "{form}: {decoded}");
        let layout = decoded["layout"].as_str().unwrap();
        let by_layout = server.get(&format!("{path}&layout={layout}")).await.json();
        assert_eq!(by_layout["number"], decoded["number"], "{form}: {by_layout}");
    }
    let unknown = server.get("/v1/decode/1ptWyK4WgZU?format=base62").await.json();
    assert_eq!(unknown["number"], "1541815603606036480", "{unknown}");
    for (path, part) in [
        (
            "1ptWyK4WgZU?source=default",
            "\"1ptWyK4WgZU\" in decimal, the form of source \"default\"",
        ),
        ("1ptWyK4WgZU?source=default&format=hex", "\"1ptWyK4WgZU\" in hex: 'p'"),
        ("1ptWyK4WgZU?layout=twitter", "\"1ptWyK4WgZU\" in decimal: 'p'"),
        ("18446744073709551615?layout=twitter", "\"18446744073709551615\" of layout time=41"),
        ("18446744073709551615?source=default", "\"18446744073709551615\" of source \"default\""),
        ("1?source=default&format=base64", "unknown format \"base64\"; expected number, decimal"),
    ] {
        let response = server.get(&format!("/v1/decode/{path}")).await;
        assert_eq!((response.status, response.code().as_str()), (400, "bad_request"), "{path}");
        let message = response.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains(part), "{path}: {message}");
    }
}

#[tokio::test]
async fn health_follows_the_server_state() {
    let server = server().await;
    assert_eq!(server.get("/livez").await.status, 200);
    soon(async { while server.get("/readyz").await.status != 200 {} }).await;
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
    assert_eq!(server.get("/v1/workers").await.status, 200);
}

#[tokio::test]
async fn server_status_describes_the_server() {
    let store = MemoryStore::new("test").unwrap();
    let named =
        NodeSettings { owner: "ids-7".into(), host: "a-host".into(), ..NodeSettings::default() };
    let parts = snowmint_coord::Platform::system();
    let node = Node::open(Arc::new(store), named, parts).await.unwrap();
    let server = server_of(node.clone(), settings()).await;
    soon(async {
        while node.incarnation().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let about = server.get("/v1/server").await.json();
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&about["namespace"], &about["owner"]), (&"test".into(), &"ids-7".into()));
    assert_eq!(about["member"], node.incarnation().unwrap().to_string());
    let store = &about["store"];
    assert_eq!((&store["clock"], &store["presence"]), (&"caller".into(), &"record".into()));
    assert_eq!(store["durable_on_reply"], false, "memory is not");
    assert_eq!(about["tokens_required"], false);
    assert_eq!(about["host"], "a-host");
    assert!(about.get("token").is_none(), "{about}");
}

#[tokio::test]
async fn a_server_marks_its_own_worker_numbers() {
    let store = MemoryStore::new("test").unwrap();
    let mut servers = Vec::new();
    for _ in 0..3 {
        let node = node_on(store.handle("test").unwrap()).await;
        let server = server_of(node.clone(), settings()).await;
        server.get("/v1/ids/default").await.ids();
        servers.push((server, node));
    }
    // A released number has no holder.
    servers.pop().unwrap().1.close().await.unwrap();

    let mut owned = Vec::new();
    for (server, _) in &servers {
        let decoded = server.get("/v1/ids/default").await.ids()[0];
        let decoded = server.get(&format!("/v1/decode/{decoded}?source=default")).await.json();
        let workers = server.get("/v1/workers").await.json()["workers"].clone();
        let workers = workers.as_array().unwrap();
        assert_eq!(workers.len(), 3);
        let own: Vec<_> = workers.iter().filter(|worker| worker["own"] == true).collect();
        assert_eq!(own.len(), 1, "{workers:?}");
        assert!(workers.iter().all(|worker| worker["own"].is_boolean()), "{workers:?}");
        assert_eq!(own[0]["number"], decoded["worker"], "the one that it mints with");
        assert_eq!(own[0]["live"], true);
        owned.push(own[0]["number"].clone());
    }
    assert_ne!(owned[0], owned[1]);
}

/// A change of the catalog by one protocol is visible by the other.
#[tokio::test]
async fn source_lifecycle_is_visible_over_both_protocols() {
    let server = server().await;
    let mut resp = server.resp().await;
    let definition = "{\"name\":\"orders\",\"kind\":\"segment\",\"text\":\"base62\"}";
    let defined = server.post("/v1/sources", definition).await;
    assert_eq!((defined.status, &defined.json()["kind"]), (200, &"segment".into()), "{defined:?}");
    // An equal definition is accepted; a different one is an error.
    assert_eq!(server.post("/v1/sources", definition).await.status, 200);
    let other = server.post("/v1/sources", "{\"name\":\"orders\"}").await;
    assert_eq!((other.status, other.code().as_str()), (409, "conflict"));
    let message = other.json()["error"]["message"].to_string();
    assert!(message.contains("kind cannot change") && !message.contains("layout"), "{message}");
    // An error about an unchangeable key has both values, and the way to change it.
    let first = server.send("PATCH", "/v1/sources/orders", "", "{\"first\":5000}").await;
    assert_eq!((first.status, first.code().as_str()), (409, "conflict"));
    let message = first.json()["error"]["message"].to_string();
    let wanted = "has no first, requested first = 5000: first can change only by a restripe";
    assert!(message.contains(wanted), "{message}");
    assert_eq!(resp.ask(&["INCR", "orders"]).await, "$1");
    assert_eq!(resp.line().await, "1");
    assert_eq!(server.get("/v1/ids/orders").await.body, "{\"ids\":[\"2\"]}");

    let change = "{\"enabled\":false,\"step\":{\"max\":5000}}";
    let changed = server.send("PATCH", "/v1/sources/orders", "", change).await.json();
    assert_eq!((&changed["enabled"], &changed["step"]["max"]), (&false.into(), &5000.into()));
    // Unnamed keys have stayed.
    assert_eq!(changed["text"], "base62");
    let leaf = "{\"step\":{\"rule\":\"leaf\",\"size\":10}}";
    let leaf = server.send("PATCH", "/v1/sources/orders", "", leaf).await.json();
    let expected = serde_json::json!({"rule": "leaf", "size": 10, "max": 5000});
    assert_eq!(leaf["step"], expected, "what has no meaning for another rule has gone");
    let both = "{\"step\":{\"rule\":\"fixed\",\"max\":7}}";
    let both = server.send("PATCH", "/v1/sources/orders", "", both).await;
    assert_eq!((both.status, both.code().as_str()), (400, "bad_request"), "{both:?}");
    assert_eq!(server.get("/v1/ids/orders").await.code(), "disabled");
    assert!(resp.ask(&["INCR", "orders"]).await.starts_with("-ERR source \"orders\" is disabled"));
    // Succeeds only without a change since.
    let version = leaf["version"].as_u64().unwrap();
    let if_version = async |version: &str| {
        let body = format!("{{\"version\":{version},\"step\":{{\"size\":20}}}}");
        server.send("PATCH", "/v1/sources/orders", "", &body).await
    };
    assert_eq!(if_version(&version.to_string()).await.json()["step"]["size"], 20);
    for late in [version, 0, version + 1_000] {
        let late = if_version(&late.to_string()).await;
        assert_eq!((late.status, late.code().as_str()), (409, "conflict"));
        assert!(late.body.contains("; read it again"), "{late:?}");
    }
    assert_eq!(if_version("null").await.status, 200);
    assert_eq!(if_version("\"a\"").await.status, 400);
    // Leftover keys of the old kind do not fit the new one; without them, the change of kind is a
    // conflict.
    let without = r#"{"kind":"ulid","step":null,"text":null,"offset":null,"increment":null}"#;
    for (change, refused) in
        [("{\"kind\":\"ulid\"}", (400, "bad_request")), (without, (409, "conflict"))]
    {
        let kind = server.send("PATCH", "/v1/sources/orders", "", change).await;
        assert_eq!((kind.status, kind.code().as_str()), refused, "{kind:?}");
    }

    // Removed by a merge patch, a key gets its default.
    let enabled = server.send("PATCH", "/v1/sources/orders", "", "{\"enabled\":null}").await;
    assert_eq!(enabled.json()["enabled"], true, "{enabled:?}");
    assert!(resp.ask(&["INCR", "orders"]).await.starts_with('$'));
    resp.line().await;
    assert_eq!(server.send("DELETE", "/v1/sources/orders", "", "").await.status, 204);
    assert_eq!(server.get("/v1/ids/orders").await.code(), "unknown_source");
    assert_eq!(server.get("/v1/sources/orders").await.code(), "unknown_source");
    assert!(resp.ask(&["INCR", "orders"]).await.starts_with("-ERR source \"orders\" "));
    let left = server.get("/v1/sources").await.json();
    assert!(left["sources"].as_array().unwrap().iter().all(|source| source["name"] != "orders"));

    // Defined again, it continues above its old numbers.
    assert_eq!(server.post("/v1/sources", definition).await.status, 200);
    resp.send(request(&["INCR", "orders"])).await;
    let again = resp.string().await;
    assert!(again.parse::<u64>().unwrap() > 2, "{again}");
}

/// Kinds without numbers, and formats that are not decimal.
#[tokio::test]
async fn every_kind_of_id_is_served() {
    let server = server().await;
    let mut resp = server.resp().await;
    for source in [
        "{\"name\":\"v7\",\"kind\":\"uuid\"}",
        "{\"name\":\"v5\",\"kind\":\"uuid\",\"uuid\":{\"version\":5,\"namespace\":\"dns\"}}",
        "{\"name\":\"lid\",\"kind\":\"ulid\"}",
        "{\"name\":\"short\",\"layout\":\"twitter\",\"text\":\"base62\"}",
    ] {
        let response = server.post("/v1/sources", source).await;
        assert_eq!(response.status, 200, "{response:?}");
    }
    let text = async |path: &str| {
        let response = server.get(path).await;
        response.json()["ids"][0].as_str().unwrap_or_else(|| panic!("{response:?}")).to_owned()
    };
    assert_eq!(text("/v1/ids/v7").await.len(), 36);
    assert_eq!(text("/v1/ids/lid").await.len(), 26);
    // RFC 9562's own example of version 5 is www.example.com in the namespace of DNS.
    let example = "2ed6657d-e927-568b-95e1-2665a8aea6a2";
    assert_eq!(text("/v1/ids/v5?key=www.example.com").await, example);
    assert_eq!(server.get("/v1/ids/v5").await.code(), "bad_request");
    assert_eq!(server.get("/v1/ids/v7?format=hex").await.code(), "bad_request");
    assert_eq!(resp.ask(&["INCR", "v5:www.example.com"]).await, "$36");
    assert_eq!(resp.line().await, example);
    assert_eq!(resp.ask(&["MINT", "lid", "2"]).await, "*2");

    let id = server.get("/v1/ids/short?format=decimal").await.ids()[0];
    let short = text("/v1/ids/short").await;
    assert!(short.len() < 12 && short.parse::<u64>().is_err(), "{short}");
    let decoded = server.get(&format!("/v1/decode/{short}?source=short")).await.json();
    assert!(decoded["number"].as_str().unwrap().parse::<u64>().unwrap() > id);
}

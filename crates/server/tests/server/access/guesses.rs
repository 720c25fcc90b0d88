//! Tests of guessed tokens, over every protocol.

use snowmint_server::Secret;
use tonic::Code;

use super::grpc::named;
use super::{ADMIN, MINTER, READER, bearer, guarded_with};
use crate::grpc::wish;

/// Limits documented in docs/reference/access.md.
const BURST: usize = 200;
const EACH_MS: u64 = 10;

/// All come from one address, and no time passes by itself.
#[tokio::test]
async fn guesses_of_one_address_are_slowed_over_all_protocols() {
    let (server, access) = guarded_with(|settings| {
        settings.compat.tinyid.enabled = true;
    })
    .await;
    let (mut resp, mut grpc) = (server.resp().await, server.grpc().await);
    let get = async |token: &str| server.send("GET", "/v1/ids/default", &bearer(token), "").await;
    assert_eq!(get(MINTER).await.status, 200);
    for guess in 0..BURST {
        let (token, wrong) = (format!("guess-{guess}"), format!("{guess}"));
        match guess % 4 {
            0 => assert_eq!(get(&token).await.status, 401, "{guess}"),
            1 => assert!(resp.ask(&["AUTH", &token]).await.starts_with("-WRONGPASS"), "{guess}"),
            2 => {
                let refused = grpc.mint(named(wish("default", None), &token)).await.unwrap_err();
                assert_eq!(refused.code(), Code::Unauthenticated, "{guess}");
            }
            _ => {
                let path = format!("/id/nextId?bizType=numbers&token={wrong}");
                assert_eq!(server.get(&path).await.json()["code"], 5, "{guess}");
            }
        }
    }
    // From here on no token is checked. Each protocol reports it in its form, with the time of a
    // retry.
    for token in ["guess", READER] {
        let slowed = get(token).await;
        assert_eq!((slowed.status, slowed.code().as_str()), (429, "rate_limited"), "{token}");
        assert_eq!(slowed.header("retry-after"), Some("1"));
        assert!(slowed.body.contains("too many wrong tokens"), "{}", slowed.body);
        assert!(!slowed.body.contains(token), "{}", slowed.body);
        for words in [&["AUTH", token][..], &["HELLO", "3", "AUTH", "default", token]] {
            let refused = resp.ask(words).await;
            assert!(refused.starts_with("-TRYAGAIN too many wrong tokens"), "{refused}");
        }
        let refused = grpc.mint(named(wish("default", None), token)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let path = format!("/id/nextId?bizType=numbers&token={token}");
        assert_eq!(server.get(&path).await.json()["code"], 6);
    }
    // Callers with a token there continue, on new connections too. Callers without one get the
    // usual error.
    assert_eq!(get(MINTER).await.status, 200);
    let mut other = server.resp().await;
    assert_eq!(other.ask(&["AUTH", "minter", MINTER]).await, "+OK");
    grpc.mint(named(wish("default", None), MINTER)).await.unwrap();
    assert_eq!(server.get("/v1/ids/default").await.status, 401);
    assert_eq!(server.get("/livez").await.status, 200);
    // A token that is new there is accepted with the next check.
    server.timer.advance_ms(EACH_MS);
    assert_eq!(get(ADMIN).await.status, 200);
    assert_eq!(get("guess").await.status, 401);
    assert_eq!(get("guess").await.status, 429);
    assert_eq!(get(ADMIN).await.status, 200);
    drop(access);
}

/// They may be words that a person invented.
#[tokio::test]
async fn guesses_of_tinyids_own_tokens_are_slowed() {
    let (server, _) = guarded_with(|settings| {
        settings.compat.tinyid.enabled = true;
        settings.compat.tinyid.tokens = [(Secret::new("word"), "numbers".to_owned())].into();
    })
    .await;
    let code = async |token: &str| {
        let path = format!("/id/nextId?bizType=numbers&token={token}");
        server.get(&path).await.json()["code"].as_u64().unwrap()
    };
    assert_eq!(code("word").await, 200);
    for guess in 0..BURST {
        assert_eq!(code(&format!("guess-{guess}")).await, 5, "{guess}");
    }
    assert_eq!(code("guess").await, 6);
    assert_eq!(code("word").await, 200);
    server.timer.advance_ms(EACH_MS);
    assert_eq!(code("guess").await, 5);
}

//! Definitions that name something shared need a permission for it, over every protocol that
//! defines.

use snowmint_coord::{NewDefinition, SourceSpec};
use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::{AlterSourceRequest, DefineSourceRequest, store};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::{Made, bearer, entry, path, put, token};
use crate::server::{Folder, Server, client};

const HIDDEN: &str = r#"{"kind":"segment","disguise":{"mode":"full"}}"#;
/// Definitions, each with the permission that it lacks.
const NAMING: [(&str, &str); 4] = [
    (HIDDEN, "admin key:1"),
    (r#"{"disguise":{"mode":"ordered","key":2}}"#, "admin key:2"),
    (r#"{"kind":"segment","stores":"a,b"}"#, "admin store:a"),
    (r#"{"kind":"segment","upstream":"leaf:orders"}"#, "admin upstream:leaf"),
];

struct NamingFixture {
    _folder: Folder,
    server: Server,
    ops: Made,
    /// Token that may define its own sources, and name nothing shared.
    guest: Made,
    /// Token that may name everything of the server.
    trusted: Made,
}

fn started(name: &str) -> NamingFixture {
    let folder = Folder::new(name);
    let (ops, guest, trusted) = (token(), token(), token());
    let own = "mint,reserve,join,decode,admin guest-*";
    let named = [own, "admin key:*", "admin store:*", "admin upstream:leaf"];
    let tokens = entry("ops", &[&ops.hash], &["mint,join,decode,admin *"])
        + &entry("guest", &[&guest.hash], &[own])
        + &entry("trusted", &[&trusted.hash], &named);
    let tokens = put(&folder, "tokens.toml", &tokens);
    let keys = ["1", "2"].map(|n| put(&folder, &format!("key-{n}"), &n.repeat(32)));
    let stores = ["a", "b", "c"].map(|n| format!("sqlite://{}", path(&folder, &format!("{n}.db"))));
    let config = format!(
        "[tokens]\nfile = {tokens:?}\n[store]\noffered = true\n[disguise.keys]\n1 = \"file:{}\"\n2 = \"file:{}\"\n\
         [stores]\na = {:?}\nb = {:?}\nc = {:?}\n[upstreams]\nleaf = \"leaf+mysql://absent@127.0.0.1:1/leaf\"\n",
        keys[0], keys[1], stores[0], stores[1], stores[2]
    );
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();
    NamingFixture { _folder: folder, server, ops, guest, trusted }
}

/// Returns the keys with a name among them, in the form of HTTP.
fn called(name: &str, keys: &str) -> String {
    keys.replacen('{', &format!("{{\"name\":\"{name}\","), 1)
}

impl NamingFixture {
    /// Returns the body and the status of an HTTP response.
    fn http(&self, who: &Made, method: &str, at: &str, body: &str) -> (String, String) {
        let (token, url) = (bearer(&who.token), self.server.url(at));
        let mut arguments = vec!["-sS", "--max-time", "60", "-w", "\n%{http_code}", "-X", method];
        arguments.extend(["-H", &token]);
        if !body.is_empty() {
            arguments.extend(["--json", body]);
        }
        arguments.push(&url);
        let response = client("curl", &arguments);
        let (body, status) = response.rsplit_once('\n').unwrap();
        (body.to_owned(), status.to_owned())
    }

    fn define(&self, who: &Made, name: &str, keys: &str) {
        let (body, status) = self.http(who, "POST", "/v1/sources", &called(name, keys));
        assert_eq!(status, "200", "{name}: {body}");
    }

    fn json(&self, who: &Made, at: &str) -> serde_json::Value {
        let (body, status) = self.http(who, "GET", at, "");
        assert_eq!(status, "200", "{at}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.server.http)).unwrap();
        endpoint.connect().await.unwrap()
    }

    async fn grpc_define(&self, who: &Made, name: &str, keys: &str) -> Result<(), Status> {
        let request = DefineSourceRequest { name: name.into(), keys: keys.into() };
        let mut client = MintClient::new(self.channel().await);
        client.define_source(shown(request, &who.token)).await.map(drop)
    }

    /// Starts a program that calls the store itself.
    async fn program(&self, who: &Made) -> Program {
        let (grpc, token) = (Grpc::new(self.channel().await), who.token.clone());
        let mut program = Program { grpc, token, instance: String::new() };
        let request = store::DescribeRequest { version: store::VERSION, ..Default::default() };
        let described: store::DescribeResponse = program.send("Describe", request).await.unwrap();
        program.instance = described.instance;
        program
    }
}

fn shown<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

struct Program {
    grpc: Grpc<Channel>,
    token: String,
    /// Instance that the server described.
    instance: String,
}

impl Program {
    /// Sends a message to a method of the store's service.
    async fn send<Q, A>(&mut self, method: &str, message: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut request = shown(message, &self.token);
        request.metadata_mut().insert(store::INSTANCE, self.instance.parse().unwrap());
        self.grpc.ready().await.unwrap();
        let path = PathAndQuery::try_from(format!("/{}/{method}", store::SERVICE)).unwrap();
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        Ok(self.grpc.unary(request, path, codec).await?.into_inner())
    }

    async fn get(&mut self, name: &str) -> store::Definition {
        let request = store::GetRequest { name: name.into() };
        let response: store::DefinitionResponse = self.send("Get", request).await.unwrap();
        response.definition.unwrap_or_else(|| panic!("{:?}", response.error))
    }

    /// Writes a definition; returns the error of the call, if any.
    async fn writes(&mut self, verb: &str, new: store::NewDefinition) -> Result<(), Status> {
        let error = self.asks(verb, new).await?;
        assert!(error.is_none(), "{error:?}");
        Ok(())
    }

    /// Returns the store's error for a definition.
    async fn refused(&mut self, verb: &str, new: store::NewDefinition) -> String {
        let error = self.asks(verb, new).await.unwrap();
        error.unwrap_or_else(|| panic!("the store did it: {verb}")).message
    }

    async fn asks(
        &mut self,
        verb: &str,
        new: store::NewDefinition,
    ) -> Result<Option<store::Error>, Status> {
        let new = Some(new);
        let response: store::DefinitionResponse = match verb {
            "define" => self.send("Define", store::DefineRequest { new }).await?,
            "alter" => self.send("Alter", store::AlterRequest { new, if_version: None }).await?,
            _ => {
                let now = self.get(&new.as_ref().unwrap().name).await;
                let (if_version, mark) = (now.version, now.mark);
                self.send("Restripe", store::RestripeRequest { new, if_version, mark }).await?
            }
        };
        Ok(response.error)
    }
}

fn written(name: &str, spec: &str, identity: &str) -> store::NewDefinition {
    let (name, spec, identity) = (name.into(), spec.into(), identity.into());
    store::NewDefinition { name, spec, identity, enabled: None }
}

/// Returns the definition as a server would write it.
fn made(name: &str, keys: &str) -> store::NewDefinition {
    let new = NewDefinition::of(name, &SourceSpec::from_json(keys).unwrap()).unwrap();
    written(name, &new.spec, &new.identity)
}

/// Checks that the status is that of a missing permission, and names it.
fn assert_lacks(refused: Result<(), Status>, grant: &str) {
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert!(status.message().contains(&format!("\"{grant}\"")), "{status:?}");
}

#[tokio::test]
async fn source_that_names_other_objects_needs_rights_over_them() {
    let fixture = started("naming");
    let mut guest = fixture.program(&fixture.guest).await;
    let mut trusted = fixture.program(&fixture.trusted).await;
    for (index, (keys, grant)) in NAMING.into_iter().enumerate() {
        let name = |protocol: &str| format!("guest-{protocol}-{index}");
        let (body, status) =
            fixture.http(&fixture.guest, "POST", "/v1/sources", &called(&name("http"), keys));
        assert_eq!(status, "403", "{keys}: {body}");
        assert!(body.contains(&format!("\\\"{grant}\\\"")), "{keys}: {body}");
        assert_lacks(fixture.grpc_define(&fixture.guest, &name("grpc"), keys).await, grant);
        let new = made(&name("program"), keys);
        assert_lacks(guest.writes("define", new.clone()).await, grant);

        fixture.define(&fixture.trusted, &name("http"), keys);
        fixture.grpc_define(&fixture.trusted, &name("grpc"), keys).await.unwrap();
        trusted.writes("define", new).await.unwrap();
        // A permitted caller decided the content: defining it again unchanged names nothing new.
        fixture.define(&fixture.guest, &name("http"), keys);
    }
    // The names in an unreadable text are unknown.
    let future = written("guest-future", r#"{"kind":"segment","disguise":{"keys":[1]}}"#, "{}");
    let refused = guest.writes("define", future).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
    // Definitions without names need no other permission.
    fixture.define(&fixture.guest, "guest-plain", r#"{"kind":"segment"}"#);
    assert_eq!(fixture.server.stop(), 0);
}

#[tokio::test]
async fn altered_source_that_names_more_needs_rights_over_it() {
    let fixture = started("altering");
    let mut guest = fixture.program(&fixture.guest).await;
    fixture.define(&fixture.ops, "guest-several", r#"{"kind":"segment","stores":"a,b"}"#);
    fixture.define(&fixture.ops, "guest-hidden", HIDDEN);

    let patch = |who: &Made, name: &str, changes: &str| {
        fixture.http(who, "PATCH", &format!("/v1/sources/{name}"), changes)
    };
    let more = r#"{"stores":"a,b,c"}"#;
    let (body, status) = patch(&fixture.guest, "guest-several", more);
    assert_eq!(status, "403", "{body}");
    assert!(body.contains("admin store:c") && !body.contains("store:a"), "{body}");
    let mut grpc = MintClient::new(fixture.channel().await);
    let request =
        AlterSourceRequest { name: "guest-several".into(), changes: more.into(), version: None };
    let refused = grpc.alter_source(shown(request, &fixture.guest.token)).await.map(drop);
    assert_lacks(refused, "admin store:c");
    let several = guest.get("guest-several").await;
    let more = several.spec.replace("\"stores\":\"a,b\"", "\"stores\":\"a,b,c\"");
    assert_ne!(more, several.spec);
    let more = written("guest-several", &more, &several.identity);
    assert_lacks(guest.writes("alter", more).await, "admin store:c");

    // The text has the same identity, but would make the source readable with another source's key.
    let hidden = guest.get("guest-hidden").await;
    for (from, to) in [(",\"version\":2", ""), ("\"key\":1", "\"key\":2")] {
        let other = hidden.spec.replace(from, to);
        assert_ne!(other, hidden.spec);
        let grant = if to.is_empty() { "admin key:1" } else { "admin key:2" };
        for verb in ["alter", "restripe"] {
            let new = written("guest-hidden", &other, &hidden.identity);
            assert_lacks(guest.writes(verb, new).await, grant);
        }
    }
    // Only callers who may name the other system may say how far it has come.
    fixture.define(&fixture.ops, "guest-drawn", r#"{"kind":"segment","upstream":"leaf:orders"}"#);
    let ended = made("guest-drawn", r#"{"kind":"segment"}"#);
    assert_lacks(guest.writes("restripe", ended).await, "admin upstream:leaf");
    // The other keys are the source's own.
    for name in ["guest-several", "guest-hidden"] {
        let (body, status) = patch(&fixture.guest, name, r#"{"text":"hex"}"#);
        assert_eq!(status, "200", "{name}: {body}");
    }
    assert_eq!(guest.get("guest-hidden").await.identity, hidden.identity);
    assert_eq!(fixture.server.stop(), 0);
}

/// A disagreeing definition would stop every server at its start.
#[tokio::test]
async fn client_definition_must_agree_with_the_namespace() {
    let fixture = started("agreeing");
    fixture.define(&fixture.ops, "shared", r#"{"unique":"namespace"}"#);
    let mut guest = fixture.program(&fixture.guest).await;
    let shared = guest.get("shared").await;
    let other = shared.spec.replace("\"burst\":\"0ms\"", "\"burst\":\"5ms\"");
    assert_ne!(other, shared.spec);
    let other = written("guest-shared", &other, &shared.identity);
    let mut disagrees = async |verb: &str, new: &store::NewDefinition| {
        let message = guest.refused(verb, new.clone()).await;
        assert!(message.contains("share the namespace's generator"), "{verb}: {message}");
    };
    disagrees("define", &other).await;
    fixture.define(&fixture.ops, "guest-shared", r#"{"unique":"namespace"}"#);
    disagrees("alter", &other).await;
    disagrees("restripe", &other).await;
    // A segment source cannot become one of them either.
    fixture.define(&fixture.ops, "guest-rows", r#"{"kind":"segment"}"#);
    disagrees("restripe", &made("guest-rows", r#"{"unique":"namespace","on_rollback":"fail"}"#))
        .await;
    let agrees = made("guest-rows", r#"{"unique":"namespace"}"#);
    let message = guest.refused("restripe", agrees).await;
    assert!(message.contains("does not change kind"), "{message}");
    guest.writes("alter", written("guest-shared", &shared.spec, &shared.identity)).await.unwrap();
    assert_eq!(fixture.server.stop(), 0);
}

/// Otherwise the program could make a source issue its numbers again.
#[tokio::test]
async fn client_cannot_choose_the_identity_of_a_source() {
    let fixture = started("identity");
    let mut guest = fixture.program(&fixture.guest).await;
    let mut ops = fixture.program(&fixture.ops).await;
    let odd = made("guest-odd", r#"{"kind":"segment","increment":2}"#);
    let all = made("guest-odd", r#"{"kind":"segment"}"#);
    let with_identity = |new: &store::NewDefinition, identity: &str| store::NewDefinition {
        identity: identity.to_owned(),
        ..new.clone()
    };
    for identity in ["", "{}", all.identity.as_str()] {
        for who in [&mut guest, &mut ops] {
            let message = who.refused("define", with_identity(&odd, identity)).await;
            assert!(message.contains("identity of source \"guest-odd\""), "{identity}: {message}");
        }
    }
    guest.writes("define", odd.clone()).await.unwrap();
    let before = guest.get("guest-odd").await;
    for verb in ["define", "alter", "restripe"] {
        for who in [&mut guest, &mut ops] {
            let message = who.refused(verb, with_identity(&all, &odd.identity)).await;
            assert!(message.contains("identity of source \"guest-odd\""), "{verb}: {message}");
        }
    }
    let message = guest.refused("alter", all).await;
    assert!(message.contains("only by a restripe"), "{message}");
    let restriped = made("guest-odd", r#"{"kind":"segment","disguise":{"mode":"full"}}"#);
    let message = ops.refused("restripe", restriped).await;
    assert!(message.contains("does not change disguise"), "{message}");
    assert_eq!(guest.get("guest-odd").await, before);
    assert_eq!(fixture.server.stop(), 0);
}

/// Two stores would have its worker number.
#[tokio::test]
async fn client_cannot_swap_worker_numbers_between_stores() {
    let fixture = started("heirs");
    let mut guest = fixture.program(&fixture.guest).await;
    fixture.define(&fixture.ops, "guest-minted", r#"{"mint":"store","stores":"a=1,b=2"}"#);
    let swapped = made("guest-minted", r#"{"mint":"store","stores":"a=2,b=1"}"#);
    for verb in ["alter", "restripe"] {
        let message = guest.refused(verb, swapped.clone()).await;
        assert!(message.contains("a number that no store has had"), "{verb}: {message}");
    }
    assert_eq!(fixture.server.stop(), 0);
}

/// The size of sources is limited, so each may take only what its keys need.
#[tokio::test]
async fn padded_definition_text_is_rejected() {
    let fixture = started("padded");
    let mut guest = fixture.program(&fixture.guest).await;
    let plain = made("guest-plain", r#"{"kind":"segment"}"#);
    let padded = |blanks: usize| store::NewDefinition {
        spec: plain.spec.clone() + &" ".repeat(blanks),
        ..plain.clone()
    };
    for verb in ["define", "alter", "restripe"] {
        guest.writes(verb, padded(500)).await.unwrap();
        assert_eq!(guest.get("guest-plain").await.spec, plain.spec, "{verb}");
        let message = guest.refused(verb, padded(60_000)).await;
        assert!(message.contains("maximum 8192"), "{verb}: {message}");
    }
    assert_eq!(fixture.server.stop(), 0);
}

/// Even a caller who may name a key cannot read another source with it.
#[tokio::test]
async fn disguise_of_one_source_reveals_no_ids_of_another() {
    let fixture = started("between");
    for (index, keys) in
        [HIDDEN, r#"{"disguise":{"mode":"full"}}"#, r#"{"disguise":{"mode":"ordered"}}"#]
            .into_iter()
            .enumerate()
    {
        let (secret, own) = (format!("secret-{index}"), format!("guest-own-{index}"));
        fixture.define(&fixture.ops, &secret, keys);
        fixture.define(&fixture.trusted, &own, keys);
        let one = fixture.json(&fixture.ops, &format!("/v1/ids/{secret}"))["ids"][0].clone();
        let one = one.as_str().unwrap();
        let truth = fixture.json(&fixture.ops, &format!("/v1/decode/{one}?source={secret}"));
        let decoded = fixture.json(&fixture.trusted, &format!("/v1/decode/{one}?source={own}"));
        // The number is the ID without its disguise.
        assert!(truth["number"].is_string(), "{truth}");
        assert_ne!(truth["number"], decoded["number"], "{keys}: {decoded}");
    }
    assert_eq!(fixture.server.stop(), 0);
}

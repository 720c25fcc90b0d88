//! Tokens: their holders, and their rotation.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use snowmint_core::{Clock as _, Rfc3339, SystemClock};
use snowmint_wire::grpc::MintRequest;
use snowmint_wire::grpc::mint_client::MintClient;
use tonic::transport::Endpoint;
use tonic::{Code, Request};

use super::{Made, bearer, entry, path, piped, put, redis, status, token, until, with_token};
use crate::server::{Folder, Server, client, snowmint};

fn guarded(folder: &Folder, tokens: &str) -> Server {
    let tokens = put(folder, "tokens.toml", tokens);
    let config = put(folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n"));
    let data = path(folder, "data");
    let server = Server::start(&["--config", &config, "--data-dir", &data], &[]);
    server.ready();
    server
}

#[test]
fn a_token_is_made_once_and_hashed_again() {
    let Made { token, hash } = token();
    assert!(token.starts_with("smt_") && token.len() == 68, "{token}");
    let again = piped(&["token", "hash"], &format!("{token}\n"));
    assert_eq!(String::from_utf8(again.stdout).unwrap().trim(), hash);
    let again = piped(&["token", "hash", "--json"], &format!("{token}\n"));
    assert_eq!(String::from_utf8(again.stdout).unwrap(), format!("{{\"hash\":\"{hash}\"}}\n"));
    let password = piped(&["token", "hash"], "correct horse battery staple\n");
    assert_eq!(password.status.code(), Some(2));
    assert!(!String::from_utf8(password.stderr).unwrap().contains("horse"));
}

#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
async fn real_clients_show_their_tokens() {
    let folder = Folder::new("tokens");
    let (one, other) = (token(), token());
    let tokens = entry("orders", &[&one.hash], &["mint default"])
        + &entry("ops", &[&other.hash], &["mint,reserve,decode,admin,metrics *"]);
    let server = guarded(&folder, &tokens);

    let ids = server.url("/v1/ids/default");
    assert_eq!(status(&[&ids]), "401");
    assert_eq!(status(&["-H", &bearer("wrong"), &ids]), "401");
    assert_eq!(status(&["-H", &bearer(&one.token), &ids]), "200");
    assert_eq!(status(&["-H", &bearer(&one.token), &server.url("/v1/ids/numbers")]), "403");
    assert_eq!(status(&[&server.url("/metrics")]), "401");
    assert_eq!(status(&["-H", &bearer(&one.token), &server.url("/metrics")]), "403");
    assert_eq!(status(&["-H", &bearer(&other.token), &server.url("/metrics")]), "200");

    let port = server.resp_port();
    assert!(redis(port, "orders", &one.token, &["INCR", "default"]).trim().parse::<u64>().is_ok());
    assert!(redis(port, "", &one.token, &["-3", "INCR", "default"]).trim().parse::<u64>().is_ok());
    assert!(redis(port, "orders", &one.token, &["INCR", "numbers"]).contains("NOPERM"));
    assert!(redis(port, "ops", &one.token, &["INCR", "default"]).contains("WRONGPASS"));
    assert!(without_token(port).contains("NOAUTH"));

    let endpoint = Endpoint::from_shared(format!("http://{}", server.http)).unwrap();
    let mut grpc = MintClient::new(endpoint.connect().await.unwrap());
    let wish = || MintRequest { source: "default".into(), count: Some(2), key: None };
    let status = grpc.mint(wish()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let mut named = Request::new(wish());
    let value = format!("Bearer {}", one.token).parse().unwrap();
    named.metadata_mut().insert("authorization", value);
    assert_eq!(grpc.mint(named).await.unwrap().into_inner().ids.len(), 2);

    let url = server.http.as_str();
    let mint = ["mint", "numbers", "--server", url];
    let output = with_token(&mint, &other.token, &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(with_token(&mint, &one.token, &[]).status.code(), Some(1), "forbidden");
    for (token, hint) in [("", "set SNOWMINT_TOKEN"), ("smt_wrong", "correct the token")] {
        let output = with_token(&mint, token, &[]);
        assert_eq!(output.status.code(), Some(2), "unauthenticated");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(hint) && printed.contains(url), "{hint}: {printed}");
    }
    let file = put(&folder, "token", &format!("{}\n", other.token));
    let output = with_token(&mint, "", &[("SNOWMINT_TOKEN_FILE", &file)]);
    assert!(output.status.success(), "{output:?}");
    let output = with_token(&["source", "list", "--server", url], &one.token, &[]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().matches("snowflake").count(), 1);
    assert_eq!(server.stop(), 0);
}

fn without_token(port: &str) -> String {
    client("redis-cli", &["-h", "127.0.0.1", "-p", port, "INCR", "default"])
}

#[test]
fn tokens_are_rotated_while_the_server_serves() {
    let folder = Folder::new("rotation");
    let (old, new) = (token(), token());
    let server = guarded(&folder, &entry("a", &[&old.hash], &["mint *"]));
    let ids = server.url("/v1/ids/default");
    let status_of = |made: &Made| status(&["-H", &bearer(&made.token), &ids]);
    assert_eq!((status_of(&old).as_str(), status_of(&new).as_str()), ("200", "401"));

    put(&folder, "tokens.toml", &entry("a", &[&old.hash, &new.hash], &["mint *"]));
    until("both are accepted", || status_of(&new) == "200");
    assert_eq!(status_of(&old), "200");
    server.says("token a changed: before");

    // An error changes nothing, and its message does not quote the text.
    put(&folder, "tokens.toml", &format!("[a]\nhashes = [{:?}]\n", old.token));
    server.signal("-HUP");
    server.says("keeping the current tokens");
    assert!(!server.printed().contains(&old.token));
    assert_eq!((status_of(&old).as_str(), status_of(&new).as_str()), ("200", "200"));
    fs::remove_file(folder.join("tokens.toml")).unwrap();
    server.says("cannot be read");
    assert_eq!(status_of(&old), "200");

    put(&folder, "tokens.toml", &entry("a", &[&new.hash], &["mint *"]));
    until("the old one is refused", || status_of(&old) == "401");
    assert_eq!(status_of(&new), "200");
    assert_eq!(server.stop(), 0);
}

#[test]
fn server_start_rejects_invalid_tokens() {
    let folder = Folder::new("impossible");
    for (tokens, says) in [
        ("[a]\nhashes = [\"hunter2-hunter2-hunter2\"]\n", "invalid hash"),
        ("[a]\nhashes = []\n", "snowmint token"),
        ("[a]\nhash = \"x\"\n", "line"),
        (&entry("a", &[&token().hash], &["steal *"]), "unknown right"),
    ] {
        let tokens = put(&folder, "tokens.toml", tokens);
        let config = put(&folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n"));
        let data = path(&folder, "data");
        for more in [&[][..], &["--check"]] {
            let arguments = [&["--config", &config, "--data-dir", &data], more].concat();
            let Err(output) = Server::try_start(&arguments, &[]) else {
                panic!("it starts: {says}")
            };
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(printed.contains(says) && printed.contains("tokens.toml"), "{printed}");
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}

#[test]
fn doctor_names_the_tokens_that_soon_expire() {
    const HOUR_MS: u64 = 3_600_000;
    let folder = Folder::new("expiring");
    let expires = |name: &str, hours: u64| {
        let at = Rfc3339(SystemClock.unix_ms().saturating_add(hours * HOUR_MS));
        entry(name, &[&token().hash], &["mint *"]) + &format!("expires = \"{at}\"\n")
    };
    let tokens = expires("orders", 10 * 24 + 1)
        + &expires("bills", 90 * 24)
        + &entry("shop", &[&token().hash], &["mint *"]);
    let tokens = put(&folder, "tokens.toml", &tokens);
    let config = put(&folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n"));
    let data = path(&folder, "data");
    let doctor = ["doctor", "--config", config.as_str(), "--data-dir", &data];
    let printed = String::from_utf8(snowmint().args(doctor).output().unwrap().stdout).unwrap();
    let named: Vec<_> = printed
        .lines()
        .filter(|line| line.contains("token orders ") || line.contains("expires at"))
        .collect();
    assert_eq!(named.len(), 1, "{printed}");
    assert!(named[0].starts_with("WARNING access    token orders expires at "), "{printed}");
    assert!(named[0].contains(", in 10 days; "), "{printed}");
}

/// The configuration names all other trusted files. For a link, as Kubernetes mounts it, the target
/// counts.
#[test]
fn configuration_writable_by_other_users_is_rejected() {
    let folder = Folder::new("own-rights");
    let password = "hunter2hunter2";
    let text = format!("[store]\nurl = \"postgres://user:{password}@127.0.0.1:1/ids\"\n");
    let (secret, plain) =
        (put(&folder, "secret.toml", &text), put(&folder, "plain.toml", "[log]\n"));
    let link = path(&folder, "link.toml");
    std::os::unix::fs::symlink(&plain, &link).unwrap();
    let data = path(&folder, "data");
    let run = |command: &[&str], config: &str| {
        let with = ["--config", config, "--data-dir", &data];
        let output = snowmint().args(command).args(with).output().unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!printed.contains(password), "{printed}");
        (output.status.code(), printed)
    };
    let check = |config: &str| run(&["serve", "--check"], config);
    let right = || (Some(0), "the configuration is right\n".to_owned());
    for config in [&plain, &secret] {
        for mode in [0o666, 0o602] {
            fs::set_permissions(config, fs::Permissions::from_mode(mode)).unwrap();
            for command in [&["serve", "--check"][..], &["doctor"], &["mint"]] {
                let (code, printed) = run(command, config);
                assert!(code == Some(2) && printed.contains("chmod o-w"), "{command:?}: {printed}");
                assert!(printed.contains(config), "{command:?}: {printed}");
            }
        }
        fs::set_permissions(config, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!((check(&plain), check(&link)), (right(), right()));
    let hint =
        "the configuration, with a secret in store.url, can be read by every user of this machine";
    let (code, printed) = check(&secret);
    assert!(
        code == Some(0) && printed.contains(hint) && printed.contains("chmod o-r"),
        "{printed}"
    );
    let (_, printed) = run(&["doctor"], &secret);
    assert!(printed.contains(&format!("WARNING access    the file of {hint}")), "{printed}");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(check(&secret), right());
}

/// Credentials for servers need the same trust as the server's own tokens.
#[test]
fn token_file_writable_by_other_users_is_never_sent() {
    let folder = Folder::new("shown-rights");
    let file = put(&folder, "token", &token().token);
    let (url, data) = ("snowmint://127.0.0.1:1", path(&folder, "data"));
    let config =
        put(&folder, "config.toml", &format!("[store]\nurl = {url:?}\ntoken = \"file:{file}\"\n"));
    let check = ["serve", "--check", "--data-dir", &data];
    let by_key = [&check[..], &["--config", &config]].concat();
    let by_variable = [&check[..], &["--store", url]].concat();
    let asking = ["mint", "orders", "--server", "127.0.0.1:1"];
    fs::set_permissions(&file, fs::Permissions::from_mode(0o606)).unwrap();
    for (command, variable) in
        [(&by_key[..], ""), (&by_variable[..], file.as_str()), (&asking[..], file.as_str())]
    {
        let output = with_token(command, "", &[("SNOWMINT_TOKEN_FILE", variable)]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {printed}");
        assert!(printed.contains("chmod o-w") && printed.contains(&file), "{command:?}: {printed}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    for (command, variable, name) in
        [(by_key, "", "store.token"), (by_variable, file.as_str(), "SNOWMINT_TOKEN_FILE")]
    {
        let output = with_token(&command, "", &[("SNOWMINT_TOKEN_FILE", variable)]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {printed}");
        assert!(
            printed.contains(&format!("the file of {name} can be read by every user")),
            "{printed}"
        );
    }
}

/// Files that other users can write are not trusted, and files that they can read are not secret.
#[test]
fn files_writable_by_other_users_are_rejected() {
    let folder = Folder::new("rights");
    let set_mode =
        |path: &str, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let tokens = put(&folder, "tokens.toml", &entry("a", &[&token().hash], &["mint *"]));
    let (peers, key) =
        (put(&folder, "peers", &token().token), put(&folder, "key", &"0123456789abcdef".repeat(2)));
    let config = put(
        &folder,
        "config.toml",
        &format!(
            "[tokens]\nfile = {tokens:?}\n[peers]\ntoken = \"file:{peers}\"\n[disguise.keys]\n1 = \"file:{key}\"\n"
        ),
    );
    let data = path(&folder, "data");
    let arguments = ["--config", config.as_str(), "--data-dir", &data];
    for (file, name) in
        [(&tokens, "tokens.file"), (&peers, "peers.token"), (&key, "disguise.keys.1")]
    {
        set_mode(file, 0o606);
        for more in [&[][..], &["--check"]] {
            let Err(output) = Server::try_start(&[&arguments, more].concat(), &[]) else {
                panic!("{name} is taken")
            };
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(printed.contains(name) && printed.contains("chmod o-w"), "{name}: {printed}");
        }
        set_mode(file, 0o644);
    }
    let server = Server::start(&arguments, &[]);
    server.says("the file of peers.token can be read by every user");
    server.says("the file of disguise.keys.1 can be read by every user");
    assert!(
        !server.printed().contains("the file of tokens.file"),
        "it has hashes: {}",
        server.printed()
    );
    // The same holds at run time.
    set_mode(&tokens, 0o666);
    server.says("run chmod o-w; keeping the current tokens");
    assert_eq!(server.stop(), 0);
    set_mode(&tokens, 0o664);
    let output = snowmint().args(["doctor"]).args(arguments).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("WARNING access    the file of tokens.file can be written by its group"),
        "{printed}"
    );
}

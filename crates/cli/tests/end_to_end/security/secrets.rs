//! Secrets show nowhere: whatever a server says in any way is searched for them.

use std::fs;
use std::process::Stdio;

use snowmint_testkit::children;

use super::certificates::Authority;
use super::{bearer, entry, path, put, redis, token, with_token};
use crate::server::{Folder, Server, curl, snowmint};

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn no_secret_is_in_what_a_server_says() {
    let folder = Folder::new("secrets");
    let (ops, wrong, peer, tinyid) = (token(), token(), token(), token());
    let tokens = put(&folder, "tokens.toml", &entry("ops", &[&ops.hash], &["mint,decode,admin *"]));
    let peers = put(&folder, "peers.token", &peer.token);
    let config = format!(
        "[tokens]\nfile = {tokens:?}\n[peers]\ntoken = \"file:{peers}\"\n[log]\nfilter = \"trace\"\n\
         [compat.tinyid]\nenabled = true\n[compat.tinyid.tokens]\n{} = \"*\"\n",
        tinyid.token
    );
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();

    let mut said = Vec::new();
    for shown in [&ops.token, &wrong.token, &peer.token, &tinyid.token] {
        for at in [
            "/v1/ids/default",
            "/v1/ids/nobody",
            "/v1/sources",
            "/v1/workers",
            "/metrics",
            "/nowhere",
        ] {
            for version in ["--http1.1", "--http2-prior-knowledge"] {
                let url = server.url(at);
                said.push(curl(&["-i", version, "-H", &bearer(shown), &url]));
            }
        }
        let url = server.url(&format!("/tinyid/id/nextId?bizType=default&token={shown}"));
        said.push(curl(&["-i", &url]));
        let port = server.resp_port();
        for words in
            [&["INFO"][..], &["CONFIG", "GET", "*"], &["CLIENT", "LIST"], &["COMMAND"], &["MINT"]]
        {
            said.push(redis(port, "ops", shown, words));
        }
        // As people mistype it.
        said.push(redis(port, "", "", &["AUHT", "ops", shown]));
        let output = with_token(&["mint", "nobody", "--server", &server.http], shown, &[]);
        said.push(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    put(&folder, "tokens.toml", "[ops]\nhashes = []\n");
    server.says("the tokens of before stay");
    said.push(server.said());
    for file in ["cmdline", "environ"] {
        let bytes = fs::read(format!("/proc/{}/{file}", server.pid())).unwrap();
        said.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    assert_eq!(server.stop(), 0);
    for made in [&ops, &wrong, &peer, &tinyid] {
        let hash = made.hash.strip_prefix("sha256:").unwrap();
        for said in &said {
            assert!(!said.contains(&made.token), "a token is in {said}");
            assert!(!said.contains(&hash[..16]), "a hash is in {said}");
        }
    }
}

#[test]
fn the_password_of_a_store_is_not_said() {
    let folder = Folder::new("store-password");
    let password = "hunter2hunter2";
    let schemes = ["postgres", "mysql", "redis", "etcd", "zookeeper"];
    // Somebody who is not there, and URLs that are none.
    let ends = ["@127.0.0.1:1/x", "@127.0.0.1:notaport/x", "@/%zz?nothing=1"];
    let tries = schemes.iter().flat_map(|scheme| ends.map(|end| (scheme, end)));
    let tries = tries.flat_map(|(scheme, end)| {
        let serve = &["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"][..];
        [serve, &["doctor"]].map(|command| (scheme, end, command))
    });
    // Each waits some seconds for somebody who is not there: all at once.
    let running: Vec<_> = tries
        .enumerate()
        .map(|(number, (scheme, end, command))| {
            let url = format!("{scheme}://user:{password}{end}");
            let mut command_line = snowmint();
            command_line
                .args(command)
                .args(["--data-dir", &path(&folder, &format!("data-{number}"))]);
            command_line.env("SNOWMINT_STORE__URL", &url).env("SNOWMINT_LOG__FILTER", "debug");
            command_line.stdout(Stdio::piped()).stderr(Stdio::piped());
            (url, command, children::spawn(command_line).unwrap())
        })
        .collect();
    for (url, command, child) in running {
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{url} {command:?}");
        for said in [output.stdout, output.stderr] {
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(!said.contains(password), "{url} {command:?}: {said}");
        }
    }
}

#[test]
fn a_configuration_with_a_mistake_does_not_say_its_secrets() {
    let folder = Folder::new("mistakes");
    let secret = token().token;
    for text in [
        format!("[compat.tinyid.tokens]\n{secret} = 5\n"),
        format!("[peers]\ntoken = {secret:?}\n"),
    ] {
        let config = put(&folder, "config.toml", &text);
        let output = snowmint().args(["serve", "--check", "--config", &config]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains(&secret), "{said}");
    }
    let name = format!("SNOWMINT_COMPAT__TINYID__TOKENS__{}__X", secret.to_uppercase());
    let output = snowmint().args(["serve", "--check"]).env(name, "x").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap().to_lowercase();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains(&secret), "{said}");
    let folder = Authority::new().put_into(&folder, "ca.pem");
    let (cert, key) =
        (format!("[tls]\ncert = {:?}\n", folder[0]), format!("key = {:?}\n", folder[2]));
    let dir = Folder::new("mistakes-tls");
    let config = put(&dir, "config.toml", &(cert + &key));
    let output = snowmint().args(["serve", "--check", "--config", &config]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a certificate in the place of a key");
}

//! Secrets appear nowhere: the test searches everything that a server prints, logs or sends.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use snowmint_testkit::children;

use super::certificates::Authority;
use super::{bearer, entry, path, put, redis, token, with_token};
use crate::server::{Folder, Server, TIMEOUT, curl, snowmint};

#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn server_output_contains_no_secret() {
    let folder = Folder::new("secrets");
    let (ops, wrong, peer, tinyid) = (token(), token(), token(), token());
    let tokens =
        put(&folder, "tokens.toml", &entry("ops", &[&ops.hash], &["mint,decode,admin,metrics *"]));
    let peers = put(&folder, "peers.token", &peer.token);
    let config = format!(
        "[tokens]\nfile = {tokens:?}\n[peers]\ntoken = \"file:{peers}\"\n[log]\nfilter = \"trace\"\n\
         [compat.tinyid]\nenabled = true\n[compat.tinyid.tokens]\n{} = \"*\"\n",
        tinyid.token
    );
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();

    let mut printed = Vec::new();
    for shown in [&ops.token, &wrong.token, &peer.token, &tinyid.token] {
        for at in [
            "/v1/ids/default",
            "/v1/ids/absent",
            "/v1/sources",
            "/v1/workers",
            "/metrics",
            "/nowhere",
        ] {
            for version in ["--http1.1", "--http2-prior-knowledge"] {
                let url = server.url(at);
                printed.push(curl(&["-i", version, "-H", &bearer(shown), &url]));
            }
        }
        let url = server.url(&format!("/tinyid/id/nextId?bizType=default&token={shown}"));
        printed.push(curl(&["-i", &url]));
        let port = server.resp_port();
        for words in
            [&["INFO"][..], &["CONFIG", "GET", "*"], &["CLIENT", "LIST"], &["COMMAND"], &["MINT"]]
        {
            printed.push(redis(port, "ops", shown, words));
        }
        // A mistyped command.
        printed.push(redis(port, "", "", &["AUHT", "ops", shown]));
        let output = with_token(&["mint", "absent", "--server", &server.http], shown, &[]);
        printed.push(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    put(&folder, "tokens.toml", "[ops]\nhashes = []\n");
    server.says("keeping the current tokens");
    printed.push(server.printed());
    for file in ["cmdline", "environ"] {
        let bytes = fs::read(format!("/proc/{}/{file}", server.pid())).unwrap();
        printed.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    assert_eq!(server.stop(), 0);
    for made in [&ops, &wrong, &peer, &tinyid] {
        let hash = made.hash.strip_prefix("sha256:").unwrap();
        for text in &printed {
            assert!(!text.contains(&made.token), "a token is in {text}");
            assert!(!text.contains(&hash[..16]), "a hash is in {text}");
        }
    }
}

#[test]
fn store_password_is_absent_from_output() {
    let folder = Folder::new("store-password");
    let password = "hunter2hunter2";
    let schemes = ["postgres", "mysql", "redis", "etcd", "zookeeper"];
    // The URLs are those of an absent server, and invalid ones.
    let ends = ["@127.0.0.1:1/x", "@127.0.0.1:notaport/x", "@/%zz?nothing=1"];
    let tries = schemes.iter().flat_map(|scheme| ends.map(|end| (scheme, end)));
    let tries = tries.flat_map(|(scheme, end)| {
        let serve = &["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"][..];
        [serve, &["doctor"]].map(|command| (scheme, end, command))
    });
    // Each command waits some seconds for the absent server, so all run at once.
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
        for bytes in [output.stdout, output.stderr] {
            let printed = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!printed.contains(password), "{url} {command:?}: {printed}");
        }
    }
}

#[test]
fn configuration_error_contains_no_secret() {
    let folder = Folder::new("mistakes");
    let secret = token().token;
    for text in [
        format!("[compat.tinyid.tokens]\n{secret} = 5\n"),
        format!("[peers]\ntoken = {secret:?}\n"),
    ] {
        let config = put(&folder, "config.toml", &text);
        let output = snowmint().args(["serve", "--check", "--config", &config]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(!printed.contains(&secret), "{printed}");
    }
    let name = format!("SNOWMINT_COMPAT__TINYID__TOKENS__{}__X", secret.to_uppercase());
    let output = snowmint().args(["serve", "--check"]).env(name, "x").output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap().to_lowercase();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(!printed.contains(&secret), "{printed}");
    let folder = Authority::new().put_into(&folder, "ca.pem");
    let (cert, key) =
        (format!("[tls]\ncert = {:?}\n", folder[0]), format!("key = {:?}\n", folder[2]));
    let dir = Folder::new("mistakes-tls");
    let config = put(&dir, "config.toml", &(cert + &key));
    let output = snowmint().args(["serve", "--check", "--config", &config]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a certificate in the place of a key");
}

/// Secrets in a wrong form, in a file, in the environment and on the command line.
#[test]
fn malformed_secret_is_absent_from_errors() {
    let folder = Folder::new("wrong-forms");
    let secret = "Hunter2hunter2hunter2";
    let url = format!("postgres://user:{secret}@127.0.0.1:1/ids");
    let mut files = Vec::new();
    for section in ["store", "stores", "upstreams", "disguise", "traces", "peers", "compat"] {
        files.push(format!("{section} = {url:?}\n"));
    }
    for (section, key) in [
        ("store", "url"),
        ("store", "token"),
        ("stores", "a"),
        ("upstreams", "a"),
        ("disguise", "keys"),
        ("disguise.keys", "1"),
        ("traces", "endpoint"),
        ("peers", "token"),
        ("compat.tinyid", "tokens"),
    ] {
        let other = format!("http://user:{secret}@127.0.0.1:1");
        for value in [
            secret,
            &url,
            &other,
            &format!("{secret}@host"),
            &format!("env:{secret}"),
            &format!("file:{secret}"),
        ] {
            files.push(format!("[{section}]\n{key} = {value:?}\n"));
        }
        files.push(format!("[{section}]\n{key} = [{secret:?}]\n"));
        files.push(format!("[{section}]\n{key} = {{ {secret} = {secret:?} }}\n"));
        // The files have name and value swapped, an invalid line, and a key of another section.
        files.push(format!("[{section}]\n{url:?} = {key:?}\n"));
        files.push(format!("[{section}]\n{key} = {url}\n"));
        files.push(format!("[{section}]\n{key} = {url:?}\n{key} = {url:?}\n"));
        files.push(format!("[{section}]\n{key}x = {url:?}\n"));
    }
    files.push(format!("[disguise.keys]\n{secret} = \"1\"\n"));
    files.push(format!("[sources.a]\nupstream = {url:?}\n"));
    files.push(format!("[sources.a]\nkind = \"segment\"\nstores = {url:?}\n"));
    let unsaid = |text: &str, output: std::process::Output| {
        let bytes = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!printed.to_lowercase().contains(&secret.to_lowercase()), "{text}: {printed}");
    };
    let data = path(&folder, "data");
    for text in &files {
        let config = put(&folder, "config.toml", text);
        for command in [&["serve", "--check"][..], &["doctor"]] {
            let output = snowmint()
                .args(command)
                .args(["--config", &config, "--data-dir", &data])
                .output()
                .unwrap();
            unsaid(text, output);
        }
    }
    for (name, value) in [
        ("SNOWMINT_STORE__URL", secret.to_owned()),
        ("SNOWMINT_DISGUISE__KEYS", secret.to_owned()),
        (&format!("SNOWMINT_DISGUISE__KEYS__{secret}"), "1".to_owned()),
        ("SNOWMINT_STORES__A", format!("{secret}://x")),
        ("SNOWMINT_TRACES__ENDPOINT", format!("http://u:{secret}@h")),
    ] {
        unsaid(
            name,
            snowmint()
                .args(["serve", "--check", "--data-dir", &data])
                .env(name, value)
                .output()
                .unwrap(),
        );
    }
    let token = format!("redis://user:{secret}@127.0.0.1:1");
    let (made, long) = (format!("smt_{secret}"), secret.repeat(2));
    for words in [
        &["bench", &token][..],
        &["bench", "--rate", &token],
        &["serve", &url],
        &["serve", "--check", "--store", &format!("postgre://user:{secret}@h")],
        &["serve", "--check", &format!("--stores={url}")],
        &["mint", "--server", &format!("http://user:{secret}@127.0.0.1:1")],
        &["mint", "--server", &url],
        &["source", "list", "--server", &format!("snowmint://{secret}@127.0.0.1:1")],
        &["source", "restripe", "a", "--increment", "2", "--stripe", &url],
        &["source", "restripe", "a", "--increment", "2", "--stripe", &format!("1={url}")],
        &["import", "leaf", "--from", &format!("postgre://user:{secret}@h")],
        &["import", "leaf", "--from", &url, &url],
        &["worker", "list", &url],
        &["mint", &format!("--{url}")],
        // The commands read a token from standard input, or accept none.
        &["token", secret],
        &["token", "new", secret],
        &["token", "names", "-x", secret],
        &["token", "hash", secret],
        &["token", "hash", "--json", secret],
        &["token", "hash", &format!("--json={secret}")],
        &["token", "hash", &format!("--{secret}")],
        &["help", "token", secret],
        &[made.as_str()],
        &["mint", "orders", &made],
        &["mint", "orders", &long],
        &["worker", "list", &long],
        &["bench", "--rate", &made],
        &["serve", &format!("--{made}")],
    ] {
        let output = snowmint().args(words).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        unsaid(&words.join(" "), output);
    }
    // The message gives a remedy instead; text that cannot be a secret is quoted.
    for (words, expected) in [
        (&["token", "hash", secret][..], "snowmint token hash < FILE"),
        (&["mint", "a", "b"], "'b'"),
    ] {
        let output = snowmint().args(words).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && message.contains(expected),
            "{words:?}: {message}"
        );
    }
}

/// The access log omits text in the place of a token, and shows a source only where a command
/// accepts one.
#[test]
fn no_argument_that_may_be_a_token_is_in_the_access_log() {
    let folder = Folder::new("access-log");
    let (secret, made) = ("0123456789abcdef".repeat(3), token());
    let tokens = put(&folder, "tokens.toml", &entry("app", &[&made.hash], &["mint *"]));
    let config = format!("[tokens]\nfile = {tokens:?}\n[log]\naccess = true\n");
    let config = put(&folder, "config.toml", &config);
    let server = Server::start(&["--config", &config, "--data-dir", &path(&folder, "data")], &[]);
    server.ready();
    let mut stream = TcpStream::connect(&server.resp).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |words: &[&str]| {
        stream.write_all(format!("{}\r\n", words.join(" ")).as_bytes()).unwrap();
        let mut line = String::new();
        // Errors, texts and numbers take one line each, and no other replies come here.
        replies.read_line(&mut line).unwrap();
        line
    };
    let wrong = |ask: &mut dyn FnMut(&[&str]) -> String| {
        for words in [
            &["AUTH", &secret][..],
            &["AUTH", "app", &secret],
            &["AUTH", &secret, "app"],
            &["HELLO", "3", "AUTH", "app", &secret],
            &["ATUH", &secret],
            &["PASS", &secret],
            &["SELECT", &secret],
            &["CLUSTER", &secret],
            &["CLIENT", &secret],
            &["CONFIG", &secret],
            &["MINT", "default", &secret],
            &["MINT", &secret],
            &["INCR", &secret],
            &["GET", &secret],
            &["INCRBY", &secret, "5"],
            &[&secret],
        ] {
            let reply = ask(words);
            assert!(reply.starts_with('-'), "{words:?}: {reply}");
        }
    };
    wrong(&mut ask);
    assert_eq!(ask(&["AUTH", "app", &made.token]), "+OK\r\n");
    wrong(&mut ask);
    assert!(ask(&["INCR", "default"]).starts_with(':'));
    // The text stands where other commands have a source, but is not one, even if that source
    // exists.
    for words in [
        &["AUTH", "default", &made.token][..],
        &["AUTH", "default", &secret],
        &["HELLO", "default"],
        &["SELECT", "default"],
        &["ATUH", "default"],
    ] {
        ask(words);
    }
    assert!(ask(&["MINT", "default", "0"]).starts_with('-'));
    server.says("request=MINT source=\"default\" outcome=\"bad_request\"");
    assert!(ask(&["INCRBY", "numbers", "1"]).starts_with(':'));
    server.says("request=INCRBY source=\"numbers\"");
    let printed = server.printed();
    assert_eq!(server.stop(), 0);
    for line in [
        "request=AUTH outcome=",
        "request=(unknown) outcome=",
        "request=INCR source=\"default\" count=1 outcome=\"ok\"",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    for line in printed.lines().filter(|line| line.contains("request=") && line.contains("source="))
    {
        let takes_source = ["request=INCR ", "request=INCRBY ", "request=MINT "];
        assert!(takes_source.iter().any(|request| line.contains(request)), "{line}");
    }
    assert!(!printed.contains(&secret) && !printed.contains(&made.token), "{printed}");
}

//! Addresses that other machines reach.

use super::certificates::Authority;
use super::{entry, path, put, token};
use crate::server::{Folder, Server, snowmint};

#[test]
fn public_address_requires_tokens_and_tls() {
    let folder = Folder::new("public");
    let data = path(&folder, "data");
    let refused = |config: &str, flag: (&str, &str), says: &str| {
        let config = put(&folder, "config.toml", config);
        for more in [&[][..], &["--check"]] {
            let arguments =
                [&["--config", &config, "--data-dir", &data, flag.0, flag.1][..], more].concat();
            let mut command = snowmint();
            command.arg("serve").args(&arguments);
            let output = command.output().unwrap();
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{printed}");
            assert!(printed.contains(says) && printed.contains("--insecure"), "{printed}");
        }
    };
    refused("", ("--http", "0.0.0.0:0"), "server.http = 0.0.0.0:0");
    refused("[server]\nhttp = \"127.0.0.1:0\"\n", ("--resp", "[::]:0"), "server.resp = [::]:0");
    let tokens = put(&folder, "tokens.toml", &entry("a", &[&token().hash], &["mint *"]));
    let tokens = format!("[tokens]\nfile = {tokens:?}\n");
    refused(&tokens, ("--http", "0.0.0.0:0"), "TLS (tls.cert, tls.key)");
    assert!(!folder.join("data").exists(), "nothing was begun");

    let [cert, key, _] = Authority::new().put_into(&folder, "ca.pem");
    let tls = format!("[tls]\ncert = {cert:?}\nkey = {key:?}\n");
    refused(&tls, ("--http", "0.0.0.0:0"), "tokens.file");
    // An allowed or protected address works. Only this test calls the server, on loopback.
    for (config, flag) in [("", &["--insecure"][..]), (&(tokens + &tls), &[])] {
        let config = put(&folder, "config.toml", config);
        let arguments = [&["--config", &config, "--data-dir", &data, "--check"], flag].concat();
        let mut command = snowmint();
        command.args(["serve", "--http", "0.0.0.0:0"]).args(&arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let mut doctor = snowmint();
    doctor.args(["doctor", "--data-dir", &data]).env("SNOWMINT_SERVER__HTTP", "0.0.0.0:0");
    let output = doctor.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("ERROR   access    server.http = 0.0.0.0:0"), "{printed}");
    let server = Server::start(&["--data-dir", &data, "--insecure"], &[]);
    assert_eq!(server.stop(), 0);
}

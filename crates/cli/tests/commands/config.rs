//! `config` and `doctor` as operators run them.

use crate::common::{Ran, json, run, snowmint, until};
use crate::server::{Server, serve};

#[test]
fn the_printed_file_is_a_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snowmint.toml");
    std::fs::write(&file, run(&["config"]).ok()).unwrap();
    let ran = run(&["doctor", "--config", file.to_str().unwrap(), "--json"]);
    // The default ports may be in use on this machine; no check may fail.
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.lines().map(json).any(|finding| finding["subject"] == "layout"));
}

#[test]
fn printed_schema_is_json_of_the_same_keys() {
    let schema = json(&run(&["config", "schema"]).ok());
    let file: toml::Table = run(&["config"]).ok().parse().unwrap();
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, file.keys().collect::<Vec<_>>());
}

#[test]
fn a_wrong_key_is_named_with_its_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snowmint.toml");
    std::fs::write(&file, "[server]\nhtpp = \"x\"\n").unwrap();
    let ran = run(&["doctor", "--config", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    for part in ["snowmint.toml, line 2", "server.htpp", "server.http?"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert_eq!(run(&["doctor", "--config", "/nonexistent.toml"]).code, 2);
    let ran: Ran =
        snowmint(&["doctor"]).env("SNOWMINT_SERVER__DATADIR", "x").output().unwrap().into();
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("SNOWMINT_SERVER__DATADIR"), "{}", ran.err);
}

#[test]
fn negative_number_is_rejected_under_its_key() {
    let ran = run(&["source", "define", "invoices", "--kind", "segment", "--step.size", "-5"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("step.size = \"-5\" is not possible"), "{}", ran.err);
}

#[test]
fn failed_doctor_check_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran: Ran =
        snowmint(&["doctor"]).env("SNOWMINT_SERVER__DATA_DIR", &file).output().unwrap().into();
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("is not a directory"), "{}", ran.out);
    let ran: Ran = snowmint(&["doctor"])
        .env("SNOWMINT_SOURCES__OLD__LAYOUT", "baidu,epoch=2018-01-01T00:00:00Z")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("the layout of old"), "{}", ran.out);
}

/// The first start creates the data directory, and no other.
#[test]
fn a_doctor_sees_that_a_store_cannot_be_made() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let look = |url: &str| run(&["doctor", "--data-dir", data.to_str().unwrap(), "--store", url]);
    let missing = directory.path().join("missing");
    let ran = look(&format!("sqlite:{}/x.db", missing.display()));
    assert_eq!(ran.code, 1, "{}", ran.out);
    let hint = format!("directory {} does not exist", missing.display());
    assert!(ran.out.contains(&hint), "{hint} is not in {}", ran.out);
    std::fs::write(&missing, "").unwrap();
    let ran = look(&format!("sqlite:{}/x.db", missing.display()));
    assert!(ran.code == 1 && ran.out.contains("is not a directory"), "{}", ran.out);
    for good in [data.join("x.db"), directory.path().join("x.db")] {
        let ran = look(&format!("sqlite:{}", good.display()));
        assert_eq!(ran.code, 0, "{}", ran.out);
        assert!(ran.out.contains("yet; the first start makes it"), "{}", ran.out);
    }
}

#[test]
fn a_data_directory_without_a_name_is_refused() {
    for command in ["doctor", "serve"] {
        let ran = run(&[command, "--data-dir", ""]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("--data-dir"), "{}", ran.err);
    }
}

#[test]
fn a_doctor_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ids.db");
    for is_there in [false, true] {
        if is_there {
            std::fs::write(&file, "").unwrap();
        }
        let ran: Ran = snowmint(&["doctor", "--data-dir", directory.path().to_str().unwrap()])
            .env("SNOWMINT_STORE__URL", format!("sqlite:{}", file.display()))
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code, 0, "{}", ran.out);
        assert!(ran.out.contains("yet; the first start makes it"), "{}", ran.out);
        assert_eq!(std::fs::metadata(&file).map(|file| file.len()).ok(), is_there.then_some(0));
    }
}

/// Findings read like errors: one sentence, in lower case, without a full stop.
#[test]
fn doctor_messages_have_the_form_of_errors() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let damaged = directory.path().join("damaged.db");
    std::fs::write(&damaged, "no database").unwrap();
    let stores = [data.join("x.db"), damaged, directory.path().join("missing/x.db")];
    let urls = stores.map(|file| format!("sqlite:{}", file.display()));
    for url in urls.iter().map(String::as_str).chain(["postgres://127.0.0.1:1/ids"]) {
        let ran = run(&["doctor", "--data-dir", data.to_str().unwrap(), "--store", url, "--json"]);
        for finding in ran.out.lines().map(json) {
            let message = finding["message"].as_str().unwrap();
            let is_upper = message.starts_with(|first: char| first.is_ascii_uppercase());
            assert!(!is_upper && !message.ends_with('.'), "{message}");
            assert!(!message.contains(". ") && !message.contains(" it cannot"), "{message}");
        }
        assert!(ran.out.contains(url), "an operator gets the address: {}", ran.out);
    }
}

/// Starts a time server on loopback that is an hour ahead; it responds until the test ends.
fn time_server_ahead() -> String {
    /// Seconds from 1900 to 1970: RFC 5905.
    const NTP_TO_UNIX_SECS: i64 = 2_208_988_800;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut request = [0; 48];
        while let Ok((_, from)) = socket.recv_from(&mut request) {
            let secs = jiff::Timestamp::now().as_second() + NTP_TO_UNIX_SECS + 3600;
            let secs = u32::try_from(secs).unwrap().to_be_bytes();
            let mut response = [0; 48];
            // Version 4, mode server, stratum 1.
            response[..2].copy_from_slice(&[0b0010_0100, 1]);
            response[12..16].copy_from_slice(b"LOCL");
            response[24..32].copy_from_slice(&request[40..48]);
            for at in [16, 32, 40] {
                response[at..at + 4].copy_from_slice(&secs);
            }
            socket.send_to(&response, from).unwrap();
        }
    });
    address
}

#[test]
fn time_server_reveals_a_wrong_clock() {
    let directory = tempfile::tempdir().unwrap();
    let ntp = time_server_ahead();
    let expected_text = format!("from that of the NTP server at {ntp}");
    for (limit, code) in [("10s", 1), ("2h", 0)] {
        // A busy machine may respond later than the doctor waits.
        until("the doctor hears the time server", || {
            let ran: Ran = snowmint(&["doctor", "--data-dir", directory.path().to_str().unwrap()])
                .env("SNOWMINT_CLOCK__NTP", &ntp)
                .env("SNOWMINT_CLOCK__SKEW_MAX", limit)
                .output()
                .unwrap()
                .into();
            let heard = ran.out.contains(&expected_text);
            assert!(!heard || ran.code == code, "{}", ran.out);
            heard
        });
    }

    let mut wrong = serve(directory.path(), &[]);
    let server = Server::start({
        wrong.env("SNOWMINT_CLOCK__NTP", &ntp);
        wrong
    });
    let minted = server.mint(&[]);
    assert_ne!(minted.code, 0);
    assert!(minted.err.contains("NTP server"), "{}", minted.err);
    drop(server);

    // A silent time server delays nothing.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut command = serve(directory.path(), &[]);
    command.env("SNOWMINT_CLOCK__NTP", silent.local_addr().unwrap().to_string());
    assert_eq!(Server::start(command).mint(&[]).code, 0);
    let refused: Ran =
        snowmint(&["doctor"]).env("SNOWMINT_CLOCK__NTP", "http://x").output().unwrap().into();
    assert_eq!(refused.code, 2, "{}", refused.err);
}

/// The doctor checks the journal as `serve` would, and the store with it.
#[test]
fn doctor_reports_a_rejected_journal_with_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    let (home, clone_dir) = (place.path().join("home"), place.path().join("elsewhere"));
    let doctor = |dir: &std::path::Path| run(&["doctor", "--data-dir", dir.to_str().unwrap()]);
    let line_of = |ran: &Ran| {
        let line = ran.out.lines().find(|line| line.contains(" journal "));
        line.unwrap_or_else(|| panic!("{}", ran.out)).to_owned()
    };
    let server = Server::start(serve(&home, &[]));
    assert_eq!(server.mint(&[]).code, 0);
    let in_use = doctor(&home);
    assert!(line_of(&in_use).starts_with("ok") && line_of(&in_use).contains("a running server"));
    drop(server);
    let left = doctor(&home);
    assert_eq!(left.code, 0, "{}", left.out);
    assert!(line_of(&left).contains("unchanged since its last write"), "{}", left.out);

    let copied =
        std::process::Command::new("cp").arg("-a").arg(&home).arg(&clone_dir).status().unwrap();
    assert!(copied.success());
    let copy = doctor(&clone_dir);
    assert_eq!(copy.code, 1, "{}", copy.out);
    for part in ["ERROR", "was written in", "fast-forward"] {
        assert!(line_of(&copy).contains(part), "{part}: {}", copy.out);
    }

    let store = |file: &str| home.join(file);
    for file in ["snowmint.db", "snowmint.db-wal", "snowmint.db-shm"] {
        let _ = std::fs::remove_file(store(file));
    }
    let gone = doctor(&home);
    assert_eq!(gone.code, 1, "{}", gone.out);
    assert!(line_of(&gone).contains("no store exists"), "{}", gone.out);
    // An operator creates another store in its place.
    let other = format!("sqlite:{}", store("snowmint.db").display());
    assert_eq!(run(&["mint", "numbers", "--store", &other]).code, 0);
    let changed = doctor(&home);
    assert_eq!(changed.code, 1, "{}", changed.out);
    assert!(line_of(&changed).contains("belongs to"), "{}", changed.out);
}

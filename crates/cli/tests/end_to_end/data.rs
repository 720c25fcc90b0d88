//! Damage to the data: copies, old backups, folders without write permission, garbage.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use super::recovery_from_here::copied;
use super::server::{Folder, Resp, SNOWMINT, Server, clean, curl, snowmint, until};

fn serve(folder: &Path) -> Server {
    let server = Server::start(&["--data-dir", folder.to_str().unwrap()], &[]);
    server.ready();
    server
}

fn refused(folder: &Path) -> Output {
    match Server::try_start(&["--data-dir", folder.to_str().unwrap()], &[]) {
        Err(output) => output,
        Ok(_) => panic!("it serves from {}", folder.display()),
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mint(server: &Server, source: &str, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut connection = Resp::connect(&server.resp).unwrap();
    while ids.len() < count {
        connection.incr(source, (count - ids.len()).min(100), &mut ids).unwrap();
    }
    ids
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = Folder::new("in-use");
    let server = serve(folder.path());
    let output = refused(folder.path());
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    assert!(printed(&output).contains("is used by another process"), "{}", printed(&output));
    mint(&server, "default", 10);
}

#[test]
fn copied_folder_is_rejected_in_any_place_with_a_remedy() {
    let folder = Folder::new("copied");
    let (home, clone_dir, backup) =
        (folder.join("home"), folder.join("elsewhere"), folder.join("backup"));
    let server = serve(&home);
    mint(&server, "default", 100);
    mint(&server, "numbers", 100);
    copy(&home, &clone_dir);
    copy(&home, &backup);
    // The copy starts at another path while the first serves.
    let output = refused(&clone_dir);
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    assert!(printed(&output).contains("fast-forward"), "{}", printed(&output));
    // The copy starts at the same path, in place of the first.
    server.kill();
    fs::remove_dir_all(&home).unwrap();
    copy(&backup, &home);
    let output = refused(&home);
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    assert!(printed(&output).contains("fast-forward"), "{}", printed(&output));
}

#[test]
fn database_restored_alone_is_rejected_until_recovery() {
    let folder = Folder::new("restored");
    let home = folder.join("home");
    let server = serve(&home);
    let early = mint(&server, "numbers", 10);
    assert_eq!(server.stop(), 0);
    let old = folder.join("old.db");
    fs::copy(home.join("snowmint.db"), &old).unwrap();
    let server = serve(&home);
    let seen = mint(&server, "numbers", 5_000);
    server.kill();
    // Only the database is restored; the journal is newer.
    fs::copy(&old, home.join("snowmint.db")).unwrap();
    for side in ["snowmint.db-wal", "snowmint.db-shm"] {
        let _ = fs::remove_file(home.join(side));
    }
    let server = Server::start(&["--data-dir", home.to_str().unwrap()], &[]);
    server.not_ready(&["rolled back", "worker recover"]);
    let mut none = Vec::new();
    Resp::connect(&server.resp).unwrap().incr("numbers", 10, &mut none).unwrap();
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(server.stop(), 0);

    let forward =
        snowmint().args(["worker", "fast-forward", "--data-dir"]).arg(&home).output().unwrap();
    assert!(forward.status.success(), "{}", printed(&forward));
    // Numbers continue at once, above everything issued. Workers wait until the clock has passed
    // the marks of all leases that the backup does not know.
    let server = Server::start(&["--data-dir", home.to_str().unwrap()], &[]);
    let later = mint(&server, "numbers", 1_000);
    assert!(later.iter().all(|id| !seen.contains(id) && !early.contains(id)));
    let status = curl(&["-o", "/dev/null", "-w", "%{http_code}", &server.url("/readyz")]);
    assert_eq!(status, "503");
}

/// Every number comes from a section or an order, which the journal knows by the store's write count
/// alone.
#[test]
fn database_restored_under_counters_alone_is_rejected() {
    for (kind, key) in [("kind = \"counter\"", "seats:a"), ("order = \"global\"", "seats")] {
        let folder = Folder::new("restored-counters");
        let (home, config) = (folder.join("home"), folder.join("config.toml"));
        let sources = format!("[sources]\nbuiltin = false\n[sources.seats]\n{kind}\n");
        fs::write(&config, sources).unwrap();
        let words = ["--data-dir", home.to_str().unwrap(), "--config", config.to_str().unwrap()];
        let server = Server::start(&words, &[]);
        server.ready();
        mint(&server, key, 10);
        // Both files of one moment, as after a loss of power. A start would be another write that
        // the journal knows.
        server.signal("-STOP");
        let (file, old) = (home.join("snowmint.db"), folder.join("old.db"));
        copied(&file, &old);
        server.signal("-CONT");
        // Numbers of a window that the copy has too would repeat nothing. A second extend follows
        // once the first one's numbers may be used.
        let extends = || server.sample("snowmint_store_call_seconds_count{verb=\"extend\"}");
        let before = extends();
        until("windows are extended", || {
            mint(&server, key, 5_000);
            extends() >= before + 2.0
        });
        server.kill();
        copied(&old, &file);
        let server = Server::start(&words, &[]);
        server.not_ready(&["rolled back", "worker recover"]);
        let mut none = Vec::new();
        Resp::connect(&server.resp).unwrap().incr(key, 10, &mut none).unwrap();
        assert!(none.is_empty(), "{kind}: {none:?}");
    }
}

#[test]
fn unusable_folder_gives_a_clear_error() {
    let folder = Folder::new("cannot");
    let file = folder.join("file");
    fs::write(&file, "not a folder").unwrap();
    let output = refused(&file);
    assert_eq!(output.status.code(), Some(4), "{}", printed(&output));
    assert!(printed(&output).contains(file.to_str().unwrap()), "{}", printed(&output));
}

#[test]
fn corrupt_database_is_rejected_and_left_unchanged() {
    let folder = Folder::new("corrupt");
    let home = folder.join("home");
    let server = serve(&home);
    mint(&server, "default", 10);
    assert_eq!(server.stop(), 0);
    let garbage = "garbage ".repeat(2_000);
    fs::write(home.join("snowmint.db"), &garbage).unwrap();
    let output = refused(&home);
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    assert!(printed(&output).contains("snowmint.db"), "{}", printed(&output));
    assert_eq!(fs::read_to_string(home.join("snowmint.db")).unwrap(), garbage);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn data_is_private_under_any_umask() {
    let folder = Folder::new("umask");
    let shared = format!("sqlite:{}", folder.join("shared.db").display());
    for (name, umask, more) in
        [("a", "0000", &[][..]), ("b", "0022", &[]), ("c", "0000", &["--store", &shared])]
    {
        let home = folder.join(name);
        let under_umask = || {
            let mut command = clean("sh");
            command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh", SNOWMINT]);
            command
        };
        let place = [&["--data-dir", home.to_str().unwrap()], more].concat();
        let server = Server::run(under_umask(), &place).unwrap();
        server.ready();
        mint(&server, "default", 10);
        mint(&server, "numbers", 10);
        let made = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = made(&home).chain(made(folder.path())).filter(|path| path.is_file());
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        assert_eq!(mode(&home), 0o700, "{umask}");
        assert!(made(&home).count() >= 2, "the lock and the journal");
        assert_eq!(server.stop(), 0);
        // Commands leave the audit trail there.
        let mut command = under_umask();
        let output = command
            .args(["worker", "accept-lead", "--until", "now"])
            .args(&place)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        assert_eq!(mode(&home.join("audit.log")), 0o600, "{umask}");
    }
}

/// A user who can write in it can take the lock, and restore an older state.
#[test]
fn world_writable_folder_is_rejected() {
    let folder = Folder::new("writable");
    let home = folder.join("home");
    fs::create_dir(&home).unwrap();
    let doctor = || {
        let output = snowmint().args(["doctor", "--data-dir"]).arg(&home).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.lines().find(|line| line.contains("data dir")).unwrap().to_owned()
    };
    for rights in [0o777, 0o1777, 0o702] {
        set_mode(&home, rights);
        let output = refused(&home);
        assert_eq!(output.status.code(), Some(2), "{rights:o}: {}", printed(&output));
        assert!(printed(&output).contains("chmod 700"), "{}", printed(&output));
        assert!(doctor().starts_with("ERROR") && doctor().contains("chmod 700"), "{}", doctor());
    }
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "nothing is made in it");
    set_mode(&home, 0o770);
    let server = serve(&home);
    server.says("is writable by its group");
    assert_eq!(server.stop(), 0);
    assert!(doctor().starts_with("WARNING") && doctor().contains("chmod g-w"), "{}", doctor());
    set_mode(&home, 0o755);
    assert_eq!(serve(&home).stop(), 0);
    assert_eq!(mode(&home), 0o755, "a user made it so");
    assert!(doctor().starts_with("ok"), "{}", doctor());
}

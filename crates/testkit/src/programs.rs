//! Programs that tests start, and the Debian packages that have them.
//!
//! A program that a test needs and that is missing fails the test, with a message that names the
//! package.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs and files, and the package of each.
const PACKAGES: &[(&str, &str)] = &[
    ("cc", "gcc"),
    ("curl", "curl"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("groff", "groff"),
    ("initdb", "postgresql"),
    ("java", "default-jdk-headless"),
    ("libfaketimeMT.so.1", "faketime"),
    ("mariadb", "mariadb-server"),
    ("mariadb-dump", "mariadb-server"),
    ("mariadb-install-db", "mariadb-server"),
    ("mariadbd", "mariadb-server"),
    ("openssl", "openssl"),
    ("pg_ctl", "postgresql"),
    ("pg_dump", "postgresql"),
    ("pg_isready", "postgresql"),
    ("pgbouncer", "pgbouncer"),
    ("postgres", "postgresql"),
    ("promtool", "prometheus"),
    ("psql", "postgresql"),
    ("redis-benchmark", "redis-tools"),
    ("redis-cli", "redis-tools"),
    ("redis-server", "redis-server"),
    ("script", "bsdutils"),
    ("setpriv", "util-linux"),
    ("systemd-analyze", "systemd"),
    ("zookeeper.jar", "zookeeper"),
];

/// Folders with programs of administrators, which the `PATH` of other users may lack.
const MORE_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Returns the path of a program.
///
/// # Panics
/// When it is not installed.
#[must_use]
pub fn installed(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    found(program, &path).unwrap_or_else(|| missing(program))
}

fn found(program: &str, path: &OsStr) -> Option<PathBuf> {
    let folders = env::split_paths(path).chain(MORE_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns the path of a file that a package installs at this place.
pub(crate) fn installed_at(path: &str) -> &Path {
    let path = Path::new(path);
    if !path.is_file() {
        let name = path.file_name().unwrap_or_default();
        missing(&name.to_string_lossy());
    }
    path
}

/// Fails the test that needs the program.
pub(crate) fn missing(program: &str) -> ! {
    panic!("{}", sentence(program))
}

fn sentence(program: &str) -> String {
    let package = PACKAGES.iter().find(|(name, _)| *name == program).map(|(_, package)| package);
    let Some(package) = package else {
        return format!("{program} is not installed, and no package of ci/setup has it");
    };
    format!("{program} is not installed; ci/setup installs it (Debian package {package})")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let nowhere = OsStr::new("/nonexistent");
        assert_eq!(found("no-such-program", nowhere), None);
        for (program, package) in PACKAGES {
            let message = sentence(program);
            for part in [*program, "ci/setup", &format!("package {package}")] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
        let failed = std::panic::catch_unwind(|| installed("no-such-program")).unwrap_err();
        let message = failed.downcast_ref::<String>().unwrap();
        assert_eq!(message, "no-such-program is not installed, and no package of ci/setup has it");
    }

    #[test]
    fn program_is_found_on_the_path() {
        let folder = env::temp_dir();
        let file = folder.join(format!("snowmint-program-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let path = env::join_paths([Path::new("/nonexistent"), &folder]).unwrap();
        let found = found(name, &path);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found, Some(file));
    }

    const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

    /// Returns the packages that lines of the script install: the words after each `need PROGRAM`,
    /// and those that other checks add.
    fn packages_of(lines: &str) -> BTreeSet<String> {
        let needs = lines.lines().filter_map(|line| line.trim_start().strip_prefix("need "));
        let needs = needs.flat_map(|need| need.split(' ').skip(1));
        let others = lines.split("missing+=(").skip(1).filter_map(|rest| rest.split_once(')'));
        let others = others.flat_map(|(packages, _)| packages.split(' '));
        let named = needs.chain(others).filter(|package| !package.starts_with('"'));
        named.map(str::to_owned).collect()
    }

    /// Collects the programs that sources below the folder request by name.
    fn find_called(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find_called(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for call in ["programs::installed(\"", "programs::missing(\"", "client(\""] {
                    let names = text.split(call).skip(1).filter_map(|rest| rest.split_once('"'));
                    found.extend(names.map(|(name, _)| name.to_owned()));
                }
            }
        }
    }

    /// Every program that a test needs has a package, which the script installs. Without `--all` it
    /// installs no other: packages that only `ci/setup --all` installs are for tests that `ci/test`
    /// leaves out, and for scripts that report what they lack.
    #[test]
    fn ci_setup_installs_every_package() {
        let mut called = BTreeSet::new();
        for krate in ["cli", "stores", "testkit"] {
            find_called(&Path::new(CRATES).join(krate), &mut called);
        }
        for program in ["curl", "groff", "pgbouncer"] {
            assert!(called.contains(program), "the calls are not found: {called:?}");
        }
        // Every Debian system has it.
        called.remove("uname");
        for program in &called {
            let known = PACKAGES.iter().any(|(name, _)| name == program);
            assert!(known, "no package is named that has {program}");
        }
        let setup = std::fs::read_to_string(format!("{CRATES}/../ci/setup")).unwrap();
        let installed = packages_of(&setup);
        for (program, package) in PACKAGES {
            let has = installed.contains(*package);
            assert!(has, "ci/setup installs no {package}, which has {program}");
        }
        // `cc` compiles with the first; cargo's tools are fetched with the second.
        let others = ["libc6-dev", "python3-venv"];
        let named: Vec<_> = PACKAGES.iter().map(|(_, package)| *package).chain(others).collect();
        let (for_tests, _) = setup.split_once("if [ -n \"$all\" ]").unwrap();
        for package in &packages_of(for_tests) {
            let known = named.contains(&package.as_str());
            assert!(known, "ci/setup installs {package}, of which no test needs a program");
        }
    }
}

//! The programs that tests start, and which Debian packages have them.
//!
//! A program that is asked for and missing fails the test, with a sentence that names the package.

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
    ("java", "default-jre-headless"),
    ("libfaketimeMT.so.1", "faketime"),
    ("mariadb", "mariadb-server"),
    ("mariadb-dump", "mariadb-server"),
    ("mariadb-install-db", "mariadb-server"),
    ("mariadbd", "mariadb-server"),
    ("openssl", "openssl"),
    ("pg_ctl", "postgresql"),
    ("pg_dump", "postgresql"),
    ("pg_isready", "postgresql"),
    ("postgres", "postgresql"),
    ("promtool", "prometheus"),
    ("psql", "postgresql"),
    ("redis-benchmark", "redis-tools"),
    ("redis-cli", "redis-tools"),
    ("redis-server", "redis-server"),
    ("setpriv", "util-linux"),
    ("zookeeper.jar", "zookeeper"),
];

/// Where administrators have programs that the `PATH` of others may lack.
const MORE_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The path of a program.
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

/// The path of a file that a package has at this place.
pub(crate) fn installed_at(path: &str) -> &Path {
    let path = Path::new(path);
    if !path.is_file() {
        let name = path.file_name().unwrap_or_default();
        missing(&name.to_string_lossy());
    }
    path
}

/// Fails the test that asked for the program.
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
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let nowhere = OsStr::new("/nonexistent");
        assert_eq!(found("no-such-program", nowhere), None);
        for (program, package) in PACKAGES {
            let said = sentence(program);
            for part in [*program, "ci/setup", &format!("package {package}")] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        let failed = std::panic::catch_unwind(|| installed("no-such-program")).unwrap_err();
        let said = failed.downcast_ref::<String>().unwrap();
        assert_eq!(said, "no-such-program is not installed, and no package of ci/setup has it");
    }

    #[test]
    fn a_program_is_found_where_the_path_says() {
        let folder = env::temp_dir();
        let file = folder.join(format!("snowmint-program-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let path = env::join_paths([Path::new("/nonexistent"), &folder]).unwrap();
        let found = found(name, &path);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found, Some(file));
    }

    /// What a test needs, the script installs that is named for it.
    #[test]
    fn ci_setup_installs_every_package() {
        let setup = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/setup");
        let setup = std::fs::read_to_string(setup).unwrap();
        let named: Vec<_> = setup.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
        for (program, package) in PACKAGES {
            assert!(named.contains(package), "ci/setup installs no {package}, which has {program}");
        }
    }
}

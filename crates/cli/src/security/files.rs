//! Files that decide on access or hold a secret: warnings of other users who can read or write
//! them, where this is not a reason to reject the files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::config::Config;

/// Kind of a file, by its risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The file decides on access: no other user should write it.
    Trust,
    /// The file holds a secret: no other user should read it, either.
    Secret,
}

const WRITTEN_BY_GROUP: u32 = 0o020;
const READ_BY_OTHERS: u32 = 0o004;

/// Variables that name the client's credentials and the certificates that it trusts.
const SHOWN: [(&str, Holds); 3] = [
    ("SNOWMINT_TOKEN_FILE", Holds::Secret),
    ("SNOWMINT_CERT_FILE", Holds::Secret),
    ("SNOWMINT_CA_FILE", Holds::Trust),
];

/// Returns a sentence for each unwanted permission of other users on the configuration's files.
/// Such permissions are not a reason to end, because several systems deliver files with them.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let Config { tokens, tls, peers, disguise, store, traces, .. } = config;
    let trusted = [
        ("tokens.file", tokens.file.as_str(), Holds::Trust),
        ("tls.cert", &tls.cert, Holds::Trust),
        ("tls.client_ca", &tls.client_ca, Holds::Trust),
        ("peers.ca", &peers.ca, Holds::Trust),
        ("store.ca", &store.ca, Holds::Trust),
        ("traces.ca", &traces.ca, Holds::Trust),
        ("tls.key", &tls.key, Holds::Secret),
        // The certificate and its key are in one file.
        ("store.cert", &store.cert, Holds::Secret),
    ];
    let trusted = trusted.map(|(key, path, holds)| (key.to_owned(), PathBuf::from(path), holds));
    let keys =
        disguise.keys.iter().map(|(number, place)| (format!("disguise.keys.{number}"), place));
    let named = [("peers.token", &peers.token), ("store.token", &store.token)];
    let named = named.map(|(key, place)| (key.to_owned(), place)).into_iter().chain(keys);
    let secret =
        named.filter_map(|(key, place)| Some((key, PathBuf::from(place.file()?), Holds::Secret)));
    let shown = SHOWN.into_iter().filter_map(|(name, holds)| {
        Some((name.to_owned(), PathBuf::from(std::env::var_os(name)?), holds))
    });
    let files = own(config).into_iter().chain(trusted).chain(secret).chain(shown);
    let files = files.filter(|(_, path, _)| !path.as_os_str().is_empty());
    files.filter_map(|(key, path, holds)| warning(&key, &path, holds)).collect()
}

/// Returns the configuration's own file: it names all others, and may contain secrets.
fn own(config: &Config) -> Option<(String, PathBuf, Holds)> {
    let (path, secrets) = config.places.file()?;
    let named = |what: String, holds| Some((what, path.to_owned(), holds));
    match secrets.is_empty() {
        true => named("the configuration".to_owned(), Holds::Trust),
        false => {
            let secrets = secrets.join(", ");
            named(format!("the configuration, with a secret in {secrets},"), Holds::Secret)
        }
    }
}

/// Describes risky permissions of a file; `None` for a missing file.
fn warning(key: &str, path: &Path, holds: Holds) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let mode = found.permissions().mode();
    let is_ours = [0, geteuid().as_raw()].contains(&found.uid());
    let is_secret = holds == Holds::Secret;
    let all = [
        (
            !is_ours,
            format!("belongs to user {}, who can write it", found.uid()),
            "chown it to the server's user or to root",
        ),
        (mode & WRITTEN_BY_GROUP != 0, "can be written by its group".to_owned(), "chmod g-w"),
        (
            is_secret && mode & READ_BY_OTHERS != 0,
            "can be read by every user of this machine".to_owned(),
            "chmod o-r",
        ),
    ];
    let (odd, advice): (Vec<_>, Vec<_>) =
        all.into_iter().filter_map(|(is_odd, odd, advice)| is_odd.then_some((odd, advice))).unzip();
    if odd.is_empty() {
        return None;
    }
    let (odd, advice) = (odd.join(" and "), advice.join(", "));
    Some(format!("the file of {key} {odd} (mode {:04o}): {advice}", mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};

    use super::*;
    use crate::config::Given;

    #[test]
    fn permissions_of_other_users_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        for (mode, trust, secret) in [
            (0o600, "", ""),
            (0o640, "", ""),
            (0o644, "", ": chmod o-r"),
            (0o660, ": chmod g-w", ": chmod g-w"),
            (0o664, ": chmod g-w", ": chmod g-w, chmod o-r"),
        ] {
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
            for (holds, advice) in [(Holds::Trust, trust), (Holds::Secret, secret)] {
                let warning = warning("k", path, holds).unwrap_or_default();
                assert_eq!(warning.is_empty(), advice.is_empty(), "{mode:o} {holds:?}: {warning}");
                assert!(warning.ends_with(advice), "{mode:o} {holds:?}: {warning}");
            }
        }
        assert_eq!(warning("k", Path::new("/nonexistent"), Holds::Secret), None);
    }

    #[test]
    fn every_file_with_a_secret_in_it_is_looked_at() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let place = format!("file:{path}");
        let secret = [
            ("tls.key", path),
            ("store.cert", path),
            ("store.token", &place),
            ("peers.token", &place),
            ("disguise.keys.1", &place),
        ];
        let more = [("store.url", "snowmints://h:1"), ("tls.cert", path), ("tokens.file", path)];
        let given = secret.iter().chain(&more).map(|(key, text)| Given::flag(key, key, *text));
        let config = Config::load(None, given.collect()).unwrap();
        set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        let messages = warnings(&config);
        for (key, _) in secret {
            let start = format!("the file of {key} can be read by every user");
            assert!(
                messages.iter().any(|message| message.starts_with(&start)),
                "{key}: {messages:?}"
            );
        }
        assert_eq!(messages.len(), secret.len(), "{messages:?}");
        set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(warnings(&config), Vec::<String>::new());
    }
}

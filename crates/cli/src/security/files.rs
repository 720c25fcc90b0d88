//! Files that decide who is let in, or that hold a secret: who else on the machine can write or read them.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::process::geteuid;

use crate::config::Config;

/// What others could do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// It decides who is let in: nobody else should write it.
    Trust,
    /// It has a secret: nobody else should read it either.
    Secret,
}

const WRITTEN_BY_OTHERS: u32 = 0o002;
const WRITTEN_BY_GROUP: u32 = 0o020;
const READ_BY_OTHERS: u32 = 0o004;

/// What is in a file that is trusted.
///
/// # Errors
/// When it cannot be read, and when everybody on the machine could have written it. The path is not in it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let mut file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & WRITTEN_BY_OTHERS != 0 {
        return Err(format!(
            "can be written by everybody on this machine (mode {:04o}), so it is not trusted: chmod o-w",
            mode & 0o7777
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// What others can do with the files of a configuration that they should not, one sentence each: where that is no
/// reason to end, as several systems hand out files so.
pub(crate) fn cautions(config: &Config) -> Vec<String> {
    let Config { tokens, tls, peers, disguise, store, .. } = config;
    let trusted = [
        ("tokens.file", tokens.file.as_str(), Holds::Trust),
        ("tls.cert", &tls.cert, Holds::Trust),
        ("tls.client_ca", &tls.client_ca, Holds::Trust),
        ("peers.ca", &peers.ca, Holds::Trust),
        ("tls.key", &tls.key, Holds::Secret),
    ];
    let trusted = trusted.map(|(key, path, holds)| (key.to_owned(), path, holds));
    let keys =
        disguise.keys.iter().map(|(number, place)| (format!("disguise.keys.{number}"), place));
    let named = [("peers.token", &peers.token), ("store.token", &store.token)];
    let named = named.map(|(key, place)| (key.to_owned(), place)).into_iter().chain(keys);
    let secret = named.filter_map(|(key, place)| Some((key, place.file()?, Holds::Secret)));
    let files = trusted.into_iter().filter(|(_, path, _)| !path.is_empty()).chain(secret);
    files.filter_map(|(key, path, holds)| caution(&key, Path::new(path), holds)).collect()
}

/// What is odd about the rights of a file; nothing about one that is not there.
fn caution(key: &str, path: &Path, holds: Holds) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let mode = found.permissions().mode();
    let is_ours = [0, geteuid().as_raw()].contains(&found.uid());
    let (odd, advice) = if !is_ours {
        (
            format!("belongs to user {}, who can write it", found.uid()),
            "chown it to the server's user or to root",
        )
    } else if mode & WRITTEN_BY_GROUP != 0 {
        (format!("can be written by its group (mode {:04o})", mode & 0o7777), "chmod g-w")
    } else if holds == Holds::Secret && mode & READ_BY_OTHERS != 0 {
        (
            format!("can be read by everybody on this machine (mode {:04o})", mode & 0o7777),
            "chmod o-r",
        )
    } else {
        return None;
    };
    Some(format!("the file of {key} {odd}: {advice}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};

    use super::*;

    #[test]
    fn files_that_others_write_are_refused_and_others_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        for (mode, is_read, trust, secret) in [
            (0o600, true, "", ""),
            (0o640, true, "", ""),
            (0o644, true, "", "chmod o-r"),
            (0o660, true, "chmod g-w", "chmod g-w"),
            (0o602, false, "", ""),
            (0o666, false, "chmod g-w", "chmod g-w"),
        ] {
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
            let read = read(path);
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            if let Err(why) = read {
                assert!(
                    why.contains("chmod o-w") && !why.contains(path.to_str().unwrap()),
                    "{why}"
                );
            }
            for (holds, advice) in [(Holds::Trust, trust), (Holds::Secret, secret)] {
                let caution = caution("k", path, holds).unwrap_or_default();
                assert_eq!(caution.is_empty(), advice.is_empty(), "{mode:o} {holds:?}: {caution}");
                assert!(caution.ends_with(advice), "{mode:o} {holds:?}: {caution}");
            }
        }
        assert!(read(Path::new("/nonexistent")).unwrap_err().contains("cannot be read"));
        assert_eq!(caution("k", Path::new("/nonexistent"), Holds::Secret), None);
    }
}

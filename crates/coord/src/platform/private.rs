//! Directories and files that are private to their owner: their content is trusted when it is read
//! back, and any user who can open a lock file can hold the lock. Also trust checks for files from
//! elsewhere.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use crate::platform::random;

/// Mode of new directories: access for the owner alone, whatever the umask.
const DIRECTORY_MODE: u32 = 0o700;
/// Mode of new files: access for the owner alone.
pub(crate) const FILE_MODE: u32 = 0o600;
/// Mode bit that permits every user on the machine to write.
const WORLD_WRITABLE: u32 = 0o002;

/// Creates a directory and its parents, if missing. An existing directory stays unchanged.
///
/// # Errors
/// The error of the system.
pub fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        // Another process has created it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns the options to open a file; a new file gets the private mode.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates an empty file, if missing. The file is closed before it has its name: where a process
/// has a file open twice, closing one handle drops the locks of both.
///
/// # Errors
/// The error of the system.
pub fn make_file(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name().filter(|_| !path.exists()) else { return Ok(()) };
    let unique = random::incarnation().map_err(io::Error::other)?;
    let mut new = name.to_owned();
    new.push(format!(".{unique}.new"));
    let new = path.with_file_name(new);
    drop(options().write(true).create_new(true).open(&new)?);
    let made = std::fs::hard_link(&new, path);
    std::fs::remove_file(&new)?;
    match made {
        // Another process has created it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Reads a file that must be trusted: it controls actions, decides which callers are admitted or
/// believed, or has a secret. The checked mode is the mode of a link's target. `name` is the
/// subject of an error's sentence.
///
/// # Errors
/// The file cannot be read, or every user on the machine could have written it. The text contains
/// the path only as a part of `name`.
pub fn read_trusted(name: &str, path: &Path) -> Result<Vec<u8>, String> {
    let unreadable =
        |error: io::Error| format!("{name} cannot be read: {error}; check path and permissions");
    let mut file = File::open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    let mode = found.permissions().mode();
    // Data written to a device such as /dev/null is not the data read from it.
    if mode & WORLD_WRITABLE != 0 && !found.file_type().is_char_device() {
        return Err(format!(
            "{name} is writable by every user (mode {:04o}); run chmod o-w",
            mode & 0o7777
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn world_writable_file_is_not_trusted() {
        let place = std::env::temp_dir()
            .join(format!("snowmint-trusted-{}", random::incarnation().unwrap()));
        make_directory(&place).unwrap();
        let (file, link) = (place.join("file"), place.join("link"));
        std::fs::write(&file, "x").unwrap();
        // By its mode every link is writable by all users, as are the links that Kubernetes makes
        // to mounted files.
        symlink(&file, &link).unwrap();
        for (mode, is_read) in
            [(0o600, true), (0o644, true), (0o664, true), (0o602, false), (0o666, false)]
        {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            for path in [&file, &link] {
                let read = read_trusted("token file", path);
                assert_eq!(
                    read.as_deref().ok(),
                    is_read.then_some(&b"x"[..]),
                    "{mode:o}: {read:?}"
                );
                let reason = read.err().unwrap_or_else(|| "chmod o-w".to_owned());
                assert!(reason.contains("chmod o-w") && !reason.contains("trusted-"), "{reason}");
            }
        }
        let missing = read_trusted("token file", &place.join("none")).unwrap_err();
        assert!(missing.starts_with("token file cannot be read: "), "{missing}");
        assert_eq!(read_trusted("token file", Path::new("/dev/null")), Ok(Vec::new()));
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn created_files_are_private() {
        let place = std::env::temp_dir()
            .join(format!("snowmint-private-{}", random::incarnation().unwrap()));
        let (above, directory) = (place.join("a"), place.join("a/b"));
        make_directory(&directory).unwrap();
        let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), DIRECTORY_MODE);
        let file = directory.join("file");
        options().write(true).create(true).open(&file).unwrap();
        assert_eq!(mode(&file), FILE_MODE);
        // A directory made with another mode belongs to its maker.
        let before = mode(&above);
        make_directory(&above).unwrap();
        assert_eq!(mode(&above), before);
        for _ in 0..2 {
            make_file(&directory.join("other")).unwrap();
        }
        assert_eq!(mode(&directory.join("other")), FILE_MODE);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
        assert!(make_directory(&file).is_err() && make_directory(&file.join("x")).is_err());
        std::fs::remove_dir_all(&place).unwrap();
    }
}

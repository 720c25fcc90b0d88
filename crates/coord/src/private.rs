//! Directories and files that are nobody else's business: what is in them is trusted when it is read back, and who
//! can open a lock file can hold the lock.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::random;

/// What the owner may do with a directory that is made here, and nobody else, whatever the umask.
const DIRECTORY_MODE: u32 = 0o700;
/// The same of a file.
pub(crate) const FILE_MODE: u32 = 0o600;

/// Makes a directory, and those above it, if there is none. One that is there stays as it is.
///
/// # Errors
/// As the system says.
pub fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        // Somebody else has made it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

/// How a file is opened that is made if there is none.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes an empty file, if there is none. It is closed before it has its name: where a process has a file open twice,
/// closing one drops the locks of both.
///
/// # Errors
/// As the system says.
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
        // Somebody else has made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::metadata;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_may_use_what_is_made() {
        let place = std::env::temp_dir()
            .join(format!("snowmint-private-{}", random::incarnation().unwrap()));
        let (above, directory) = (place.join("a"), place.join("a/b"));
        make_directory(&directory).unwrap();
        let mode = |path: &Path| metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), DIRECTORY_MODE);
        let file = directory.join("file");
        options().write(true).create(true).open(&file).unwrap();
        assert_eq!(mode(&file), FILE_MODE);
        // It is somebody's who has made it otherwise.
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

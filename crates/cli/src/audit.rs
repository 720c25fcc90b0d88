//! The trail of what operators change without a server: a line in `audit.log` of the data directory.
//!
//! What servers change is in their logs, with the target `audit`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use snowmint_core::Rfc3339;

use crate::exit::complain;
use crate::when;

/// Leaves a line. What has been done has been done: a line that cannot be written is told, and no error.
pub(crate) fn leave(
    data_dir: &Path,
    what: &str,
    before: impl fmt::Display,
    after: impl fmt::Display,
) {
    let path = data_dir.join("audit.log");
    let (now, who) = (Rfc3339(when::now()), who());
    let line = format!("{now} audit: {what} who={who} before={before} after={after}\n");
    let written = std::fs::create_dir_all(data_dir).and_then(|()| {
        // One write: lines of two at once do not mix.
        OpenOptions::new().append(true).create(true).open(&path)?.write_all(line.as_bytes())
    });
    if let Err(error) = written {
        complain(format_args!(
            "{} cannot be written: {error}; it would say: {line}",
            path.display()
        ));
    }
}

/// Who runs this command: the user's number, which nobody can make up, and the name that he gives himself.
fn who() -> String {
    let user = rustix::process::getuid().as_raw();
    let name = ["SUDO_USER", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    format!("uid {user} ({:?})", name.unwrap_or_default())
}

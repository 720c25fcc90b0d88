//! The audit trail. Servers log changes with the target `audit`; a command without a server appends
//! a line to `audit.log` in the data directory.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use snowmint_coord::SourceInfo;
use snowmint_coord::label::{Visible, visible};
use snowmint_coord::private;
use snowmint_core::Rfc3339;
use snowmint_server::AuditDefinition;

use crate::terminal::exit::complain;
use crate::terminal::when;

/// Destination of the record of definition changes.
#[derive(Clone, Debug)]
pub(crate) enum AuditLog {
    /// The log: for a server, changes that its configuration makes.
    Log,
    /// This data directory: for a command.
    File(PathBuf),
}

impl AuditLog {
    /// Records the change of a source; does nothing when the version is unchanged.
    pub(crate) fn changed(
        &self,
        how: &str,
        name: &str,
        before: Option<&SourceInfo>,
        after: Option<&SourceInfo>,
    ) {
        let (before, after) = (AuditDefinition(before), AuditDefinition(after));
        if !before.differs_from(after) {
            return;
        }
        let (before, after) = (visible(before.to_string()), visible(after.to_string()));
        match self {
            Self::Log => {
                let who = "the configuration";
                tracing::info!(target: "audit", %who, %before, %after, "source {name} {how}");
            }
            Self::File(data_dir) => {
                leave(data_dir, &format!("source {name} {how}"), before, after);
            }
        }
    }
}

/// Appends a line. The change is already made, so a failed write is reported to the operator and is
/// not an error.
pub(crate) fn leave(
    data_dir: &Path,
    what: &str,
    before: impl fmt::Display,
    after: impl fmt::Display,
) {
    let path = data_dir.join("audit.log");
    let (now, who) = (Rfc3339(when::now()), user());
    let line = format!("{now} audit: {what} who={who} before={before} after={after}");
    let line = format!("{}\n", Visible(&line));
    // The server owns the directory and may run as another user, so it is not created here. A
    // single write keeps concurrent lines apart.
    let opened = private::options().append(true).create(true).open(&path);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        complain(format_args!(
            "{} cannot be written: {error}; it would say: {}",
            path.display(),
            line.trim_end()
        ));
    }
}

/// Returns the user of this command.
fn user() -> String {
    let user = rustix::process::getuid().as_raw();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let claimed = ["SUDO_USER", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    named(user, &known, claimed.as_deref())
}

/// Names a user by number, which cannot be forged, and by the machine's name for it. Adds the name
/// in the environment, which any process can set, if it differs: with sudo the user is root.
fn named(user: u32, known: &str, claimed: Option<&str>) -> String {
    let number = user.to_string();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then_some(name)
    });
    let mut who = format!("uid {user}");
    if let Some(name) = name {
        who.push_str(&format!(" ({name:?})"));
    }
    match claimed {
        Some(claimed) if name != Some(claimed) => {
            who.push_str(&format!(", claims to be {claimed:?}"))
        }
        _ => {}
    }
    who
}

#[cfg(test)]
mod tests {
    use snowmint_coord::label::is_control;

    use super::*;

    #[test]
    fn operator_name_is_the_machines_with_the_sudo_user_added() {
        let known = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nbroken\n";
        for (user, claimed, who) in [
            (1000, Some("ada"), "uid 1000 (\"ada\")"),
            (1000, None, "uid 1000 (\"ada\")"),
            (0, Some("ada"), "uid 0 (\"root\"), claims to be \"ada\""),
            (1000, Some("root"), "uid 1000 (\"ada\"), claims to be \"root\""),
            (7, Some("ada\nx"), "uid 7, claims to be \"ada\\nx\""),
            (7, None, "uid 7"),
        ] {
            assert_eq!(named(user, known, claimed), who);
        }
    }

    #[test]
    fn audit_line_creates_no_directory_and_keeps_earlier_lines() {
        let place = tempfile::tempdir().unwrap();
        let none = place.path().join("server");
        leave(&none, "it happened", "a", "b");
        assert!(!none.exists(), "it would belong to the command's user");
        for lines in 1..3 {
            leave(place.path(), "it happened", "a", "b");
            let audit_log = std::fs::read_to_string(place.path().join("audit.log")).unwrap();
            assert_eq!(audit_log.lines().count(), lines, "{audit_log}");
        }
    }

    /// Untrusted names appear in the line, and operators read it on a terminal.
    #[test]
    fn a_line_stays_one_line_whatever_stands_in_it() {
        let place = tempfile::tempdir().unwrap();
        leave(place.path(), "it\nhappened", "a\u{1b}[2J", "b\u{202e}\r");
        let audit_log = std::fs::read_to_string(place.path().join("audit.log")).unwrap();
        assert_eq!(audit_log.lines().count(), 1, "{audit_log:?}");
        assert!(
            audit_log.ends_with('\n') && !audit_log.trim_end().contains(is_control),
            "{audit_log:?}"
        );
        for part in ["it\\nhappened", "before=a\\u{1b}[2J", "after=b\\u{202e}\\r"] {
            assert!(audit_log.contains(part), "{part}: {audit_log:?}");
        }
    }
}

//! What ties a journal to its place, so that a copy of it is not taken for the original.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::frame::FileTime;

/// Where a journal belongs: everything here survives a restart, and none of it survives a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Binding {
    /// The machine's identity; empty where there is none.
    pub(super) machine: String,
    /// The canonical path of the data directory.
    pub(super) path: String,
    /// The device, unless it is one that the kernel numbers anew at each mount.
    pub(super) device: Option<(u32, u32)>,
    /// The file's number on its device.
    pub(super) inode: u64,
    /// When the file was made, where the file system says. A file number is used again once its
    /// file is gone, this is not.
    pub(super) born: Option<(i64, u32)>,
}

/// What the kernel says about an open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) device: Option<(u32, u32)>,
    pub(super) inode: u64,
    pub(super) born: Option<(i64, u32)>,
    /// When the content last changed. Anybody may set it to anything.
    pub(super) modified: FileTime,
    /// When anything about the file last changed. Nobody can set it.
    pub(super) changed: FileTime,
}

impl Binding {
    pub(super) fn new(machine: &str, path: &Path, status: &Status) -> Self {
        Self {
            machine: machine.into(),
            path: path.to_string_lossy().into_owned(),
            device: status.device,
            inode: status.inode,
            born: status.born,
        }
    }

    /// In what `self`, the place at hand, differs from `remembered`; none when it is the place.
    pub(super) fn differs_from(&self, remembered: &Self) -> Option<String> {
        // An identity that one side does not know proves nothing.
        if !self.machine.is_empty()
            && !remembered.machine.is_empty()
            && self.machine != remembered.machine
        {
            return Some(format!(
                "it was written on machine {}, and this is {}",
                remembered.machine, self.machine
            ));
        }
        if self.path != remembered.path {
            return Some(format!(
                "it was written in {}, and this is {}",
                remembered.path, self.path
            ));
        }
        let other_device = self.device.is_some()
            && remembered.device.is_some()
            && self.device != remembered.device;
        let other_birth =
            self.born.is_some() && remembered.born.is_some() && self.born != remembered.born;
        if self.inode != remembered.inode || other_device || other_birth {
            return Some(
                "it is a copy, not the file that was written: was a backup restored?".into(),
            );
        }
        None
    }
}

/// This machine's identity; empty where the system has none.
pub(super) fn machine() -> String {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .into_iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .find(|id| !id.is_empty())
        .unwrap_or_default()
}

/// Read by a direct system call where there is one: a library that shifts the clock of a process
/// also shifts the file times that it sees, and those are compared over restarts here.
#[cfg(target_os = "linux")]
pub(super) fn status(file: &File) -> io::Result<Status> {
    use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, statx};
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = statx(file, "", AtFlags::EMPTY_PATH, wanted)?;
    let time = |time: StatxTimestamp| FileTime { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
    let born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Status {
        // Major 0 is for file systems without a device; their numbers change at each mount.
        device: (stat.stx_dev_major != 0).then_some((stat.stx_dev_major, stat.stx_dev_minor)),
        inode: stat.stx_ino,
        born: born.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
        modified: time(stat.stx_mtime),
        changed: time(stat.stx_ctime),
    })
}

/// What the standard library knows, where there is no such call.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn status(file: &File) -> io::Result<Status> {
    use std::os::unix::fs::MetadataExt;
    let stat = file.metadata()?;
    let nanoseconds = |ns: i64| u32::try_from(ns).unwrap_or(0);
    Ok(Status {
        device: None,
        inode: stat.ino(),
        born: None,
        modified: FileTime { seconds: stat.mtime(), nanoseconds: nanoseconds(stat.mtime_nsec()) },
        changed: FileTime { seconds: stat.ctime(), nanoseconds: nanoseconds(stat.ctime_nsec()) },
    })
}

/// The time by the clock that stamps this file: what the file's modification time becomes when it is
/// set to "now".
pub(super) fn file_now(file: &File) -> io::Result<FileTime> {
    use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    futimens(file, &times)?;
    Ok(status(file)?.modified)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding() -> Binding {
        Binding {
            machine: "m".into(),
            path: "/data".into(),
            device: Some((8, 1)),
            inode: 42,
            born: Some((1, 2)),
        }
    }

    #[test]
    fn the_same_place_is_recognised_and_every_other_is_not() {
        assert_eq!(binding().differs_from(&binding()), None);
        let others = [
            Binding { machine: "n".into(), ..binding() },
            Binding { path: "/copy".into(), ..binding() },
            Binding { device: Some((8, 2)), ..binding() },
            Binding { inode: 43, ..binding() },
            Binding { born: Some((1, 3)), ..binding() },
        ];
        for other in others {
            assert!(other.differs_from(&binding()).is_some(), "{other:?}");
        }
    }

    #[test]
    fn what_is_unknown_on_one_side_proves_nothing() {
        let unknown = Binding { machine: String::new(), device: None, born: None, ..binding() };
        assert_eq!(unknown.differs_from(&binding()), None);
        assert_eq!(binding().differs_from(&unknown), None);
    }
}

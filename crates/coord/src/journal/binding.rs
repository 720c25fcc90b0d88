//! Binding of a journal to its place, so that a copy is not taken for the original.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::FileStatus;

/// Place of a journal: every field survives a restart, and none survives a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Binding {
    /// Identity of the machine; empty where it has none.
    pub(super) machine: String,
    /// Canonical path of the data directory.
    pub(super) path: String,
    /// Device, unless the kernel renumbers it at each mount.
    pub(super) device: Option<(u32, u32)>,
    /// Inode number of the file on its device.
    pub(super) inode: u64,
    /// Creation time of the file, where the file system records it. An inode number is reused after
    /// its file is deleted; this time is not.
    pub(super) born: Option<(i64, u32)>,
}

/// Difference between the place where a journal was written and the present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    Machine { written: String, here: String },
    Path { written: String, here: String },
    Copy,
}

impl Binding {
    pub(super) fn new(machine: &str, path: &Path, status: &FileStatus) -> Self {
        Self {
            machine: machine.into(),
            path: path.to_string_lossy().into_owned(),
            device: status.device,
            inode: status.inode,
            born: status.born,
        }
    }

    /// Returns how `self`, the present place, differs from `remembered`; `None` when they are the
    /// same.
    pub(super) fn differs_from(&self, remembered: &Self) -> Option<Difference> {
        // An identity that one side does not know proves nothing.
        if !self.machine.is_empty()
            && !remembered.machine.is_empty()
            && self.machine != remembered.machine
        {
            let (written, here) = (remembered.machine.clone(), self.machine.clone());
            return Some(Difference::Machine { written, here });
        }
        if self.path != remembered.path {
            let (written, here) = (remembered.path.clone(), self.path.clone());
            return Some(Difference::Path { written, here });
        }
        let other_device = self.device.is_some()
            && remembered.device.is_some()
            && self.device != remembered.device;
        let other_birth =
            self.born.is_some() && remembered.born.is_some() && self.born != remembered.born;
        if self.inode != remembered.inode || other_device || other_birth {
            return Some(Difference::Copy);
        }
        None
    }

    /// Returns whether `self` is the file that was written at the place `remembered`, perhaps moved
    /// with its directory. A snapshot on a file system without a device has the same numbers, at
    /// another path.
    pub(super) fn is_same_file(&self, remembered: &Self) -> bool {
        let there = Self { path: remembered.path.clone(), ..self.clone() };
        let is_on_a_device = self.device.is_some() && self.device == remembered.device;
        there.differs_from(remembered).is_none() && (self.path == remembered.path || is_on_a_device)
    }
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
    fn journal_binding_recognises_only_its_place() {
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
    fn file_that_was_moved_is_the_same_and_a_copy_is_not() {
        let moved = Binding { path: "/moved".into(), ..binding() };
        assert!(binding().is_same_file(&binding()) && moved.is_same_file(&binding()));
        let others = [
            Binding { machine: "n".into(), ..binding() },
            Binding { device: Some((8, 2)), ..moved.clone() },
            Binding { inode: 43, ..moved.clone() },
            Binding { born: Some((1, 3)), ..moved.clone() },
            // A snapshot of a volume without a device.
            Binding { device: None, ..moved },
        ];
        for other in others {
            assert!(!other.is_same_file(&binding()), "{other:?}");
        }
        let bare = Binding { device: None, ..binding() };
        assert!(bare.is_same_file(&bare));
        assert!(!Binding { path: "/snapshot".into(), ..bare.clone() }.is_same_file(&bare));
    }

    #[test]
    fn unknown_binding_field_proves_nothing() {
        let unknown = Binding { machine: String::new(), device: None, born: None, ..binding() };
        assert_eq!(unknown.differs_from(&binding()), None);
        assert_eq!(binding().differs_from(&unknown), None);
    }
}

//! A certificate for servers on loopback, signed by an authority of its own.

use std::path::PathBuf;
use std::process::Command;

use super::{Folder, done};
use crate::programs;

/// The authority's certificate.
pub(super) const AUTHORITY: &str = "ca.pem";
/// The server's certificate, and its key.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// The files of one certificate. They go with the folder that they are in.
#[derive(Clone)]
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificate {
    /// The files of one that is made, in its folder.
    pub(super) fn of(file: impl Fn(&str) -> PathBuf) -> Self {
        Self { certificate: file(CERTIFICATE), key: file(KEY) }
    }

    /// Makes one in a folder; its key can be read by `user` alone.
    pub(super) fn make(folder: &Folder, user: Option<&str>) -> Self {
        let file = |name: &str| folder.join(name);
        let (authority, authority_key) = (file(AUTHORITY), file("ca.key"));
        let (made, request) = (Self::of(file), file("request"));
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let mut founded = openssl();
        founded.args(["req", "-x509", "-days", "2", "-subj", "/CN=a throwaway authority"]);
        founded.args(curve).arg("-keyout").arg(&authority_key).arg("-out").arg(&authority);
        done(&mut founded);
        let mut asked = openssl();
        asked.args(["req", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]);
        asked.args(curve).arg("-keyout").arg(&made.key).arg("-out").arg(&request);
        done(&mut asked);
        let mut signed = openssl();
        signed.args(["x509", "-req", "-days", "2", "-copy_extensions", "copy", "-CAcreateserial"]);
        signed.arg("-in").arg(&request).arg("-CA").arg(&authority);
        signed.arg("-CAkey").arg(&authority_key).arg("-out").arg(&made.certificate);
        done(&mut signed);
        if let Some(user) = user {
            done(Command::new("chown").arg(user).args([&made.certificate, &made.key]));
        }
        done(Command::new("chmod").arg("600").arg(&made.key));
        made
    }
}

fn openssl() -> Command {
    Command::new(programs::installed("openssl"))
}

/// An authority that has signed nobody's certificate; gone when dropped.
#[derive(Debug)]
pub struct Stranger(Folder);

impl Stranger {
    /// Makes one.
    #[must_use]
    pub fn new() -> Self {
        let folder = Folder::new(None);
        Certificate::make(&folder, None);
        Self(folder)
    }

    /// The file with its certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.join(AUTHORITY)
    }
}

impl Default for Stranger {
    fn default() -> Self {
        Self::new()
    }
}

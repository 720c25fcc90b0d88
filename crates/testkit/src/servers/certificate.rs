//! A certificate for servers on loopback, signed by its own CA.

use std::path::PathBuf;
use std::process::Command;

use super::{Folder, done};
use crate::programs;

/// File of the CA's certificate.
pub(super) const AUTHORITY: &str = "ca.pem";
/// Files of the server's certificate, and its key.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// Files of one certificate, which last as long as their folder.
#[derive(Clone)]
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificate {
    /// Returns the files of a certificate that was made in this folder.
    pub(super) fn of(file: impl Fn(&str) -> PathBuf) -> Self {
        Self { certificate: file(CERTIFICATE), key: file(KEY) }
    }

    /// Makes a certificate in a folder; only `user` can read its key.
    pub(super) fn make(folder: &Folder, user: Option<&str>) -> Self {
        let file = |name: &str| folder.join(name);
        let (authority, authority_key) = (file(AUTHORITY), file("ca.key"));
        let (made, request) = (Self::of(file), file("request"));
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let mut founded = openssl();
        founded.args(["req", "-x509", "-days", "2", "-subj", "/CN=a throwaway authority"]);
        founded.args(curve).arg("-keyout").arg(&authority_key).arg("-out").arg(&authority);
        done(&mut founded);
        let mut command = openssl();
        command.args(["req", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]);
        command.args(curve).arg("-keyout").arg(&made.key).arg("-out").arg(&request);
        done(&mut command);
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

/// A CA that has signed no server's certificate; removed when dropped.
#[derive(Debug)]
pub struct Stranger(Folder);

impl Stranger {
    /// Makes a CA.
    #[must_use]
    pub fn new() -> Self {
        let folder = Folder::new(None);
        Certificate::make(&folder, None);
        Self(folder)
    }

    /// Returns the file with its certificate.
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

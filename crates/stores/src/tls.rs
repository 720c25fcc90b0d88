//! The files that a URL names for TLS.

use std::path::Path;

use snowmint_coord::{Error, Result};

/// Contents of the files, as PEM. There is no `Debug`, which would show a key.
#[derive(Default)]
pub(crate) struct Files {
    /// Trusted authorities; if none, those of the system.
    pub(crate) ca: Option<Vec<u8>>,
    /// Our own certificate, and its key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    /// Reads the files that the parameters `ca`, `cert` and `key` name.
    ///
    /// # Errors
    /// `Invalid` for any other parameter, a file that cannot be read, and a certificate without its
    /// key.
    pub(crate) fn read<'a>(
        scheme: &str,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self> {
        let (mut ca, mut certificate, mut key) = (None, None, None);
        for (name, file) in parameters {
            let place = match name {
                "ca" => &mut ca,
                "cert" => &mut certificate,
                "key" => &mut key,
                _ => {
                    return Err(Error::invalid(format!(
                        "unknown parameter {name:?} in {scheme}: URL; use ca, cert or key"
                    )));
                }
            };
            let path = Path::new(file);
            *place = Some(std::fs::read(path).map_err(|error| {
                Error::invalid(format!(
                    "file of parameter {name} in {scheme}: URL cannot be read: {error}; check \
                     path and permissions"
                ))
                .with_detail(format!("file {path:?}"))
            })?);
        }
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(Error::invalid(format!(
                    "{scheme}: URL has only one of cert and key; give both"
                )));
            }
        };
        Ok(Self { ca, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_tls_files_are_rejected() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let read = |parameters: &[(&'static str, &'static str)]| {
            Files::read("etcds", parameters.iter().copied())
        };
        assert!(read(&[]).is_ok_and(|files| files.ca.is_none() && files.identity.is_none()));
        let files = read(&[("key", here), ("cert", here)]);
        assert!(files.is_ok_and(|files| files.ca.is_none() && files.identity.is_some()));
        for (parameters, part) in [
            (&[("cert", here)][..], "give both"),
            (&[("key", here)], "give both"),
            (&[("ca", "/nonexistent.pem")], "/nonexistent.pem"),
            (&[("insecure", "1")], "\"insecure\""),
        ] {
            let Err(refused) = read(parameters) else { panic!("{parameters:?} are taken") };
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }
}

//! Certificates that a client trusts, and credentials that it presents to servers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmint_coord::error::chain;
use snowmint_coord::private::read_trusted;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// Environment variable of the token, by which servers know the caller.
const TOKEN: &str = "SNOWMINT_TOKEN";
/// Environment variable of the token's file.
const TOKEN_FILE: &str = "SNOWMINT_TOKEN_FILE";
/// Environment variable of the file of CA certificates that sign servers' certificates.
const CA_FILE: &str = "SNOWMINT_CA_FILE";
/// Environment variable of the file of the client's certificate and key, for servers that request
/// one.
const CERT_FILE: &str = "SNOWMINT_CERT_FILE";

/// Certificates that a client trusts, and credentials that it presents. Files are read for each new
/// connection, and once more when a server rejects the token: their contents can be replaced while
/// the client runs. A file that every user of the machine can write is rejected.
///
/// The client presents nothing by default, and trusts the system's CAs.
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<TokenSource>,
    ca: Option<NamedFile>,
    cert: Option<NamedFile>,
}

#[derive(Clone)]
enum TokenSource {
    Text(Arc<str>),
    File(NamedFile),
}

/// A file, and the setting that named it: messages contain both.
#[derive(Clone)]
struct NamedFile {
    by: Arc<str>,
    path: Arc<Path>,
}

impl Credentials {
    /// Returns credentials that present nothing and trust the system's CAs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the process's environment: `SNOWMINT_TOKEN` or `SNOWMINT_TOKEN_FILE`,
    /// `SNOWMINT_CA_FILE`, `SNOWMINT_CERT_FILE`.
    ///
    /// # Errors
    /// When both a token and a token file are set.
    pub fn from_env() -> Result<Self, String> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let file = |name: &str| variable(name).map(|path| NamedFile::new(name, path.into()));
        let token = match (variable(TOKEN), file(TOKEN_FILE)) {
            (Some(_), Some(_)) => {
                return Err(format!("both {TOKEN} and {TOKEN_FILE} are set; set one"));
            }
            (Some(token), None) => Some(TokenSource::Text(token.into())),
            (None, file) => file.map(TokenSource::File),
        };
        Ok(Self { token, ca: file(CA_FILE), cert: file(CERT_FILE) })
    }

    /// Presents this token.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(TokenSource::Text(token.into()));
        self
    }

    /// Presents the token in this file.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(TokenSource::File(NamedFile::new("token file", path.into())));
        self
    }

    /// Trusts only certificates signed by a certificate of this file (PEM).
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca = Some(NamedFile::new("CA file", path.into()));
        self
    }

    /// Presents the certificate in this file (PEM, with its key) to servers that request one.
    #[must_use]
    pub fn cert_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.cert = Some(NamedFile::new("certificate file", path.into()));
        self
    }

    /// Reads the token, if there is one to present.
    ///
    /// # Errors
    /// A file cannot be read or trusted; the text names it and the reason.
    pub fn read_token(&self) -> Result<Option<String>, String> {
        let text = match &self.token {
            None => return Ok(None),
            Some(TokenSource::Text(text)) => text.to_string(),
            Some(TokenSource::File(file)) => String::from_utf8(file.read()?)
                .map_err(|_| format!("{file} is not UTF-8; write the token as text"))?,
        };
        match text.trim() {
            // Servers would treat an empty token as anonymous.
            "" => Err("token is empty; set it or leave it out".to_owned()),
            token => Ok(Some(token.to_owned())),
        }
    }

    /// Returns whether the client presents a certificate of its own.
    pub(crate) const fn has_cert(&self) -> bool {
        self.cert.is_some()
    }

    /// Returns the gRPC endpoint of a server, `HOST:PORT`, with TLS or without.
    ///
    /// # Errors
    /// A file cannot be used, or `address` is not an address.
    pub fn endpoint(&self, address: &str, tls: bool) -> Result<Endpoint, String> {
        let scheme = if tls { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(|_| format!("server address {address:?} is not HOST:PORT; correct it"))?;
        if !tls {
            return Ok(endpoint);
        }
        let config = self.tls_config(endpoint.uri().host().unwrap_or_default())?;
        endpoint.tls_config(config).map_err(|error| {
            let cause = chain(&error);
            format!("TLS cannot be set up: {cause}; check CA and certificate files")
        })
    }

    fn tls_config(&self, host: &str) -> Result<ClientTlsConfig, String> {
        // A certificate names an address without the brackets that a URL needs.
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let config = ClientTlsConfig::new().domain_name(name);
        let config = match self.read_ca()? {
            Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
            None => config.with_native_roots(),
        };
        Ok(match self.read_cert()? {
            // Certificate and key are both parsed from the same file.
            Some(pem) => config.identity(Identity::from_pem(pem.clone(), pem)),
            None => config,
        })
    }

    /// Reads the trusted certificates in PEM; `None`: the system's CAs are trusted.
    ///
    /// # Errors
    /// The same as of [`read_token`](Self::read_token).
    pub fn read_ca(&self) -> Result<Option<Vec<u8>>, String> {
        self.ca
            .as_ref()
            .map(|file| file.holding(b"-----BEGIN CERTIFICATE", "certificate"))
            .transpose()
    }

    /// Reads the client's certificate, its intermediates up to its root, and its key, in PEM.
    ///
    /// # Errors
    /// The same as of [`read_token`](Self::read_token).
    pub fn read_cert(&self) -> Result<Option<Vec<u8>>, String> {
        let Some(file) = &self.cert else { return Ok(None) };
        let pem = file.holding(b"-----BEGIN CERTIFICATE", "certificate")?;
        if !has(&pem, b"PRIVATE KEY-----") {
            return Err(format!("{file} has no PEM private key; append the key"));
        }
        Ok(Some(pem))
    }
}

/// Shows where credentials come from, and never a token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token: &dyn fmt::Debug = match &self.token {
            Some(TokenSource::Text(_)) => &"(not shown)",
            Some(TokenSource::File(file)) => &file.path,
            None => &"none",
        };
        let path = |file: &Option<NamedFile>| file.as_ref().map(|file| Arc::clone(&file.path));
        f.debug_struct("Credentials")
            .field("token", token)
            .field("ca", &path(&self.ca))
            .field("cert", &path(&self.cert))
            .finish()
    }
}

impl NamedFile {
    fn new(by: &str, path: PathBuf) -> Self {
        Self { by: by.into(), path: path.into() }
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        read_trusted(&self.to_string(), &self.path)
    }

    /// Returns the content when it contains `begin`. Its error quotes nothing: content that is not
    /// PEM may be a key.
    fn holding(&self, begin: &[u8], what: &str) -> Result<Vec<u8>, String> {
        let pem = self.read()?;
        match has(&pem, begin) {
            true => Ok(pem),
            false => Err(format!("{self} has no PEM {what}; name a file that has one")),
        }
    }
}

impl fmt::Display for NamedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.by, self.path)
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read_variables(variables: &[(&str, &str)]) -> Result<Credentials, String> {
        Credentials::from_variables(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn credentials_come_from_the_environment() {
        let none = read_variables(&[(TOKEN, ""), (CA_FILE, "")]).unwrap();
        assert_eq!(none.read_token(), Ok(None));
        assert_eq!((none.read_ca(), none.read_cert()), (Ok(None), Ok(None)));
        let token = read_variables(&[(TOKEN, " secret-1\n")]).unwrap();
        assert_eq!(token.read_token(), Ok(Some("secret-1".to_owned())));
        assert!(!format!("{token:?}").contains("secret-1"));
        let both = read_variables(&[(TOKEN, "secret-1"), (TOKEN_FILE, "f")]).unwrap_err();
        assert!(both.contains(TOKEN_FILE) && !both.contains("secret-1"), "{both}");
        assert!(read_variables(&[(TOKEN, "  ")]).unwrap().read_token().is_err(), "an empty token");
    }

    #[test]
    fn files_are_read_on_use_and_named_in_errors() {
        let file = std::env::temp_dir().join(format!("snowmint-shown-{}", std::process::id()));
        let path = file.to_str().unwrap();
        let shown =
            read_variables(&[(TOKEN_FILE, path), (CA_FILE, path), (CERT_FILE, path)]).unwrap();
        let missing = shown.read_token().unwrap_err();
        assert!(missing.contains(TOKEN_FILE) && missing.contains(path), "{missing}");
        std::fs::write(&file, "secret-1\n").unwrap();
        assert_eq!(shown.read_token(), Ok(Some("secret-1".to_owned())));
        std::fs::write(&file, "secret-2\n").unwrap();
        assert_eq!(shown.read_token(), Ok(Some("secret-2".to_owned())));
        for (refused, variable) in
            [(shown.read_ca().unwrap_err(), CA_FILE), (shown.read_cert().unwrap_err(), CERT_FILE)]
        {
            assert!(refused.contains(variable) && !refused.contains("secret"), "{refused}");
        }
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(shown.read_ca().unwrap().is_some());
        assert!(shown.read_cert().unwrap_err().contains("private key"));
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn world_writable_file_is_never_used() {
        let file = std::env::temp_dir().join(format!("snowmint-loose-{}", std::process::id()));
        let path = file.to_str().unwrap();
        std::fs::write(&file, "secret-1\n-----BEGIN CERTIFICATE-----\nPRIVATE KEY-----").unwrap();
        set_permissions(&file, Permissions::from_mode(0o606)).unwrap();
        let by_variables =
            read_variables(&[(TOKEN_FILE, path), (CA_FILE, path), (CERT_FILE, path)]).unwrap();
        let by_keys = Credentials::new().token_file(path).ca_file(path).cert_file(path);
        for shown in [by_variables, by_keys] {
            for read in [
                shown.read_token().map(drop),
                shown.read_ca().map(drop),
                shown.read_cert().map(drop),
            ] {
                let error = read.unwrap_err();
                assert!(error.contains("chmod o-w") && error.contains(path), "{error}");
                assert!(!error.contains("secret-1"), "{error}");
            }
        }
        std::fs::remove_file(file).unwrap();
    }
}

//! What a URL of etcd says.

use std::path::PathBuf;

use snowmint_coord::ErrorKind;

/// Where the servers are, and how to speak to them. Its `Debug` would show a password: there is none.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Place {
    /// `host:port` of each.
    pub(super) servers: Vec<String>,
    /// User and password.
    pub(super) user: Option<(String, String)>,
    pub(super) tls: bool,
    /// The certificate of the authority to trust, instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// Our certificate, and its key.
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// The port that etcd listens on unless told otherwise.
const PORT: u16 = 2379;

impl Place {
    pub(super) fn parse(url: &str, label: &str) -> Result<Self, ErrorKind> {
        let refused = |what: &str| ErrorKind::Invalid {
            what: format!(
                "{label}: {what}; a URL has the form etcd://USER:PASSWORD@HOST:PORT,HOST:PORT, \
                 with TLS etcds://HOST:PORT?ca=FILE&cert=FILE&key=FILE"
            ),
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("no ://"))?;
        let mut place = Self { tls: scheme == "etcds", ..Self::default() };
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, servers) = match rest.rsplit_once('@') {
            Some((user, servers)) => (Some(user), servers),
            None => (None, rest),
        };
        if let Some(user) = user {
            let (name, password) =
                user.split_once(':').ok_or_else(|| refused("a user without a password"))?;
            place.user = Some((name.into(), password.into()));
        }
        for server in servers.trim_end_matches('/').split(',') {
            if server.is_empty() || server.contains(['/', ' ']) {
                return Err(refused("a server without a name"));
            }
            let has_port = server.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let server = if has_port { server.into() } else { format!("{server}:{PORT}") };
            place.servers.push(server);
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("ca", file)) if place.tls => place.ca = Some(file.into()),
                Some(("cert", file)) if place.tls => place.certificate = Some(file.into()),
                Some(("key", file)) if place.tls => place.key = Some(file.into()),
                _ => return Err(refused("a parameter that is none of ca, cert and key of etcds:")),
            }
        }
        if place.certificate.is_some() != place.key.is_some() {
            return Err(refused("a certificate needs its key, and the other way round"));
        }
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Place {
        Place::parse(url, "etcd").unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn urls_say_servers_user_and_files() {
        let place = parsed("etcd://root:p@ss:word@one:1,two,[::1]:3,[::1]");
        assert_eq!(place.servers, ["one:1", "two:2379", "[::1]:3", "[::1]:2379"]);
        assert!(place.user == Some(("root".into(), "p@ss:word".into())) && !place.tls);
        let place = parsed("etcds://one/?ca=/a/ca.pem&cert=c&key=k");
        assert!(place.tls && place.ca == Some("/a/ca.pem".into()) && place.user.is_none());
        assert!(place.certificate == Some("c".into()) && place.key == Some("k".into()));
    }

    #[test]
    fn bad_urls_are_refused_without_their_password() {
        for url in [
            "etcd:one",
            "etcd://",
            "etcd://one,,two",
            "etcd://secret@one",
            "etcd://u:secret@one?ca=x",
            "etcds://u:secret@one?cert=x",
            "etcds://u:secret@one?what",
            "etcd://one/path",
        ] {
            let Err(error) = Place::parse(url, "etcd") else { panic!("{url} is taken") };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}

//! Parsing of the URL of a store with several servers.

use snowmint_coord::{Error, Result};

/// Addresses of servers, and the user. It has no `Debug`, which would show a password.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct ClusterUrl {
    pub(crate) scheme: String,
    /// `host:port` of each server.
    pub(crate) servers: Vec<String>,
    /// User and password.
    pub(crate) user: Option<(String, String)>,
    /// Text between the servers and a question mark: empty, or beginning with a slash and ending
    /// without one.
    pub(crate) path: String,
    pub(crate) parameters: Vec<(String, String)>,
}

impl ClusterUrl {
    /// Parses `SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?NAME=VALUE&…`.
    ///
    /// # Errors
    /// `Invalid`, with the right `form`, and without text that may be a password.
    pub(crate) fn parse(url: &str, port: u16, label: &str, form: &str) -> Result<Self> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| Error::invalid(format!("{label}: URL has no ://; write {form}")))?;
        let mut cluster_url = Self { scheme: scheme.into(), ..Self::default() };
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        if let Some(user) = user {
            let (name, password) = user.split_once(':').ok_or_else(|| {
                Error::invalid(format!("{label}: user without a password in the URL; write {form}"))
            })?;
            cluster_url.user = Some((name.into(), password.into()));
        }
        let servers = match rest.split_once('/') {
            Some((servers, path)) => {
                let path = path.trim_end_matches('/');
                cluster_url.path = if path.is_empty() { String::new() } else { format!("/{path}") };
                servers
            }
            None => rest,
        };
        for server in servers.split(',') {
            if server.is_empty() || server.contains(' ') {
                return Err(Error::invalid(format!(
                    "{label}: server without a name in the URL; write {form}"
                )));
            }
            let has_port = server.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let server = if has_port { server.into() } else { format!("{server}:{port}") };
            cluster_url.servers.push(server);
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or_else(|| {
                Error::invalid(format!(
                    "{label}: parameter without a value in the URL; write {form}"
                ))
            })?;
            cluster_url.parameters.push((name.into(), value.into()));
        }
        Ok(cluster_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<ClusterUrl> {
        ClusterUrl::parse(url, 2379, "the store", "x://HOST")
    }

    #[test]
    fn url_has_servers_user_path_and_parameters() {
        let Ok(cluster_url) = parse("x://root:p@ss:word@one:1,two,[::1]:3,[::1]/a/b/?c=d&e=")
        else {
            panic!("refused");
        };
        assert_eq!(cluster_url.scheme, "x");
        assert_eq!(cluster_url.servers, ["one:1", "two:2379", "[::1]:3", "[::1]:2379"]);
        assert!(cluster_url.user == Some(("root".into(), "p@ss:word".into())));
        assert_eq!(cluster_url.path, "/a/b");
        assert_eq!(cluster_url.parameters, [("c".into(), "d".into()), ("e".into(), String::new())]);
        assert!(parse("x://one/").is_ok_and(|cluster_url| cluster_url.path.is_empty()));
    }

    #[test]
    fn bad_urls_are_refused_without_their_password() {
        for url in
            ["x:one", "x://", "x://u:secret@one,,two", "x://secret@one", "x://u:secret@one?x"]
        {
            let Err(error) = parse(url) else { panic!("{url} is taken") };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}

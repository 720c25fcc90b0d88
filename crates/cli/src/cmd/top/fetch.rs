//! The calls: readiness often, since it needs no store; all servers; the metrics of named servers.

use snowmint_wire::http::{HistoryBody, ServersBody, SourcesBody, WorkersBody};

use super::metrics::Metrics;
use super::state::{Fetched, OWN, Update, key_of};
use crate::client::{ApiClient, CallError};
use crate::terminal::exit::{Failure, Outcome};

/// A named server, for its metrics.
pub(super) struct NamedServer {
    /// Host and port, as on the command line.
    pub(super) name: String,
    client: ApiClient,
}

impl NamedServer {
    /// Returns the servers of a URL, each by itself.
    pub(super) fn all_of(url: &str) -> Outcome<Vec<Self>> {
        urls(url)
            .into_iter()
            .map(|(name, url)| Ok(Self { name, client: ApiClient::looking(&url)? }))
            .collect()
    }

    /// Reads the metrics. Returns whether the server sent them.
    pub(super) fn metrics(&self, tell: &mut dyn FnMut(Update)) -> bool {
        let page = self.client.text("/metrics").map_err(sentence);
        let metrics = page.map(|page| Metrics::read(&page));
        let is_sent = metrics.is_ok();
        tell(Update::Metrics(self.name.clone(), Box::new(metrics)));
        is_sent
    }
}

/// Returns the name and the URL of each server of a URL with several.
fn urls(url: &str) -> Vec<(String, String)> {
    let (scheme, hosts) = match url.split_once("://") {
        Some((scheme, hosts)) => (format!("{scheme}://"), hosts),
        None => (String::new(), url),
    };
    let hosts = hosts.trim_end_matches('/').split(',');
    hosts.map(|host| (host.to_owned(), format!("{scheme}{host}"))).collect()
}

/// Asks whether the server can mint, and who it is.
pub(super) fn pulse(client: &ApiClient, tell: &mut dyn FnMut(Update)) {
    let ready = client.get("/readyz");
    let is_reached = ready.is_ok();
    tell(Update::Ready(ready.map_err(sentence)));
    if is_reached {
        tell(Update::Server(Box::new(client.get("/v1/server").map_err(sentence))));
    }
}

/// Asks for all servers and sources, and with `has_hours` for the last hour of each server.
pub(super) fn cluster(client: &ApiClient, has_hours: bool, tell: &mut dyn FnMut(Update)) {
    let members: Result<ServersBody, CallError> = client.get("/v1/servers");
    if let Err(CallError::NotReached(error)) = members {
        // The other calls would try the same servers.
        return tell(Update::Members(Err(error)));
    }
    let hours = if has_hours { hours(members.as_ref().ok()) } else { Vec::new() };
    tell(Update::Members(members.map_err(sentence)));
    let workers: Result<WorkersBody, CallError> = client.get("/v1/workers");
    tell(Update::Workers(workers.map(|body| body.workers).map_err(sentence)));
    let sources: Result<SourcesBody, CallError> = client.get("/v1/sources");
    tell(Update::Sources(sources.map(|body| body.sources).map_err(sentence)));
    for (member, path) in hours {
        let history: Fetched<HistoryBody> = client.get(&path).map_err(sentence);
        tell(Update::History(member, Box::new(history)));
    }
}

/// Returns the key and the path of each last hour: of the servers that responded, or of the called
/// one alone.
fn hours(members: Option<&ServersBody>) -> Vec<(String, String)> {
    const PATH: &str = "/v1/history";
    let Some(ServersBody { servers, .. }) = members else {
        return vec![(OWN.to_owned(), PATH.to_owned())];
    };
    let responding = servers.iter().filter(|server| server.report.is_some());
    responding
        .map(|server| {
            let key = key_of(server.member.as_deref());
            let path = if server.own { PATH.to_owned() } else { format!("{PATH}?member={key}") };
            (key.to_owned(), path)
        })
        .collect()
}

fn sentence(error: CallError) -> String {
    Failure::from(error).message().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_named_server_is_called_by_itself() {
        for (url, parts) in [
            ("127.0.0.1:1", &[("127.0.0.1:1", "127.0.0.1:1")][..]),
            ("https://a/", &[("a", "https://a")]),
            ("snowmints://a:1,b/", &[("a:1", "snowmints://a:1"), ("b", "snowmints://b")]),
        ] {
            let urls = urls(url);
            let shown: Vec<(&str, &str)> =
                urls.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
            assert_eq!(shown, parts);
        }
    }
}

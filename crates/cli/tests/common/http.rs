//! A blocking HTTP client that keeps its connections.

use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// A client, with a thread that notices closed connections.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client<HttpConnector, Empty<Bytes>>,
    runtime: Runtime,
    within: Duration,
}

impl Http {
    /// Returns a client that waits this long for each response.
    pub(crate) fn within(within: Duration) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { client: Client::builder(TokioExecutor::new()).build_http(), runtime, within }
    }

    /// Returns a response's status and text, if there is a response.
    pub(crate) fn get(&self, url: &str) -> Option<(u16, String)> {
        let response = async {
            let response = self.client.get(url.parse().ok()?).await.ok()?;
            let status = response.status().as_u16();
            let text = response.into_body().collect().await.ok()?.to_bytes();
            Some((status, String::from_utf8(text.into()).ok()?))
        };
        self.runtime.block_on(async { timeout(self.within, response).await.ok()? })
    }
}

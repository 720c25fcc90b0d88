//! Holder of a stripe: a deployment, through one of its servers, or a store.

use serde_json::{Map, Value, json};
use snowmint_coord::store::StoreConnector as _;
use snowmint_coord::{
    END_MS, ErrorKind, NewStripe, Node, NodeSettings, Platform, SourceInfo, SourceSpec,
};
use snowmint_server::source_body;
use snowmint_stores::shown;
use snowmint_wire::http::{RestripeRequest, SourceBody};
use tokio::runtime::Runtime;

use super::super::shown::path;
use crate::audit::AuditLog;
use crate::client::{ApiClient, Method};
use crate::config::Config;
use crate::open::store::{self, ConfiguredConnector};
use crate::terminal::exit::{Failure, Outcome};

/// Connection to a holder of a stripe.
pub(super) enum StripeTarget {
    Server(Box<ApiClient>),
    Store(Box<OpenStore>),
}

/// A store that this command opened itself.
pub(super) struct OpenStore {
    node: Node,
    runtime: Runtime,
    audit_log: AuditLog,
    /// Name of the store in the audit trail.
    shown: String,
}

/// The node has no worker number and mints nothing, so it has only its membership to release.
impl Drop for OpenStore {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.node.end(END_MS));
    }
}

impl StripeTarget {
    /// Opens the store of this name in `[stores]`, or of this URL, or the server of this URL.
    pub(super) fn open(text: &str, config: &Config) -> Outcome<Self> {
        let connector = match config.stores.get(text) {
            Some(place) => ConfiguredConnector::named(&format!("stores.{text}"), place, config)?,
            None if snowmint_stores::is_url(text) => {
                ConfiguredConnector::at(&shown(text), text, config)?
            }
            None => return Ok(Self::Server(Box::new(ApiClient::new(text)?))),
        };
        let runtime = store::runtime()?;
        let node = runtime.block_on(async {
            let store = connector.open().await?;
            Node::open(store, NodeSettings::default(), Platform::system()).await
        })?;
        let audit_log = AuditLog::File(config.server.data_dir.clone());
        let shown = shown(text);
        Ok(Self::Store(Box::new(OpenStore { node, runtime, audit_log, shown })))
    }

    /// Returns its state of the source; `None` if a store does not have the source yet.
    pub(super) fn read_state(&self, name: &str) -> Outcome<Option<SourceBody>> {
        match self {
            Self::Server(client) => Ok(client.get(&path(name)).map(Some)?),
            Self::Store(open) => match open.runtime.block_on(open.node.definition(name)) {
                Ok(info) => Ok(Some(source_body(&info))),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Sets the end of its stripe; `None` removes the end.
    pub(super) fn end(&self, name: &str, until: Option<u64>) -> Outcome<SourceBody> {
        match self {
            Self::Server(client) => {
                let request = json!({ "until": until });
                Ok(client.call(&Method::PATCH, &path(name), Some(&request))?)
            }
            Self::Store(open) => open.record_change("altered", name, async {
                let before = open.node.definition(name).await?;
                let spec = SourceSpec { until, ..before.spec };
                open.node.alter(name, &spec, Some(before.version)).await
            }),
        }
    }

    /// Gives it another stripe.
    pub(super) fn restripe(&self, name: &str, request: RestripeRequest) -> Outcome<SourceBody> {
        match self {
            Self::Server(client) => {
                let path = format!("{}/restripe", path(name));
                Ok(client.call(&Method::POST, &path, Some(&request))?)
            }
            Self::Store(open) => {
                let RestripeRequest { offset, increment, first, version } = request;
                let wanted = NewStripe { offset, increment, first, if_version: version };
                open.record_change("restriped", name, open.node.restripe(name, wanted))
            }
        }
    }

    /// Defines the source in a store that did not have it.
    pub(super) fn define(&self, name: &str, keys: Map<String, Value>) -> Outcome<SourceBody> {
        let spec = SourceSpec::from_json(&Value::Object(keys).to_string())
            .map_err(|error| Failure::usage(error.to_string()))?;
        match self {
            Self::Server(_) => Err(Failure::usage(format!(
                "source {name:?} does not exist on the added server; define it there"
            ))),
            Self::Store(open) => open.record_change("defined", name, open.node.define(name, &spec)),
        }
    }
}

impl OpenStore {
    /// Makes a change and records it in the audit trail.
    fn record_change(
        &self,
        how: &str,
        name: &str,
        change: impl Future<Output = snowmint_coord::Result<SourceInfo>>,
    ) -> Outcome<SourceBody> {
        let before = self.runtime.block_on(self.node.definition(name)).ok();
        let after = self.runtime.block_on(change)?;
        let how = format!("{how} in {}", self.shown);
        self.audit_log.changed(&how, name, before.as_ref(), Some(&after));
        Ok(source_body(&after))
    }
}

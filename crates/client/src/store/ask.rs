//! A call of a verb, at whichever server responds.

use snowmint_coord::{ErrorKind, Result, Verb};

use crate::call_failure::{CallFailure, of_store};
use crate::servers::{Call, Servers};
use crate::settings::Settings;
use crate::store_error::{Fallible, refused};

/// A verb, and the path of the gRPC method that calls it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
}

pub(super) async fn ask<Q, A>(
    servers: &Servers,
    method: Method,
    again: bool,
    message: Q,
) -> Result<A>
where
    Q: prost::Message + Clone + 'static,
    A: prost::Message + Default + Fallible + 'static,
{
    let Method { verb, path } = method;
    let Settings { call_ms: within_ms, attempt_ms, .. } = *servers.settings();
    let call = Call { again, within_ms, attempt_ms };
    let response = servers.ask(call, |link| {
        let message = message.clone();
        async move {
            let response: Result<A, _> = link.ask(path, message).await;
            let mut response = response.map_err(|status| of_store(path, &link.address, &status))?;
            let Some(error) = response.error() else { return Ok(response) };
            let error = refused(error);
            match error.kind() {
                ErrorKind::Unavailable => Err(CallFailure::BackendLost(error)),
                _ => Err(CallFailure::Refused(error)),
            }
        }
    });
    response.await.map_err(|error| error.with_verb(verb))
}

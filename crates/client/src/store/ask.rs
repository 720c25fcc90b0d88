//! A call of a verb, at whichever server responds.

use snowmint_coord::{ErrorKind, Result};
use snowmint_store_rpc::{Codec as _, Malformed, StoreRequest, StoreResponse as _, store_error};

use crate::call_failure::{CallFailure, of_store};
use crate::servers::{Call, Servers};
use crate::settings::Settings;

/// Calls the verb of a request. `again`: whether a repeat has the same effect, or is recognised.
pub(super) async fn ask<Q: StoreRequest>(
    servers: &Servers,
    again: bool,
    call: Q::Call,
) -> Result<Q::Reply> {
    let message: Q = call.write();
    let Settings { call_ms: within_ms, attempt_ms, .. } = *servers.settings();
    let response = servers.ask(Call { again, within_ms, attempt_ms }, |link| {
        let message = message.clone();
        async move {
            let response: Result<Q::Response, _> = link.ask(Q::PATH, message).await;
            let mut response =
                response.map_err(|status| of_store(Q::PATH, &link.address, &status))?;
            let Some(error) = response.error().take() else { return Ok(response) };
            let error = store_error(error).for_program();
            match error.kind() {
                ErrorKind::Unavailable => Err(CallFailure::BackendLost(error)),
                _ => Err(CallFailure::Refused(error)),
            }
        }
    });
    let response = response.await.map_err(|error| error.with_verb(Q::VERB))?;
    Q::Reply::read(response).map_err(Malformed::of_response)
}

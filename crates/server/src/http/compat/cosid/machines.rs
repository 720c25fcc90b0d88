//! Machine IDs: external leases of CosId's clients, which mint with them by themselves.
//!
//! A client's heartbeat names the client and no number, so the server reads the number from the
//! store. Any server can respond: none keeps state that matters.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, post};
use jiff::SignedDuration;
use snowmint_coord::external::KEEP_MS_MAX;
use snowmint_coord::{ExternalClient, ExternalLease, ExternalLeaseStatus};
use snowmint_wire::error::Code;
use snowmint_wire::http::JSON;
use snowmint_wire::http::compat::{COSID_LOST, COSID_NOT_FOUND, COSID_OVERFLOW, CosIdMachineBody};

use super::result::{CosId, CosIdError, CosIdResult, NamePath, part};
use crate::error::{Error, shown};
use crate::http::compat::params::{Params, whole};
use crate::http::for_caller::ForCaller;
use crate::http::response::json_as;

/// Returns the methods: lease a machine ID, renew it, release it.
pub(super) fn methods() -> MethodRouter<std::sync::Arc<CosId>> {
    post(distribute).patch(guard).delete(revert)
}

/// The calling instance, and whether it keeps the number forever.
#[derive(Debug)]
struct Instance {
    external_client: ExternalClient,
    stable: bool,
    params: Params,
}

async fn distribute(cosid: ForCaller<CosId>, namespace: NamePath, request: Request) -> CosIdResult {
    let instance = Instance::of(&cosid, namespace, request).await?;
    let bits = whole("machineBit", instance.params.need("machineBit")?, 1)?;
    let bits = u32::try_from(bits).unwrap_or(u32::MAX);
    let keep_ms = instance.keep_ms()?;
    let lease = cosid
        .service
        .lease_external(&instance.external_client, bits, keep_ms, cosid.machines_max)
        .await;
    let ExternalLease { number, after } = lease.map_err(|error| match error.code() {
        Code::PoolFull | Code::LimitExceeded => CosIdError { error, code: Some(COSID_OVERFLOW) },
        _ => error.into(),
    })?;
    let body = CosIdMachineBody { machine_id: number, last_time_stamp: after.get() };
    Ok(json_as(StatusCode::OK, JSON, &body))
}

async fn guard(cosid: ForCaller<CosId>, namespace: NamePath, request: Request) -> CosIdResult {
    let instance = Instance::of(&cosid, namespace, request).await?;
    let keep_ms = instance.keep_ms()?;
    instance.kept(&cosid, keep_ms).await
}

/// Releases a number, unless the request is for a stable instance: this keeps its number, as in
/// CosId.
async fn revert(cosid: ForCaller<CosId>, namespace: NamePath, request: Request) -> CosIdResult {
    let instance = Instance::of(&cosid, namespace, request).await?;
    if instance.stable {
        return instance.kept(&cosid, KEEP_MS_MAX).await;
    }
    if cosid.service.release_external(&instance.external_client).await? {
        return Ok(StatusCode::OK.into_response());
    }
    Err(instance.without(COSID_NOT_FOUND, "has no machine ID"))
}

impl Instance {
    async fn of(cosid: &CosId, namespace: NamePath, request: Request) -> Result<Self, Error> {
        let scope = part(namespace)?;
        let params = Params::of(request, cosid.body_bytes_max).await?;
        let stable = match params.get("stable")? {
            Some("true") => true,
            None | Some("" | "false") => false,
            Some(other) => {
                let message = format!("stable {} is not true or false; correct it", shown(other));
                return Err(Error::bad_request(message));
            }
        };
        let label = params.need("instanceId")?.to_owned();
        Ok(Self { external_client: ExternalClient { scope, label }, stable, params })
    }

    /// Returns how long an instance keeps its number after its last heartbeat.
    fn keep_ms(&self) -> Result<u64, Error> {
        let keep_ms = duration_ms("safeGuardDuration", self.params.need("safeGuardDuration")?)?;
        Ok(if self.stable { KEEP_MS_MAX } else { keep_ms })
    }

    async fn kept(&self, cosid: &ForCaller<CosId>, keep_ms: u64) -> CosIdResult {
        match cosid.service.renew_external(&self.external_client, keep_ms).await? {
            ExternalLeaseStatus::Held => Ok(StatusCode::OK.into_response()),
            ExternalLeaseStatus::Lost => {
                Err(self.without(COSID_LOST, "missed its heartbeats and lost its machine ID"))
            }
            ExternalLeaseStatus::Unknown => Err(self.without(COSID_NOT_FOUND, "has no machine ID")),
        }
    }

    fn without(&self, code: &'static str, reason: &str) -> CosIdError {
        let ExternalClient { scope, label } = &self.external_client;
        let message =
            format!("instance {} of namespace {} {reason}; restart it", shown(label), shown(scope));
        CosIdError { error: Error::bad_request(message), code: Some(code) }
    }
}

/// Parses a duration in Java's form: `PT5M`. A longer one than 64 bits hold becomes the longest.
fn duration_ms(name: &str, text: &str) -> Result<u64, Error> {
    let wrong = || {
        let message =
            format!("{name} {} is not a duration above 0; write one such as PT5M", shown(text));
        Error::bad_request(message)
    };
    let duration: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    if !duration.is_positive() {
        return Err(wrong());
    }
    // A shorter duration counts as one millisecond.
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_javas() {
        for (text, ms) in [
            ("PT5M", 300_000),
            ("PT0.5S", 500),
            ("PT26H", 93_600_000),
            ("PT0.000001S", 1),
            // Duration.ofMillis(Long.MAX_VALUE), CosId's form of "forever".
            ("PT2562047788015H12M55.807S", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(duration_ms("d", text).unwrap(), ms, "{text}");
        }
        for text in ["", "PT0S", "PT-5M", "-PT5M", "5", "five", "PT", "P1Y"] {
            let message = duration_ms("d", text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("d {text:?} is not")), "{text}: {message}");
        }
    }
}

//! Handler of `/metrics`, which Prometheus scrapes.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use mediatype::{Name, names};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::accept::{Offer, preferred};
use super::for_caller::ForCaller;
use super::response::{self, ErrorResponse};
use super::state::HttpState;
use crate::observe::meter::PageFormat;

/// The formats, the one for callers without a preference first.
const FORMATS: [(Offer, PageFormat); 2] = [
    (Offer::new(names::TEXT, names::PLAIN).version("0.0.4"), PageFormat::Prometheus),
    (
        Offer::new(names::APPLICATION, Name::new_unchecked("openmetrics-text")).version("1.0.0"),
        PageFormat::OpenMetrics,
    ),
];

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new().routes(routes!(page))
}

/// Returns all metrics, for callers that may read them.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = OK, description = "Text for Prometheus, in the format that `Accept` prefers", content((String = "text/plain"), (String = "application/openmetrics-text")))),
)]
pub(super) async fn page(
    state: ForCaller<HttpState>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let format = wanted(&headers);
    let page = state.service.metrics(format).await?;
    let unsent_permit = state.service.hold_bytes(page.len())?;
    Ok(response::counted_bytes(format.content_type(), page.into_bytes(), unsent_permit))
}

/// Returns the format that a caller prefers. A caller that accepts neither gets the one that
/// everything reads, as from the libraries of Prometheus.
fn wanted(headers: &HeaderMap) -> PageFormat {
    preferred(headers, &FORMATS).unwrap_or(PageFormat::Prometheus)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::ACCEPT;

    use super::*;

    #[test]
    fn accept_header_selects_the_format_of_metrics() {
        assert_eq!(wanted(&HeaderMap::new()), PageFormat::Prometheus);
        let format = |accept: &'static str| {
            wanted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
        };
        for accept in [
            "*/*",
            "text/*",
            "text/plain",
            "text/plain; version=0.0.4",
            "text/plain;version=0.0.4;q=0.6, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;version=1.0.0;q=0.1, */*;q=0.2",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;version=2.0.0",
            "application/json",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
            "application/openmetrics-text;q=x",
            "",
        ] {
            assert_eq!(format(accept), PageFormat::Prometheus, "{accept}");
        }
        for accept in [
            "application/openmetrics-text; version=1.0.0",
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8",
            "application/openmetrics-text, */*",
            "text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.6",
            // Prometheus 2 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
             q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;\
             escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(format(accept), PageFormat::OpenMetrics, "{accept}");
        }
    }
}

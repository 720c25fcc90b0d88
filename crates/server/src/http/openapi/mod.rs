//! `/openapi.json`, made from the handlers, and `/docs`, a page for trying them.

mod schemas;
mod token_policy;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
#[cfg(feature = "swagger-ui")]
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use snowmint_wire::http::{ErrorBody, JSON};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;

use super::console::guards;
#[cfg(feature = "swagger-ui")]
use super::response::no_such_path;
use super::state::HttpState;
use super::static_text::StaticText;
use super::{admin, counters, health, ids, metrics, servers};

pub(super) use token_policy::TokenPolicy;

/// Name of tokens in the description; they have no scopes.
const TOKEN: &str = "token";
const NO_SCOPES: [&str; 0] = [];
/// Name in the description of the error response of every call.
const ERROR_RESPONSE: &str = "Refusal";

/// The console's policy, relaxed: the page writes styles and pictures into itself, and its library
/// knows no trusted types.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Common parts of all descriptions.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Snowmint",
        description = "Unique IDs for distributed systems. IDs are strings, since many readers hold \
            numbers as floating point; times are RFC 3339 in UTC.",
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "IDs", description = "Minting and decoding of IDs"),
        (name = "sources", description = "Sources that callers mint from"),
        (name = "layouts", description = "Division of an ID's bits"),
        (name = "workers", description = "Worker numbers, and recovery of the store"),
        (name = "health", description = "State of the server, for monitoring"),
    ),
)]
struct CommonDescription;

/// Returns every described path, with its handler.
pub(super) fn described() -> OpenApiRouter<Arc<HttpState>> {
    let mut about = CommonDescription::openapi();
    about.info.version = env!("CARGO_PKG_VERSION").into();
    OpenApiRouter::with_openapi(about)
        .merge(admin::routes())
        .merge(counters::routes())
        .merge(health::routes())
        .merge(ids::routes())
        .merge(metrics::routes())
        .merge(servers::routes())
}

/// Returns the routes of the description itself, and of the page that reads it.
pub(super) fn pages(about: &OpenApi, token_policy: TokenPolicy) -> Router<Arc<HttpState>> {
    let about = complete(about.clone(), token_policy).to_json().unwrap_or_default();
    let about = Arc::new(StaticText::new(JSON, about.into()));
    let description = move |headers: HeaderMap| ready(about.response(&headers));
    let page = Router::new()
        // With the slash, so that relative links of the page work.
        .route("/docs", get(|| async { Redirect::permanent("/docs/") }))
        .route("/docs/", get(|| file("")))
        .route("/docs/{file}", get(|Path(name): Path<String>| async move { file(&name).await }))
        .layer(map_response(async |page: Response| (guards(POLICY), page)));
    Router::new().route("/openapi.json", get(description)).merge(page)
}

/// Adds the common parts: every call can fail, in one form; every call takes a token, and needs one
/// where tokens are required.
fn complete(mut about: OpenApi, token_policy: TokenPolicy) -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    if let Some(components) = &mut about.components {
        components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer));
        schemas::fill_in(components);
    }
    let token = SecurityRequirement::new(TOKEN, NO_SCOPES);
    let optional = vec![SecurityRequirement::default(), token.clone()];
    let is_required = token_policy != TokenPolicy::NotRequired;
    about.security = Some(if is_required { vec![token] } else { optional.clone() });
    let error = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    let error_response =
        ResponseBuilder::new().description("Error with its code").content(JSON, error);
    let error_response = schemas::headers()
        .into_iter()
        .fold(error_response, |error_response, (name, header)| error_response.header(name, header))
        .build();
    if let Some(components) = &mut about.components {
        components.responses.insert(ERROR_RESPONSE.into(), error_response.into());
    }
    for (name, path) in &mut about.paths.paths {
        let PathItem { get, put, post, patch, delete, .. } = path;
        let calls = [get, put, post, patch, delete];
        for call in calls.into_iter().flatten() {
            let error_response = RefOr::Ref(Ref::from_response_name(ERROR_RESPONSE));
            call.responses.responses.insert("default".into(), error_response);
            for parameter in call.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter {
                    schemas::narrow(parameter);
                }
            }
            if let Some(RefOr::T(body)) = &mut call.request_body {
                schemas::no_null(body);
            }
            if is_required && token_policy.is_open(name) {
                call.security = Some(optional.clone());
            }
        }
    }
    about
}

/// Explains that the page is absent.
#[cfg(not(feature = "swagger-ui"))]
async fn file(_: &str) -> Response {
    let message =
        "this server was built without feature `swagger-ui`; /openapi.json describes every call";
    let error = crate::error::Error::new(snowmint_wire::error::Code::NotFound, message);
    super::response::ErrorResponse(error).into_response()
}

/// Returns a file of the page from this program's own memory: the longest is neither copied nor
/// compressed for each request.
#[cfg(feature = "swagger-ui")]
async fn file(name: &str) -> Response {
    let config = Arc::new(utoipa_swagger_ui::Config::from("../openapi.json"));
    let found = utoipa_swagger_ui::serve(name, config).ok().flatten();
    let Some(file) = found else {
        let uri = format!("/docs/{name}").parse().unwrap_or_default();
        return no_such_path(uri).await.into_response();
    };
    ([(CONTENT_TYPE, file.content_type)], file.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Environment variable that rewrites the file instead of comparing it.
    const WRITE: &str = "SNOWMINT_WRITE_GENERATED";

    #[test]
    fn description_is_made_from_the_code() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let (_, about) = described().split_for_parts();
        let made = complete(about, TokenPolicy::NotRequired).to_pretty_json().unwrap() + "\n";
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(committed == made, "run the test with {WRITE}=1 and look at what changed");
    }

    #[test]
    fn every_call_documents_its_errors() {
        let (_, about) = described().split_for_parts();
        let about: serde_json::Value =
            serde_json::from_str(&complete(about, TokenPolicy::NotRequired).to_json().unwrap())
                .unwrap();
        let error_response = &about["components"]["responses"][ERROR_RESPONSE];
        let error = &error_response["content"][JSON]["schema"]["$ref"];
        assert_eq!(error, "#/components/schemas/ErrorBody");
        assert!(error_response["headers"]["Retry-After"].is_object(), "{error_response}");
        let mut calls = 0;
        for (path, methods) in about["paths"].as_object().unwrap() {
            for (method, call) in methods.as_object().unwrap() {
                calls += 1;
                let error_response = &call["responses"]["default"]["$ref"];
                assert_eq!(error_response, "#/components/responses/Refusal", "{method} {path}");
                assert!(
                    !call["summary"].as_str().unwrap_or_default().is_empty(),
                    "{method} {path}"
                );
            }
        }
        assert!(calls >= 17, "{calls}");
    }

    #[test]
    fn server_that_requires_tokens_says_which_calls_need_one() {
        let needs = |token_policy: TokenPolicy, path: &str| {
            let (_, about) = described().split_for_parts();
            let about = serde_json::to_value(complete(about, token_policy)).unwrap();
            let call = &about["paths"][path]["get"];
            let security = call.get("security").unwrap_or(&about["security"]);
            let ways = security.as_array().unwrap();
            assert!(ways.iter().any(|way| way.get(TOKEN).is_some()), "{path}");
            ways.iter().all(|way| way.get(TOKEN).is_some())
        };
        let tokens = TokenPolicy::Required { but_for_metrics: false };
        for (path, is_needed) in [
            ("/livez", false),
            ("/readyz", false),
            ("/v1/layouts", false),
            ("/v1/layouts/{layout}", false),
            ("/metrics", true),
            ("/v1/server", true),
            ("/v1/sources", true),
            ("/v1/ids/{source}", true),
        ] {
            assert_eq!(needs(tokens, path), is_needed, "{path}");
            assert!(!needs(TokenPolicy::NotRequired, path), "{path}");
        }
        assert!(!needs(TokenPolicy::Required { but_for_metrics: true }, "/metrics"));
    }
}

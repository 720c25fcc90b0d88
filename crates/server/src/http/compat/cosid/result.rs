//! State of the API, and the forms of its responses.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use snowmint_wire::http::JSON;
use snowmint_wire::http::compat::CosIdErrorBody;

use crate::config::KeySources;
use crate::error::Error;
use crate::http::compat::common::status_of;
use crate::http::for_caller::HasService;
use crate::http::response::{error_response, json_as};
use crate::service::{Service, invalid};

#[derive(Debug)]
pub(super) struct CosId {
    pub(super) service: Service,
    pub(super) keys: KeySources,
    pub(super) define: bool,
    pub(super) machines_max: u64,
    pub(super) body_bytes_max: usize,
}

impl HasService for CosId {
    fn service(&self) -> &Service {
        &self.service
    }
}

/// An error response, with the code that clients look for, if it has one.
pub(super) struct CosIdError {
    pub(super) error: Error,
    pub(super) code: Option<&'static str>,
}

impl<E: Into<Error>> From<E> for CosIdError {
    fn from(error: E) -> Self {
        Self { error: error.into(), code: None }
    }
}

impl IntoResponse for CosIdError {
    fn into_response(self) -> Response {
        let Self { error: refused, code } = self;
        let status = match refused.code().row().http {
            _ if code.is_some() => StatusCode::BAD_REQUEST,
            ..500 => status_of(&refused, StatusCode::BAD_REQUEST),
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let code = code.unwrap_or_else(|| status.as_str()).to_owned();
        error_response(&refused, |message| {
            let (code, msg) = (code.clone(), message.to_owned());
            json_as(status, JSON, &CosIdErrorBody { code, msg, errors: Vec::new() })
        })
    }
}

pub(super) type CosIdResult = Result<Response, CosIdError>;
pub(super) type NamePath = Result<Path<String>, PathRejection>;
pub(super) type NamesPath = Result<Path<(String, String)>, PathRejection>;

pub(super) fn part(name: NamePath) -> Result<String, Error> {
    match name {
        Ok(Path(name)) => Ok(name),
        Err(_) => Err(invalid::path()),
    }
}

//! Parameters in the form of servlets: of the query, and of a form in the body.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use percent_encoding::percent_decode;

use crate::error::{Error, shown};
use crate::http::response::{self, ErrorResponse};

const FORM: &str = "application/x-www-form-urlencoded";

/// Parameters of a request. Unknown parameters are ignored, like in servlets.
#[derive(Debug)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) async fn of(request: Request, body_bytes_max: usize) -> Result<Self, Error> {
        let (head, body) = request.into_parts();
        let mut params = Self::of_query(&head.uri)?;
        let body =
            response::bytes(body, body_bytes_max).await.map_err(|ErrorResponse(error)| error)?;
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = content_type.and_then(|value| value.split(';').next());
        if kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM)) {
            params.0.extend(pairs("form", &body)?);
        }
        Ok(params)
    }

    fn of_query(uri: &Uri) -> Result<Self, Error> {
        let query = uri.query().unwrap_or_default();
        pairs("query", query.as_bytes()).map(|pairs| Self(pairs.collect()))
    }

    /// Returns a parameter, if it is present. Systems disagree on the value of a repeated one, so
    /// it is an error.
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, Error> {
        let mut found = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (value, None) => Ok(value.map(String::as_str)),
            _ => {
                let message = format!("parameter {name} is present more than once; send it once");
                Err(Error::bad_request(message))
            }
        }
    }

    /// Returns a parameter that must be present.
    pub(super) fn need(&self, name: &str) -> Result<&str, Error> {
        match self.get(name)? {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(Error::bad_request(format!("parameter {name} is missing; send it"))),
        }
    }
}

/// Parses pairs. Invalid UTF-8 is rejected: all such texts would be read as one. The error does not
/// repeat it, since it may contain a token.
fn pairs<'b>(
    what: &str,
    bytes: &'b [u8],
) -> Result<impl Iterator<Item = (String, String)> + use<'b>, Error> {
    if percent_decode(bytes).decode_utf8().is_err() {
        let message = format!("{what} is not UTF-8; write each byte above 7F as %XX");
        return Err(Error::bad_request(message));
    }
    let pairs = form_urlencoded::parse(bytes);
    Ok(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())))
}

/// Parses a whole number of at least `least`, in digits. A number too large becomes the largest,
/// which the limits then reject with their own message.
pub(super) fn whole(name: &str, text: &str, least: u64) -> Result<u64, Error> {
    let digits = text.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse().unwrap_or(u64::MAX) {
        number if is_number && number >= least => Ok(number),
        _ => Err(Error::bad_request(format!(
            "{name} {} is not a whole number of at least {least}; correct it",
            shown(text)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_may_be_present_only_once() {
        let params = Params::of_query(&"/x?a=1&b=%2C+x&c=&d=1&d=2".parse().unwrap()).unwrap();
        assert_eq!(params.get("a").unwrap(), Some("1"));
        assert_eq!(params.need("b").unwrap(), ", x");
        assert_eq!(params.get("c").unwrap(), Some(""));
        assert_eq!(params.get("e").unwrap(), None);
        for name in ["c", "d", "e"] {
            let message = params.need(name).unwrap_err().message().to_owned();
            assert!(message.starts_with(&format!("parameter {name} ")), "{message}");
        }
    }

    #[test]
    fn numbers_are_whole_and_not_too_small() {
        for (text, number) in [("1", 1), (" 7 ", 7), ("007", 7), ("99999999999999999999", u64::MAX)]
        {
            assert_eq!(whole("step", text, 1).unwrap(), number, "{text}");
        }
        for text in ["", " ", "0", "-1", "+1", "1.5", "1e3", "0x10", "٣", "one"] {
            let message = whole("step", text, 1).unwrap_err().to_string();
            assert!(message.starts_with(&format!("step {text:?} is not")), "{text}: {message}");
        }
    }
}

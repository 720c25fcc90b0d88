//! The parameters of a URL. The drivers ignore unknown parameters, so a typo in a name would stay
//! unnoticed and could leave the server unverified.

use std::str::FromStr;

use snowmint_coord::{Error, Result};

/// Rejects an unknown parameter, and a value that the driver (`O`) cannot parse. Text that may be a
/// part of a password is not shown.
///
/// # Errors
/// `Invalid`, with the parameter or the list of known ones.
pub(crate) fn check<O: FromStr>(url: &str, label: &str, known: &[&str]) -> Result<()> {
    if url.contains('#') {
        return Err(Error::invalid(format!(
            "{label}: # in the URL must be percent-encoded; write %23"
        )));
    }
    let Some((place, parameters)) = url.split_once('?') else { return Ok(()) };
    if parameters.contains('@') {
        return Err(Error::invalid(format!(
            "{label}: ? in a password or @ in a parameter must be percent-encoded; write %3F or %40"
        )));
    }
    let scheme = place.split(':').next().unwrap_or_default();
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        // `options[NAME]` sets a parameter of PostgreSQL's session.
        let kind = match name.split_once('[') {
            Some((kind, rest)) if rest.ends_with(']') => kind,
            _ => name,
        };
        if !known.contains(&kind) {
            let known = known.join(", ");
            return Err(Error::invalid(format!(
                "{label}: unknown URL parameter {name:?}; use {known}"
            )));
        }
        // Parsed alone, so that an error is due to this parameter.
        if value.is_empty() || O::from_str(&format!("{scheme}://localhost/?{parameter}")).is_err() {
            return Err(Error::invalid(format!(
                "{label}: invalid value of URL parameter {name:?}; correct it"
            )));
        }
    }
    Ok(())
}
/// Removes one of Snowmint's own parameters from a URL. The last value counts.
pub(crate) fn remove(url: &str, name: &str) -> (Option<String>, String) {
    let Some((place, parameters)) = url.split_once('?') else { return (None, url.to_owned()) };
    let mut value = None;
    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some((found, text)) if found == name => value = Some(text.to_owned()),
            _ => others.push(parameter),
        }
    }
    let others = others.join("&");
    let url = if others.is_empty() { place.into() } else { format!("{place}?{others}") };
    (value, url)
}

//! IDs decoded by a server, which knows their source's layout, text form and disguise.

use snowmint_core::Rfc3339;
use snowmint_core::text::Format;
use snowmint_server::decoding::Age;
use snowmint_wire::http::DecodedBody;

use super::line::DecodedLine;
use super::view::DecodeView;
use crate::client::{ApiClient, segment};
use crate::terminal::exit::Outcome;

/// Asks a server for the content of an ID, in this form or else in the source's own or in decimal.
pub(super) fn line(
    text: &str,
    (source, format): (&str, Option<Format>),
    client: &ApiClient,
    view: &DecodeView<'_>,
) -> Outcome<DecodedLine> {
    let form = format.map_or_else(String::new, |format| format!("&format={format}"));
    let path = format!("/v1/decode/{}?source={}{form}", segment(text), segment(source));
    let mut body: DecodedBody = client.get(&path)?;
    let time = body.time.as_deref().and_then(|time| time.parse::<Rfc3339>().ok());
    if let Some(Rfc3339(time)) = time {
        body.time = Some(view.zone.show(time));
    }
    let age_ms = time.map(|Rfc3339(time)| Age::at(time, view.now).ms());
    Ok(DecodedLine { body, age_ms, ..DecodedLine::default() })
}

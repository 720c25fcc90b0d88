//! IDs in replies: integers, or strings in the form of their source, as over HTTP. Strings are exact
//! also for clients that read integers into doubles.

use snowmint_coord::Source;
use snowmint_wire::resp::{Encoder, Protocol};

use super::reply;
use crate::error::Error;
use crate::resp::session::Session;

/// Writes one ID.
pub(super) fn write_one(id: u64, source: &Source, session: &Session, output: &mut Vec<u8>) {
    if session.writes_integers(source) {
        return session.reply(output).id(id);
    }
    match strings(&[id], source, session.protocol) {
        Ok(string) => output.extend_from_slice(&string),
        Err(error) => reply::error(&error, session, output),
    }
}

/// Writes an array of IDs.
pub(super) fn write_array(ids: &[u64], source: &Source, session: &Session, output: &mut Vec<u8>) {
    if session.writes_integers(source) {
        return session.reply(output).ids(ids);
    }
    match strings(ids, source, session.protocol) {
        Ok(strings) => {
            session.reply(output).array(ids.len());
            output.extend_from_slice(&strings);
        }
        Err(error) => reply::error(&error, session, output),
    }
}

/// Writes an ID of the cached source as a string.
#[cold]
pub(super) fn write_cached(id: u64, session: &Session, output: &mut Vec<u8>) {
    if let Some(source) = session.cached_source() {
        write_one(id, source, session, output);
    }
}

/// Returns IDs as strings, one after the other.
fn strings(ids: &[u64], source: &Source, protocol: Protocol) -> Result<Vec<u8>, Error> {
    let mut strings = Vec::new();
    let mut encoder = Encoder::new(&mut strings, protocol);
    for &id in ids {
        encoder.bulk(source.encode(id, None)?.as_bytes());
    }
    Ok(strings)
}

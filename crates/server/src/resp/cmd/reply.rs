//! Errors, in the form of Redis.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Encoder;

use crate::advertised_addrs::AdvertisedAddrs;
use crate::error::{Error, SectionOwner};
use crate::resp::session::Session;

/// Redis's message for a wrong argument.
pub(super) const SYNTAX: &str = "syntax error";
/// Redis's message for an argument that must be a number.
pub(super) const NOT_AN_INTEGER: &str = "value is not an integer or out of range";

pub(super) fn wrong_arity(name: &str, reply: &mut Encoder<'_>) {
    reply.error("ERR", &format!("wrong number of arguments for '{name}' command"));
}

/// Writes the error of an unknown sub-command.
pub(super) fn unknown_subcommand(container: &str, given: &[u8], reply: &mut Encoder<'_>) {
    let given = given.get(..64).unwrap_or(given).escape_ascii();
    let container = container.to_ascii_uppercase();
    reply.error("ERR", &format!("unknown subcommand '{given}'. Try {container} HELP."));
}

/// Writes the error of keys that no server has together, in Redis's words. A redirect would lead to
/// the owner of one key, and from there to that of another.
pub(super) fn cross_slot(session: &Session, output: &mut Vec<u8>) {
    session.refused(Code::BadRequest, None);
    let message = "Keys in request don't hash to the same slot, and different servers have them; \
                   send them one by one, or set resp.forward_counters = true";
    session.reply(output).error("CROSSSLOT", message);
}

/// Writes an error of the service, and counts it.
pub(super) fn error(error: &Error, session: &Session, output: &mut Vec<u8>) {
    session.refused(error.code(), error.cause());
    if let Some(SectionOwner {
        section,
        advertised_addrs: AdvertisedAddrs { resp: Some(address), .. },
    }) = error.owner()
    {
        // Redis's words, which its cluster clients follow.
        return session.reply(output).error("MOVED", &format!("{section} {address}"));
    }
    write(error, session, output);
}

/// Writes an error about the field of a hash, and counts it: without `MOVED`, since the client would
/// look for the key elsewhere.
pub(super) fn error_of_field(error: &Error, session: &Session, output: &mut Vec<u8>) {
    session.refused(error.code(), error.cause());
    let Some(SectionOwner { section, .. }) = error.owner() else {
        return write(error, session, output);
    };
    let prefix = error.code().row().resp.as_str();
    let message = format!("server of section {section} took no request from this one; retry");
    session.reply(output).error(prefix, &message);
}

/// Writes an error about a key, and counts it: what an application of Redis needs, which names no
/// source.
pub(super) fn error_of_key(rejected: &Error, session: &Session, output: &mut Vec<u8>) {
    let has_default = !session.state.settings.default_counter_source.is_empty();
    if rejected.code() != Code::UnknownSource || has_default {
        return error(rejected, session, output);
    }
    session.refused(rejected.code(), rejected.cause());
    let message = format!(
        "{}, or set resp.default_counter_source to count keys of any name",
        rejected.message()
    );
    session.reply(output).error(rejected.code().row().resp.as_str(), &message);
}

fn write(error: &Error, session: &Session, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    let prefix = error.code().row().resp.as_str();
    match error.detail() {
        Some(_) if session.service.caller().sees_details() => {
            reply.error(prefix, &error.full_message());
        }
        _ => reply.error(prefix, error.message()),
    }
}

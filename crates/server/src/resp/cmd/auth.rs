//! `AUTH [name] token`: identifies the client.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::reply::SYNTAX;
use super::spec::{Flow, Spec};
use crate::access::Caller;
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "auth",
    arity: -2,
    summary: "Authenticates the connection.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run,
};

/// Redis's message when no password is configured.
const NOT_CONFIGURED: &str = "AUTH <password> called without any password configured for \
     the default user. Are you sure your configuration is correct?";
/// Redis's message for a wrong password.
const WRONG_PASS: &str = "invalid username-password pair or user is disabled.";
/// Message while the address' tokens are not checked.
const TOO_MANY: &str = "too many wrong tokens from this address; retry later";
/// User name that clients send with only a password.
const DEFAULT_USER: &[u8] = b"default";

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    let mut args = command.args().skip(1);
    let (name, token) = match (args.next(), args.next(), args.next()) {
        (Some(token), None, _) => (None, token),
        (Some(name), Some(token), None) => (Some(name), token),
        _ => {
            session.reply(output).error("ERR", SYNTAX);
            return Flow::Next;
        }
    };
    match identify(session, name, token) {
        Ok(caller) => {
            session.is_now(caller);
            session.reply(output).simple("OK");
        }
        Err((prefix, message)) => session.reply(output).error(prefix, message),
    }
    Flow::Next
}

/// Returns the caller where tokens are not required. As in Redis without passwords, the default user
/// may show any, and there is no other user.
fn without_tokens(
    session: &Session,
    name: Option<&[u8]>,
) -> Result<Caller, (&'static str, &'static str)> {
    match name {
        Some(DEFAULT_USER) => return Ok(session.service.caller().clone()),
        None => session.refused(Code::BadRequest, None),
        Some(_) => session.refused(Code::Unauthenticated, None),
    }
    Err(if name.is_none() { ("ERR", NOT_CONFIGURED) } else { ("WRONGPASS", WRONG_PASS) })
}

/// Returns the caller that shows this token under this name.
pub(super) fn identify(
    session: &Session,
    name: Option<&[u8]>,
    token: &[u8],
) -> Result<Caller, (&'static str, &'static str)> {
    let Some(access) = session.service.access() else {
        return without_tokens(session, name);
    };
    let caller = access.caller(token, session.guard.connection());
    // Peers have no name, and no use of RESP.
    let is_named = caller.name().is_some_and(|own| match name {
        None | Some(DEFAULT_USER) => true,
        Some(name) => own.as_bytes() == name,
    });
    if is_named && caller.is_known() {
        return Ok(caller);
    }
    let code = caller.must_be_known().err().map_or(Code::Unauthenticated, |error| error.code());
    session.refused(code, None);
    if code == Code::RateLimited {
        return Err(("TRYAGAIN", TOO_MANY));
    }
    if caller.is_known() {
        access.logins().failed(&caller, "the token has another name than AUTH says");
    }
    Err(("WRONGPASS", WRONG_PASS))
}

//! `CLIENT TRACKING` and `CLIENT CACHING`: a cache in the client would repeat a number that rises
//! with each call, so nothing is tracked. Clients that turn tracking on when they connect, with
//! `OPTIN`, work; those that then ask for a cache get the reason.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::super::reply::SYNTAX;
use super::super::spec::Spec;
use crate::resp::session::{Session, Tracking};

/// Reason why nothing is tracked.
const CHANGES: &str = "a value here changes with each call, and a cache would return it twice";

pub(super) fn tracking(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    match read(command) {
        Ok(tracking) => {
            session.set_tracking(tracking);
            session.reply(output).simple("OK");
        }
        Err(message) => session.reply(output).error("ERR", &message),
    }
}

/// Reads the arguments; the messages for a wrong use are those of Redis.
fn read(command: &Command<'_>) -> Result<Option<Tracking>, String> {
    let switch = command.arg(2).unwrap_or_default();
    let is_on = match switch {
        _ if switch.eq_ignore_ascii_case(b"on") => true,
        _ if switch.eq_ignore_ascii_case(b"off") => false,
        _ => return Err(SYNTAX.into()),
    };
    let [mut opt_in, mut opt_out, mut broadcast, mut prefix, mut redirects] = [false; 5];
    let mut has_no_loop = false;
    let mut args = command.args().skip(3);
    while let Some(arg) = args.next() {
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        if is("optin") {
            opt_in = true;
        } else if is("optout") {
            opt_out = true;
        } else if is("noloop") {
            has_no_loop = true;
        } else if is("bcast") {
            broadcast = true;
        } else if is("prefix") && args.next().is_some() {
            prefix = true;
        } else if is("redirect") && args.next().is_some() {
            redirects = true;
        } else {
            return Err(SYNTAX.into());
        }
    }
    if !is_on {
        return Ok(None);
    }
    if prefix && !broadcast {
        return Err("PREFIX option requires BCAST mode to be enabled".into());
    }
    if broadcast && (opt_in || opt_out) {
        return Err("OPTIN and OPTOUT are not compatible with BCAST".into());
    }
    if opt_in && opt_out {
        return Err("You can't specify both OPTIN mode and OPTOUT mode".into());
    }
    if redirects || !opt_in {
        return Err(format!(
            "CLIENT TRACKING ON works only with OPTIN, without REDIRECT: {CHANGES}; turn off the \
             client's cache"
        ));
    }
    Ok(Some(Tracking { has_no_loop }))
}

pub(super) fn caching(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) {
    let wanted = command.arg(2).unwrap_or_default();
    session.wants_cache = wanted.eq_ignore_ascii_case(b"yes");
    let message = match session.tracking {
        None => {
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
             OPTOUT mode enabled"
        }
        Some(_) if wanted.eq_ignore_ascii_case(b"no") => {
            "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
        }
        Some(_) if session.wants_cache => {
            let message =
                format!("CLIENT CACHING YES is rejected: {CHANGES}; read without a cache");
            return session.reply(output).error("ERR", &message);
        }
        Some(_) => SYNTAX,
    };
    session.reply(output).error("ERR", message);
}

/// Rejects a command whose reply the client would cache: some clients ignore the error of `CLIENT
/// CACHING YES`. As in Redis, this command is for the next one, or for all up to `EXEC`, and those of
/// `CLIENT` do not count. Returns whether the error is written.
#[cold]
pub(in crate::resp::cmd) fn rejects_cached(
    spec: &Spec,
    session: &mut Session,
    output: &mut Vec<u8>,
) -> bool {
    if spec.name == "client" {
        return false;
    }
    let is_queued = session.transaction.is_some() && spec.waits_for_exec();
    session.wants_cache = is_queued || session.is_executing || spec.name == "multi";
    if !spec.takes_source {
        return false;
    }
    session.abort_transaction();
    session.refused(Code::BadRequest, None);
    let name = spec.name.to_ascii_uppercase();
    let message =
        format!("{name} after CLIENT CACHING YES is rejected: {CHANGES}; read without a cache");
    session.reply(output).error("ERR", &message);
    true
}

pub(super) fn info(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) {
    let flags: &[&str] = match session.tracking {
        None => &["off"],
        Some(Tracking { has_no_loop: false }) => &["on", "optin"],
        Some(Tracking { has_no_loop: true }) => &["on", "optin", "noloop"],
    };
    let mut reply = session.reply(output);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect(session));
    reply.bulk(b"prefixes");
    reply.array(0);
}

pub(super) fn redirection(session: &mut Session, _: &Command<'_>, output: &mut Vec<u8>) {
    session.reply(output).integer(redirect(session));
}

/// Returns the connection that gets messages, as Redis counts: 0 is the client's own.
const fn redirect(session: &Session) -> i64 {
    if session.tracking.is_some() { 0 } else { -1 }
}

//! `HELLO [2|3] [AUTH user password] [SETNAME name]`: sets the version of the replies.

use snowmint_wire::resp::{Command, Protocol};

use super::spec::{Flow, Spec};
use super::{auth, client};
use crate::resp::session::Session;

pub(super) const SPEC: Spec = Spec {
    name: "hello",
    arity: -1,
    summary: "Handshakes with the server.",
    group: "connection",
    takes_source: false,
    is_for_all: true,
    run,
};

/// Redis's message to clients that must authenticate.
const NOT_AUTHENTICATED: &str = "HELLO must be called with the client already authenticated, otherwise the \
     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
     RESP protocol version at the same time";

fn run(session: &mut Session, command: &Command<'_>, output: &mut Vec<u8>) -> Flow {
    match greet(session, command) {
        Ok(()) => write_greeting(session, output),
        Err((prefix, message)) => session.reply(output).error(prefix, &message),
    }
    Flow::Next
}

/// Changes nothing unless every argument is valid.
fn greet(session: &mut Session, command: &Command<'_>) -> Result<(), (&'static str, String)> {
    let mut args = command.args().skip(1);
    let protocol = match args.next() {
        None => session.protocol,
        Some(b"2") => Protocol::Resp2,
        Some(b"3") => Protocol::Resp3,
        Some(other) if !other.is_empty() && other.iter().all(u8::is_ascii_digit) => {
            return Err(("NOPROTO", "unsupported protocol version".into()));
        }
        Some(_) => {
            return Err(("ERR", "Protocol version is not an integer or out of range".into()));
        }
    };
    let (mut name, mut caller) = (None, None);
    while let Some(option) = args.next() {
        if option.eq_ignore_ascii_case(b"auth") && args.len() >= 2 {
            let (user, token) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
            let identified = auth::identify(session, Some(user), token);
            caller = Some(identified.map_err(|(prefix, message)| (prefix, message.into()))?);
        } else if option.eq_ignore_ascii_case(b"setname") && args.len() >= 1 {
            name = Some(client::read_name(args.next().unwrap_or_default())?);
        } else {
            let option = option.get(..64).unwrap_or(option).escape_ascii();
            return Err(("ERR", format!("Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some(caller) = caller {
        session.is_now(caller);
    }
    if session.is_anonymous {
        return Err(("NOAUTH", NOT_AUTHENTICATED.into()));
    }
    session.speaks(protocol);
    if let Some(name) = name {
        client::name_connection(session, name);
    }
    Ok(())
}

fn write_greeting(session: &Session, output: &mut Vec<u8>) {
    let mut reply = session.reply(output);
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"snowmint");
    reply.bulk(b"version");
    reply.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    reply.bulk(b"proto");
    reply.integer(if session.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.id(session.guard.connection().id);
    reply.bulk(b"mode");
    // As CLUSTER INFO says.
    reply.bulk(b"cluster");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

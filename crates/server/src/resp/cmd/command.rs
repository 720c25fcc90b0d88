//! `COMMAND ...`: the table of commands, in the forms that clients request when they connect.

use snowmint_wire::resp::{Command, Encoder};

use super::reply::unknown_subcommand;
use super::spec::{Flow, Run, Spec};
use crate::resp::session::Session;

const NAME: &str = "command";

/// Returns the row of the table, which `run` describes.
pub(super) const fn spec(run: Run) -> Spec {
    Spec {
        name: NAME,
        arity: -1,
        summary: "Returns detailed information about all commands.",
        group: "server",
        takes_source: false,
        is_for_all: false,
        run,
    }
}

/// Describes the commands of the table.
pub(super) fn run(
    commands: &[Spec],
    session: &mut Session,
    command: &Command<'_>,
    output: &mut Vec<u8>,
) -> Flow {
    let find = |name: &[u8]| commands.iter().find(|spec| spec.has_name(name));
    let mut reply = session.reply(output);
    let names = command.args().skip(2);
    match command.arg(1) {
        None => {
            reply.array(commands.len());
            commands.iter().for_each(|spec| info(spec, &mut reply));
        }
        Some(sub) if sub.eq_ignore_ascii_case(b"count") => {
            reply.id(u64::try_from(commands.len()).unwrap_or(u64::MAX));
        }
        Some(sub) if sub.eq_ignore_ascii_case(b"info") && names.len() == 0 => {
            reply.array(commands.len());
            commands.iter().for_each(|spec| info(spec, &mut reply));
        }
        Some(sub) if sub.eq_ignore_ascii_case(b"info") => {
            reply.array(names.len());
            for name in names {
                match find(name) {
                    Some(spec) => info(spec, &mut reply),
                    None => reply.null(),
                }
            }
        }
        Some(sub) if sub.eq_ignore_ascii_case(b"docs") => {
            let specs: Vec<_> = if names.len() == 0 {
                commands.iter().collect()
            } else {
                names.filter_map(find).collect()
            };
            reply.map(specs.len());
            specs.into_iter().for_each(|spec| docs(spec, &mut reply));
        }
        Some(sub) if sub.eq_ignore_ascii_case(b"list") && names.len() == 0 => {
            reply.array(commands.len());
            commands.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
        }
        Some(sub) => unknown_subcommand(NAME, sub, &mut reply),
    }
    Flow::Next
}

/// Writes an entry in the form of Redis 7: name, arity, flags, first key, last key, step, access
/// categories, tips, key specifications, sub-commands.
fn info(spec: &Spec, reply: &mut Encoder<'_>) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    if spec.takes_source {
        reply.set(2);
        reply.simple("write");
        reply.simple("fast");
        (0..3).for_each(|_| reply.integer(1));
    } else {
        reply.set(1);
        reply.simple("fast");
        (0..3).for_each(|_| reply.integer(0));
    }
    reply.set(0);
    (0..3).for_each(|_| reply.array(0));
}

fn docs(spec: &Spec, reply: &mut Encoder<'_>) {
    reply.bulk(spec.name.as_bytes());
    reply.map(3);
    reply.bulk(b"summary");
    reply.bulk(spec.summary.as_bytes());
    reply.bulk(b"since");
    reply.bulk(b"0.1.0");
    reply.bulk(b"group");
    reply.bulk(spec.group.as_bytes());
}

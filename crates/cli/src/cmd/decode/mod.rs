//! `snowmint decode`: the content of an ID.

mod line;
mod number;
mod reading;
mod source;
mod uuid;
mod view;

use clap::Args;
use snowmint_core::UnixMillis;
use snowmint_core::layout::ReadableLayout;
use snowmint_core::text::Format;
use snowmint_server::decoding::{Age, ForeignId, Id, layout_to_read, read};
use snowmint_wire::http::DecodedBody;
use ulid::Ulid;

use crate::client::{ApiClient, DEFAULT_SERVER};
use crate::cmd::values;
use crate::terminal::exit::{Exit, Failure, Outcome, report};
use crate::terminal::input;
use crate::terminal::output::Output;
use crate::terminal::plural::after;
use crate::terminal::when::{self, Zone};
use line::DecodedLine;
use reading::{worker_text, write_readings};
use view::DecodeView;

/// Show the content of IDs: time, age, worker, sequence.
///
/// UUIDs show version, variant, time, and whether they contain a real MAC address. ULIDs,
/// ObjectIds, KSUIDs, xids and push IDs of Firebase show their time. A negative number is the
/// number of 64 bits that SQL and Java show so.
///
/// Without a layout or a source, shows the reading of each known layout and epoch: the most
/// plausible first, and what speaks against the others. A text that may be a number in several forms
/// has the plausible readings of each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint decode 175928847299117063 --layout discord
  snowmint decode 175928847299117063 --layout twitter,epoch=2015-01-01T00:00:00Z --zone Asia/Shanghai
  snowmint decode 3RsPZs4yMtx --format base62 --layout time=41,worker=10,sequence=12
  snowmint decode 01939c2b-5a3b-7cc4-8f3d-6b4f5d2a1c9e 01ARZ3NDEKTSV4RRFFQ69G5FAV
  snowmint decode --layout baidu-2016 -- -7055142081907384320
  snowmint decode 3RsPZs4yMtx --source orders
  snowmint decode 8fqFh6A95s --source default --format base62
  snowmint decode 20220320133617924-5-0 --format friendly --layout cosid --zone Asia/Shanghai
  psql -Atc 'select id from orders' | snowmint decode --json | jq -r .time")]
pub(crate) struct Decode {
    /// IDs; without any, or for `-`, standard input, one ID a line.
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    ids: Vec<String>,
    /// Layout: a name, a name with overrides, or its fields in written order.
    #[arg(long, value_name = "L", add = values::layouts(), value_parser = layout_to_read)]
    layout: Option<ReadableLayout>,
    /// Source of the IDs; a server reads them with the source's layout, disguise, and text form
    /// unless --format names another.
    #[arg(long, value_name = "S", add = values::sources(), conflicts_with = "layout")]
    source: Option<String>,
    /// Server that has the source.
    #[arg(long, value_name = "URL", requires = "source", conflicts_with = "layout", default_value = DEFAULT_SERVER)]
    server: String,
    /// Text form of the IDs: decimal, hex, base36, base62, base32, base58 or friendly, or one of
    /// these with `-padded`. Without it: a source's own form or decimal, decimal for a layout, any
    /// form without both.
    #[arg(long, value_name = "F", add = values::formats())]
    format: Option<Format>,
    /// Time zone of the output, and of the time in friendly texts: UTC, local, an offset such as +08:00, or a name such as
    /// Asia/Shanghai.
    #[arg(long, value_name = "Z", default_value = "UTC", allow_hyphen_values = true)]
    zone: Zone,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Decode {
    pub(crate) fn run(self) -> Outcome {
        let has_layout = self.layout.is_some() || self.source.is_some();
        if self.format.is_some_and(Format::needs_layout) && !has_layout {
            return Err(Failure::usage(
                "friendly forms need a layout; name it with --layout, or the source with --source",
            ));
        }
        let mut out = Output::new();
        let client = self.source.is_some().then(|| ApiClient::new(&self.server)).transpose()?;
        let (mut seen, mut unread) = (0_u64, 0_u64);
        let mut one = |text: &str, out: &mut Output| {
            seen += 1;
            match self.decode(text, client.as_ref(), out) {
                // The other IDs may still be valid.
                Err(Failure::Explained { exit: Exit::Usage, code, message }) => {
                    unread += 1;
                    out.flush()?;
                    report(code, &message);
                    Ok(())
                }
                other => other,
            }
        };
        if self.ids.is_empty() || self.ids == ["-"] {
            let mut lines = input::stdin();
            loop {
                if lines.would_wait() {
                    out.flush()?;
                }
                let Some(text) = lines.next()? else { break };
                one(text, &mut out)?;
            }
        } else {
            for text in &self.ids {
                one(text, &mut out)?;
            }
        }
        out.flush()?;
        if unread > 0 {
            return Err(Failure::usage(match seen {
                1 => "the only ID is invalid; correct it".to_owned(),
                _ => {
                    let (are, them) = (after(unread, "is", "are"), after(unread, "it", "them"));
                    format!("{unread} of {seen} IDs {are} invalid; correct {them}")
                }
            }));
        }
        Ok(())
    }

    fn decode(&self, text: &str, client: Option<&ApiClient>, out: &mut Output) -> Outcome {
        let view = DecodeView { zone: &self.zone, now: when::now() };
        let friendly = self.format.is_some_and(Format::needs_layout);
        let in_utc = if friendly { self.zone.friendly_in_utc(text) } else { Ok(text.into()) };
        let text_in_utc = in_utc.map_err(Failure::usage)?;
        if let (Some(name), Some(client)) = (&self.source, client) {
            let mut line = source::line(&text_in_utc, (name, self.format), client, &view)?;
            line.body.id = text.to_owned();
            return self.write(&line, out);
        }
        let line = match (read(&text_in_utc, self.format, self.layout.as_ref()), &self.layout) {
            (Ok(Id::Number(number)), Some(layout)) => {
                number::with_layout(text, number, layout, &view)?
            }
            (Ok(Id::Number(number)), None) => number::with_every_layout(text, number, &view),
            (Ok(Id::Uuid(uuid)), _) => uuid::line(text, uuid, &view),
            (Ok(Id::Ulid(ulid)), _) => ulid_line(text, ulid, &view),
            (Ok(Id::Foreign(id)), _) => foreign_line(text, id, &view),
            (Err(error), layout) => {
                let is_unknown = layout.is_none() && self.format.is_none();
                let line = is_unknown.then(|| number::in_every_form(text, &view)).flatten();
                line.ok_or_else(|| Failure::usage(error))?
            }
        };
        self.write(&line, out)
    }

    fn write(&self, line: &DecodedLine, out: &mut Output) -> Outcome {
        if self.json {
            return out.json(line);
        }
        write_line(line, out)
    }
}

fn ulid_line(text: &str, ulid: Ulid, view: &DecodeView<'_>) -> DecodedLine {
    let random = Some(format!("{:020x}", ulid.random()));
    DecodedLine { ulid_random: random, ..timed(text, ulid.timestamp_ms(), view) }
}

fn foreign_line(text: &str, id: ForeignId, view: &DecodeView<'_>) -> DecodedLine {
    let unix_ms = id.unix_ms;
    DecodedLine { foreign: Some(id), ..timed(text, unix_ms, view) }
}

/// Returns the line of an ID of which only the time is known.
fn timed(text: &str, unix_ms: u64, view: &DecodeView<'_>) -> DecodedLine {
    let time = UnixMillis::new(unix_ms);
    DecodedLine {
        body: DecodedBody {
            id: text.into(),
            time: Some(view.zone.show(time)),
            ..DecodedBody::default()
        },
        age_ms: Some(Age::at(time, view.now).ms()),
        ..DecodedLine::default()
    }
}

/// Writes an ID for people, and below it a line for each of its fields.
fn write_line(line: &DecodedLine, out: &mut Output) -> Outcome {
    let body = &line.body;
    out.line(&body.id)?;
    out.field("number", body.number.as_ref().filter(|number| **number != body.id))?;
    if let Some(facts) = &line.uuid {
        uuid::write_facts(facts, out)?;
    }
    let foreign = line.foreign.as_ref();
    let ulid = line.ulid_random.as_ref().map(|_| "ULID");
    out.field("kind", ulid.or(foreign.map(|id| id.kind)))?;
    let age = line.age_ms.map_or_else(String::new, |ms| format!(" ({})", Age::from_ms(ms)));
    out.field("time", body.time.as_ref().map(|time| format!("{time}{age}")))?;
    out.field("clock", body.clock)?;
    out.field("worker", worker_text(body.worker, body.worker_parts))?;
    out.field("period", body.period.as_ref())?;
    out.field("sequence", body.sequence)?;
    if let Some(id) = foreign {
        out.field("machine", id.machine.as_ref())?;
        out.field("process", id.process)?;
        out.field("counter", id.counter)?;
        out.field("random", id.random.as_ref())?;
    }
    out.field("random", line.ulid_random.as_ref())?;
    out.field("doubt", line.doubt.as_ref())?;
    write_readings(&body.readings, out)
}

//! `snowmint encode`: the IDs of given times.

mod source;

use clap::Args;
use serde::Serialize;
use snowmint_core::layout::{EPOCH_DEFAULT, ReadableLayout};
use snowmint_core::{OutOfRange, Parts, Tick, UnixMillis};
use snowmint_server::decoding::layout_to_read;

use self::source::{SourceForm, TextRange};
use crate::client::DEFAULT_SERVER;
use crate::cmd::values;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::print;
use crate::terminal::when::Zone;

/// Show the lowest and the highest ID of an instant or a span.
///
/// The result fits `WHERE id BETWEEN lowest AND highest`.
///
/// An instant stands for its whole tick, or for its whole millisecond if a tick is shorter. A span lasts from the first time up to, and not including,
/// --until. Where IDs have the top bit set, both numbers are negative, as SQL and Java show them.
///
/// With --source, shows both also in the source's text form.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint encode 2026-11-20T12:00:00Z
  snowmint encode 2026-11-20 --until 2026-11-21 --zone Asia/Shanghai --layout twitter
  snowmint encode 2026-11-20 --until 2026-11-21 --source orders
  snowmint encode 2026-11-20T12:00:00Z --json | jq -r .lowest")]
pub(crate) struct Encode {
    /// Start: RFC 3339, a date with or without a time of day (in --zone), @ and Unix milliseconds,
    /// or now.
    #[arg(value_name = "TIME")]
    time: String,
    /// End of the span, exclusive.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Layout: a name, a name with overrides, or its fields in written order.
    #[arg(long, value_name = "L", add = values::layouts(), value_parser = layout_to_read, default_value = "time=41,worker=10,sequence=12")]
    layout: ReadableLayout,
    /// Source of the IDs; a server knows its layout and its text form.
    #[arg(long, value_name = "S", add = values::sources(), conflicts_with = "layout")]
    source: Option<String>,
    /// Server that has the source.
    #[arg(long, value_name = "URL", requires = "source", conflicts_with = "layout", default_value = DEFAULT_SERVER)]
    server: String,
    /// Zone of times without an offset.
    #[arg(long, value_name = "Z", default_value = "UTC", allow_hyphen_values = true)]
    zone: Zone,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Output of the command.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Range {
    lowest: String,
    highest: String,
    /// Start of the first tick of the range.
    from: String,
    /// End of the last tick.
    until: String,
    layout: String,
    /// The same range in the text form of the source, unless that is decimal.
    #[serde(flatten)]
    texts: Option<TextRange>,
}

impl Encode {
    pub(crate) fn run(self) -> Outcome {
        let read = |text: &str| self.zone.read(text).map_err(Failure::usage);
        let from = read(&self.time)?;
        let until = self.until.as_deref().map(read).transpose()?;
        let of_source = |name: &String| SourceForm::of(name, &self.server);
        let form = self.source.as_ref().map(of_source).transpose()?;
        let layout = &form.as_ref().map_or(self.layout, |form| form.layout.readable());
        if !layout.is_by_time() {
            return Err(Failure::usage(format!(
                "IDs of layout {layout} are not in the order of time, so no range holds those of a \
                 time; decode IDs to filter them"
            )));
        }
        let (first, last) = ticks(layout, from, until)?;
        let is_negative = last > layout.tick_max();
        if is_negative && first <= layout.tick_max() {
            let end = self.zone.show(layout.end());
            return Err(Failure::usage(format!(
                "the span contains {end}, from which on the numbers of the layout are negative; \
                 name the span before it, or the one after it"
            )));
        }
        let shown = |id: u64| match is_negative {
            true => id.cast_signed().to_string(),
            false => id.to_string(),
        };
        let lowest = layout.pack(Parts { tick: first, ..Parts::default() }).map_err(refused)?;
        let highest = layout
            .pack(Parts {
                tick: last,
                clock: layout.clock_max(),
                worker: layout.worker_max(),
                sequence: layout.sequence_max(),
            })
            .map_err(refused)?;
        let end = layout.start_of(Tick::new(last.get().saturating_add(1)));
        let range = Range {
            lowest: shown(lowest),
            highest: shown(highest),
            from: self.zone.show(layout.start_of(first)),
            until: self.zone.show(end),
            layout: layout.to_string(),
            texts: form.map_or(Ok(None), |form| form.texts(lowest, highest))?,
        };
        print(self.json, [&range], |out| {
            out.line(format_args!("lowest   {}", range.lowest))?;
            out.line(format_args!("highest  {}", range.highest))?;
            let Some(texts) = &range.texts else { return Ok(()) };
            let TextRange { format, lowest_text, highest_text, texts_sort } = texts;
            let order = if *texts_sort { "" } else { " (texts of this form do not sort by time)" };
            out.line(format_args!("{format}: {lowest_text} to {highest_text}{order}"))
        })
    }
}

/// Returns the first and the last tick of a span, or of an instant.
fn ticks(
    layout: &ReadableLayout,
    from: UnixMillis,
    until: Option<UnixMillis>,
) -> Outcome<(Tick, Tick)> {
    let (first, last) = layout.ticks_at(from).map_err(refused)?;
    let Some(until) = until else { return Ok((first, last)) };
    if until <= from {
        return Err(Failure::usage("--until is not later than the first time; name a later one"));
    }
    let (_, last) = layout.ticks_at(until.saturating_sub(1)).map_err(refused)?;
    Ok((first, last))
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn refused(error: OutOfRange) -> Failure {
    let hint = match error {
        OutOfRange::BeforeEpoch { epoch, .. } if epoch == EPOCH_DEFAULT => {
            " (2026-01-01; name another layout with --layout)"
        }
        _ => "",
    };
    Failure::usage(format!("{error}{hint}"))
}

#[cfg(test)]
mod tests {
    use snowmint_core::Layout;

    use super::*;

    #[test]
    fn an_instant_is_its_tick_and_a_span_ends_before_its_end() {
        let layout = Layout::SONYFLAKE.readable();
        let at = |ms| layout.epoch().saturating_add(ms);
        let numbers = |from, until| {
            ticks(&layout, from, until).map(|(first, last)| (first.get(), last.get())).ok()
        };
        assert_eq!(numbers(at(0), None), Some((0, 0)));
        assert_eq!(numbers(at(9), None), Some((0, 0)));
        assert_eq!(numbers(at(10), None), Some((1, 1)));
        assert_eq!(numbers(at(0), Some(at(10))), Some((0, 0)));
        assert_eq!(numbers(at(0), Some(at(11))), Some((0, 1)));
        assert_eq!(numbers(at(5), Some(at(6))), Some((0, 0)));
        assert_eq!(numbers(at(5), Some(at(5))), None);
        assert_eq!(numbers(layout.epoch().saturating_sub(1), None), None);
        assert_eq!(numbers(at(0), Some(layout.end())), Some((0, layout.tick_max().get())));
        assert_eq!(numbers(at(0), Some(layout.end().saturating_add(1))), None);
    }

    #[test]
    fn an_instant_holds_all_ticks_of_its_millisecond() {
        let layout = ReadableLayout::COCKROACHDB;
        let at = |ms| layout.epoch().saturating_add(ms);
        let numbers = |from, until| {
            ticks(&layout, from, until).map(|(first, last)| (first.get(), last.get())).ok()
        };
        assert_eq!(numbers(at(1), None), Some((100, 199)));
        assert_eq!(numbers(at(1), Some(at(3))), Some((100, 299)));
    }
}

//! `snowmint layout`: capacities of layouts, and proposals of layouts.

use clap::Args;
use serde::Serialize;
use snowmint_core::UnixMillis;
use snowmint_core::layout::{Field, Need, PRESETS, ReadableLayout, propose};
use snowmint_server::decoding::layout_to_read;
use snowmint_server::{cannot_mint, shards};
use snowmint_wire::error::Code;

use crate::cmd::values;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;
use crate::terminal::plural::{after, counted};
use crate::terminal::table::{Column, Table};
use crate::terminal::when::{self, Zone};

/// Show the capacities of layouts, or propose layouts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint layout
  snowmint layout sonyflake
  snowmint layout twitter,epoch=2021-01-01T00:00:00Z
  snowmint layout --workers 200 --rate 50000 --years 30

A layout in full has its fields in written order, from the highest bits to the lowest:
  time=41,clock=3,worker=7,sequence=12,unit=1ms,epoch=2024-01-01T00:00:00+08:00
`worker=5+5` shows the worker in two parts; epochs may be Unix milliseconds.")]
pub(crate) struct Layout {
    /// Layout: a name, a name with overrides, or its fields in written order.
    #[arg(value_name = "L", add = values::layouts(), value_parser = layout_to_read)]
    layout: Option<ReadableLayout>,
    /// Propose layouts for this number of workers.
    #[arg(
        long,
        value_name = "N",
        requires = "rate",
        requires = "years",
        conflicts_with = "layout"
    )]
    workers: Option<u64>,
    /// Rate that each worker must reach, in IDs per second.
    #[arg(long, value_name = "PER_SECOND", requires = "workers", conflicts_with = "layout")]
    rate: Option<u64>,
    /// Lifetime from now, in years.
    #[arg(long, value_name = "Y", requires = "workers", conflicts_with = "layout")]
    years: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Capacities of a layout.
#[derive(Debug, Serialize)]
struct LayoutFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    layout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'static str>,
    bits: u8,
    unit_ms: u32,
    unit_ns: u64,
    epoch: String,
    end: String,
    workers: u64,
    ids_per_second_per_worker: u128,
    ids_per_second: u128,
    /// Spread of IDs over `id % N`, in words, if the layout mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<String>,
    can_mint: bool,
    /// Reason why the layout only decodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_decodes: Option<String>,
    /// Remaining lifetime, in words.
    lifetime: String,
}

impl LayoutFacts {
    fn of(layout: &ReadableLayout, now: UnixMillis) -> Self {
        let preset = layout.preset();
        let zone = Zone::default();
        let lifetime = layout.lifetime_at(now);
        Self {
            name: preset.map(|preset| preset.name()),
            layout: layout.to_string(),
            about: preset.map(|preset| preset.about()),
            bits: layout.total_bits(),
            unit_ms: layout.unit_ms(),
            unit_ns: layout.unit_ns(),
            epoch: zone.show(layout.epoch()),
            end: zone.show(layout.end()),
            workers: layout.workers(),
            ids_per_second_per_worker: layout.ids_per_second_per_worker(),
            ids_per_second: layout.ids_per_second(),
            shards: layout.mintable().ok().map(|layout| shards::of_layout(&layout)),
            can_mint: cannot_mint(layout).is_none() && lifetime.left_ms() > 0,
            only_decodes: cannot_mint(layout),
            lifetime: lifetime.to_string(),
        }
    }
}

impl Layout {
    pub(crate) fn run(self) -> Outcome {
        let now = when::now();
        let mut out = Output::new();
        match (&self.layout, self.workers, self.rate, self.years) {
            (Some(layout), ..) => self.show(layout, now, &mut out)?,
            (None, Some(workers), Some(ids_per_second_per_worker), Some(years)) => {
                let need = Need { workers, ids_per_second_per_worker, years };
                self.propose(need, now, &mut out)?;
            }
            _ => self.list(now, &mut out)?,
        }
        out.flush()
    }

    fn list(&self, now: UnixMillis, out: &mut Output) -> Outcome {
        if self.json {
            // A layout may have two names; each gets a line.
            for preset in &PRESETS {
                let facts = LayoutFacts::of(&preset.layout(), now);
                out.json(&LayoutFacts {
                    name: Some(preset.name()),
                    about: Some(preset.about()),
                    ..facts
                })?;
            }
            return Ok(());
        }
        out.table(&table(now))
    }

    fn show(&self, layout: &ReadableLayout, now: UnixMillis, out: &mut Output) -> Outcome {
        let facts = LayoutFacts::of(layout, now);
        if self.json {
            return out.json(&facts);
        }
        if let (Some(name), Some(about)) = (facts.name, facts.about) {
            out.line(format_args!("{name}: {about}"))?;
        }
        out.line(&facts.layout)?;
        out.line(format_args!("  bits      {} in all: {}", facts.bits, shape(layout)))?;
        let mut from = i32::from(layout.total_bits());
        for (field, bits) in layout.fields().filter(|(_, bits)| *bits > 0) {
            let to = from - i32::from(bits);
            let split = match field {
                Field::Worker if layout.worker_low_bits() > 0 => {
                    let low = layout.worker_low_bits();
                    format!(", shown as {} + {low}", bits - low)
                }
                Field::Time if layout.time_low_bits() > 0 => {
                    let low = layout.time_low_bits();
                    format!(": {} of seconds, {low} of the units within", bits - low)
                }
                _ => String::new(),
            };
            out.line(format_args!(
                "    {:<9} {bits:>2} {}, {}{split}",
                field.name(),
                after(bits.into(), "bit", "bits"),
                if bits == 1 { to.to_string() } else { format!("{to} to {}", from - 1) }
            ))?;
            from = to;
        }
        out.line(format_args!("  tick      {}", unit(layout)))?;
        out.line(format_args!("  epoch     {}", facts.epoch))?;
        out.line(format_args!("  lifetime  {}", facts.lifetime))?;
        out.field("mints", facts.only_decodes.as_ref().map(|why| format!("no: {why}")))?;
        out.line(format_args!("  workers   {}", facts.workers))?;
        out.line(format_args!(
            "  rate      {} IDs/s a worker, {} in all",
            facts.ids_per_second_per_worker, facts.ids_per_second
        ))?;
        if let Some(shards) = &facts.shards {
            out.line(format_args!("  shards    {shards}"))?;
        }
        let exact = if layout.total_bits() <= 53 { "yes" } else { "no: send IDs as strings" };
        out.line(format_args!("  exact in JavaScript  {exact}"))
    }

    fn propose(&self, need: Need, now: UnixMillis, out: &mut Output) -> Outcome {
        if need.workers == 0 || need.years == 0 {
            return Err(Failure::usage("--workers or --years is below the minimum of 1; raise it"));
        }
        let proposals =
            propose(need, now).map_err(|error| Failure::no(Code::NotFound, error.to_string()))?;
        for layout in proposals.iter() {
            let facts = LayoutFacts::of(&layout.readable(), now);
            if self.json {
                out.json(&facts)?;
                continue;
            }
            out.line(&facts.layout)?;
            out.line(format_args!(
                "  {} bits, {}, {} IDs/s each, {}",
                facts.bits,
                counted(facts.workers, "worker"),
                facts.ids_per_second_per_worker,
                facts.lifetime
            ))?;
        }
        Ok(())
    }
}

/// Returns the table of the named layouts. `IDS/S` is the rate of one worker.
fn table(now: UnixMillis) -> Table {
    let mut table = Table::new([
        Column::Whole("NAME"),
        Column::Whole("BITS"),
        Column::Number("UNIT"),
        Column::Whole("EPOCH"),
        Column::Whole("ENDS"),
        Column::Number("WORKERS"),
        Column::Number("IDS/S"),
        Column::Text("ABOUT"),
    ]);
    for preset in &PRESETS {
        let layout = preset.layout();
        let facts = LayoutFacts::of(&layout, now);
        table.row([
            preset.name().to_owned(),
            shape(&layout),
            unit(&layout),
            day(&facts.epoch).to_owned(),
            day(&facts.end).to_owned(),
            facts.workers.to_string(),
            short(facts.ids_per_second_per_worker),
            preset.about().to_owned(),
        ]);
    }
    table
}

/// Returns a number from 10,000 on with three digits and a unit: `4.10 M`.
fn short(number: u128) -> String {
    const UNITS: [(u128, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    if number < 10_000 {
        return number.to_string();
    }
    let mut place = 1;
    while number / place >= 1_000 {
        place *= 10;
    }
    let rounded = number.saturating_add(place / 2) / place * place;
    let found = UNITS.into_iter().find(|(unit, _)| rounded >= *unit);
    let (unit, name) = found.unwrap_or((1, ""));
    let hundredths = rounded.saturating_mul(100) / unit;
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match whole {
        0..10 => format!("{whole}.{rest:02} {name}"),
        10..100 => format!("{whole}.{} {name}", rest / 10),
        _ => format!("{whole} {name}"),
    }
}

/// Returns the widths from the highest field to the lowest: `t41 w10 s12`.
fn shape(layout: &ReadableLayout) -> String {
    let initial = |field| match field {
        Field::Time => "t",
        Field::Clock => "c",
        Field::Worker => "w",
        _ => "s",
    };
    layout
        .fields()
        .filter(|(_, bits)| *bits > 0)
        .map(|(field, bits)| format!("{}{bits}", initial(field)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn unit(layout: &ReadableLayout) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let whole = units.into_iter().find(|(unit_ns, _)| layout.unit_ns().is_multiple_of(*unit_ns));
    let (unit_ns, name) = whole.unwrap_or((1, "ns"));
    format!("{} {name}", layout.unit_ns() / unit_ns)
}

/// Returns the date of a formatted time.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use snowmint_core::Layout as IdLayout;

    use super::*;

    #[test]
    fn shapes_show_the_written_order() {
        assert_eq!(shape(&IdLayout::SONYFLAKE.readable()), "t39 s8 w16");
        assert_eq!(shape(&IdLayout::CLOCK_SEQUENCE.readable()), "t41 c3 w7 s12");
        assert_eq!(shape(&ReadableLayout::SEATA), "w10 t41 s12");
        assert_eq!(unit(&IdLayout::SONYFLAKE.readable()), "10 ms");
        assert_eq!(unit(&IdLayout::BAIDU.readable()), "1 s");
        assert_eq!(unit(&ReadableLayout::COCKROACHDB), "10 us");
    }

    #[test]
    fn list_fits_80_columns_with_all_its_numbers() {
        let (head, rows) = table(UnixMillis::new(1_795_000_000_000)).lines(Some(80));
        assert!(head.ends_with("WORKERS   IDS/S"), "{head}");
        assert!(rows[0].ends_with(" 2010-11-04  2080-07-10       1024  4.10 M"), "{rows:?}");
        assert!(rows.iter().all(|row| row.len() <= 80 && !row.contains('\u{2026}')), "{rows:?}");
    }

    #[test]
    fn long_rates_have_three_digits() {
        for (number, text) in [
            (9_999, "9999"),
            (10_000, "10.0 k"),
            (25_600, "25.6 k"),
            (999_999, "1.00 M"),
            (4_096_000, "4.10 M"),
            (4_294_967_296, "4.29 G"),
            (u128::from(u64::MAX), "18400000 T"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn a_spent_layout_cannot_mint() {
        let now = UnixMillis::new(1_795_000_000_000);
        assert!(!LayoutFacts::of(&ReadableLayout::BAIDU_2016, now).can_mint);
        assert!(!LayoutFacts::of(&IdLayout::BAIDU_2016.readable(), now).can_mint);
        assert!(LayoutFacts::of(&IdLayout::BAIDU.readable(), now).can_mint);
    }

    #[test]
    fn a_layout_that_only_decodes_says_why() {
        let now = UnixMillis::new(1_795_000_000_000);
        for (layout, part) in [
            (ReadableLayout::SEATA, "not the layout's first field"),
            (ReadableLayout::COCKROACHDB, "10000 ns"),
            (ReadableLayout::NEXTCLOUD, "two parts"),
            (ReadableLayout::BAIDU_2016, "only decodes"),
        ] {
            let facts = LayoutFacts::of(&layout, now);
            assert!(!facts.can_mint);
            let why = facts.only_decodes.unwrap();
            assert!(why.contains(part), "{why}");
        }
    }
}

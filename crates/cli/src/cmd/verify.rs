//! `snowmint verify`: checks that IDs are all different.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use snowmint_core::text::Format;

use crate::cmd::values;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::input::{self, AnyLines};
use crate::terminal::output::print;
use crate::terminal::plural::{after, counted};
use crate::unique::{NumberKey, SortKey, Sorter, TextKey, WideKey};

/// Number of duplicates that are named.
const NAMED_MAX: usize = 10;

/// Number of lines between two updates of the progress bar.
const PROGRESS_LINES: u64 = 65_536;

/// Check that IDs are all different.
///
/// Reads one ID a line. Exit code 1 on a duplicate, which is printed.
///
/// Memory stays below --memory: sorted runs go to temporary files, 8 bytes for each decimal ID.
/// Decimal numbers, negative ones too, UUIDs and ULIDs are compared as numbers. Other text is
/// compared unchanged, byte by byte, up to 48 characters; the result says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint verify ids.txt
  snowmint mint -n 100000 | snowmint verify --increasing
  cat client-*.txt | snowmint verify - --json
  snowmint verify short.txt --format base62")]
pub(crate) struct Verify {
    /// File of IDs, or - for standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Also check that each ID is greater than the one before it.
    #[arg(long)]
    increasing: bool,
    /// Text form of the IDs, unless decimal, UUID or ULID: `text` compares them unchanged, other
    /// forms as numbers.
    #[arg(long, value_name = "F", add = values::formats())]
    format: Option<String>,
    /// Largest memory for sorting, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    memory: u32,
    /// Directory for sorted runs that exceed the memory.
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the check.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct VerifyReport {
    /// Number of IDs read.
    ids: u64,
    /// Number of IDs that repeat an earlier one.
    repeated: u64,
    /// Smallest repeated IDs, at most [`NAMED_MAX`].
    duplicates: Vec<Duplicate>,
    /// First ID that is not greater than the one before it; only with `--increasing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_increasing: Option<Fall>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    increasing: bool,
    /// Form in which IDs were compared; absent without IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_as: Option<&'static str>,
}

/// An ID that comes more than once.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Duplicate {
    id: String,
    times: u64,
    /// First lines of the ID; only if the input is a file, which can be read again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u64>,
}

/// An ID that is not greater than the one before it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Fall {
    line: u64,
    id: String,
    after: String,
}

impl Verify {
    pub(crate) fn run(self) -> Outcome {
        let mut lines = input::open(&self.file)?;
        let progress = self.progress();
        let report = match self.format.as_deref() {
            Some("text") => self.check::<TextKey>(&mut lines, None, None, &progress),
            Some(name) => {
                let format: Format = name.parse().map_err(|error| {
                    Failure::usage(format!("--format {}: {error}; or text", name.escape_debug()))
                })?;
                if format.needs_layout() {
                    return Err(Failure::usage(
                        "--format: friendly forms need a layout; compare them with --format text",
                    ));
                }
                self.check::<NumberKey>(&mut lines, None, Some(format), &progress)
            }
            // The first ID determines the kind of all IDs.
            None => match lines.next()?.map(str::to_owned) {
                None => Ok(VerifyReport { increasing: self.increasing, ..VerifyReport::default() }),
                Some(first) if NumberKey::read(&first, None).is_ok() => {
                    self.check::<NumberKey>(&mut lines, Some(first), None, &progress)
                }
                Some(first) if WideKey::read(&first, None).is_ok() => {
                    self.check::<WideKey>(&mut lines, Some(first), None, &progress)
                }
                first => self.check::<TextKey>(&mut lines, first, None, &progress),
            },
        };
        progress.finish_and_clear();
        let report = report?;
        self.say(&report)
    }

    /// Returns a progress bar, which shows on a terminal only.
    fn progress(&self) -> ProgressBar {
        let size = std::fs::metadata(&self.file).ok().filter(std::fs::Metadata::is_file);
        match size {
            Some(size) => ProgressBar::new(size.len())
                .with_style(style("{spinner} {msg} {bytes} of {total_bytes} {wide_bar} {eta}")),
            None => ProgressBar::no_length()
                .with_style(style("{spinner} {msg} {bytes} {bytes_per_sec}")),
        }
    }

    fn check<K: SortKey>(
        &self,
        lines: &mut AnyLines,
        first: Option<String>,
        format: Option<Format>,
        progress: &ProgressBar,
    ) -> Outcome<VerifyReport> {
        let temp_dir = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        let memory_bytes = (self.memory as usize).saturating_mul(1024 * 1024);
        let mut sorter = Sorter::<K>::new(memory_bytes, temp_dir);
        let mut report = VerifyReport {
            increasing: self.increasing,
            compared_as: Some(K::FORM),
            ..VerifyReport::default()
        };
        let mut signed = false;
        // Negative numbers are below the others.
        let mut before: Option<(bool, K)> = None;
        progress.set_message("reading");
        let mut check_line = |text: &str, line: u64| -> Outcome {
            let key = K::read(text, format).map_err(|error| {
                Failure::usage(format!("line {line}: invalid ID {text:?}: {error}"))
            })?;
            let negative = K::is_negative(text, format);
            report.ids += 1;
            signed |= negative;
            if self.increasing
                && report.not_increasing.is_none()
                && let Some(before) = before
                && (!negative, key) <= before
            {
                let after = before.1.show(format, !before.0);
                report.not_increasing = Some(Fall { line, id: key.show(format, negative), after });
            }
            before = Some((!negative, key));
            sorter.push(key)
        };
        if let Some(first) = first {
            check_line(&first, lines.number())?;
        }
        loop {
            if lines.number().is_multiple_of(PROGRESS_LINES) {
                progress.set_position(lines.bytes());
            }
            let Some((line, text)) = lines.next_numbered()? else { break };
            check_line(text, line)?;
        }
        progress.set_message("comparing");
        let mut found: BTreeMap<K, u64> = BTreeMap::new();
        sorter.each_repeated(|key, times| {
            report.repeated += times - 1;
            if found.len() < NAMED_MAX {
                found.insert(key, times);
            }
        })?;
        let places = self.places(&found, format)?;
        report.duplicates = found
            .into_iter()
            .map(|(key, times)| Duplicate {
                id: key.show(format, signed),
                times,
                lines: places.get(&key).cloned().unwrap_or_default(),
            })
            .collect();
        Ok(report)
    }

    /// Returns the lines of the duplicates, if the input can be read again.
    fn places<K: SortKey>(
        &self,
        found: &BTreeMap<K, u64>,
        format: Option<Format>,
    ) -> Outcome<BTreeMap<K, Vec<u64>>> {
        let mut places: BTreeMap<K, Vec<u64>> = BTreeMap::new();
        let is_file = std::fs::metadata(&self.file).is_ok_and(|metadata| metadata.is_file());
        if found.is_empty() || !is_file {
            return Ok(places);
        }
        let mut lines = input::open(&self.file)?;
        while let Some((line, text)) = lines.next_numbered()? {
            let Ok(key) = K::read(text, format) else { continue };
            if found.contains_key(&key) {
                let lines_of_key = places.entry(key).or_default();
                if lines_of_key.len() < NAMED_MAX {
                    lines_of_key.push(line);
                }
            }
        }
        Ok(places)
    }

    fn say(&self, report: &VerifyReport) -> Outcome {
        print(self.json, [report], |out| {
            for Duplicate { id, times, lines } in &report.duplicates {
                let lines = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                let place = if lines.is_empty() { lines } else { format!(", on lines {lines}") };
                out.line(format_args!("duplicate {id} occurs {times} times{place}"))?;
            }
            if let Some(Fall { line, id, after }) = &report.not_increasing {
                out.line(format_args!("not increasing: line {line} has {id} after {after}"))?;
            }
            let ids = counted(report.ids, "ID");
            // The order of texts differs from that of the numbers in them.
            let form = match report.compared_as {
                Some(TextKey::FORM) => ", compared as text",
                _ => "",
            };
            match report.repeated {
                0 if report.not_increasing.is_none() && report.increasing => out.line(
                    format_args!("{ids}, all different, each greater than the one before{form}"),
                ),
                0 => out.line(format_args!("{ids}, all different{form}")),
                repeated => {
                    let repeat = after(repeated, "repeats", "repeat");
                    out.line(format_args!("{ids}, {repeated} {repeat} an earlier one{form}"))
                }
            }
        })?;
        if report.repeated > 0 || report.not_increasing.is_some() {
            return Err(Failure::Negative);
        }
        Ok(())
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

//! The log on standard error.
//!
//! Libraries log what clients do, each time: a flood of requests would be a flood of lines. The
//! server does the same when a store or a peer fails. So each such place in the program writes one
//! line a second, with the number of lines left out.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use snowmint_coord::label::Visible;
use snowmint_coord::{BootTimer, Timer};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::follow::SetFilter;

/// Time between two lines of one place.
const EVERY_MS: u64 = 1_000;
/// Target of lines that the server itself limits, for each error code.
const COUNTED: &str = snowmint_server::service::FAILED_REQUESTS_TARGET;

/// Starts the log; returns the function that changes its filter.
pub(super) fn log_to_stderr(filter: EnvFilter) -> SetFilter {
    // NO_COLOR and CLICOLOR_FORCE count, and so does a terminal without colour.
    let is_coloured = AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured)
        .fmt_fields(OneLine(DefaultFields::new()))
        .map_event_format(|lines| Bounded::new(lines.with_ansi(is_coloured), Arc::new(BootTimer)))
        .with_env_filter(filter)
        .with_filter_reloading();
    let handle = builder.reload_handle();
    builder.init();
    Box::new(move |filter| handle.reload(filter).map_err(|error| error.to_string()))
}

/// Formatter of fields that escapes control characters: other processes choose their labels and
/// addresses, and people read the log on a terminal.
struct OneLine(DefaultFields);

impl<'w> FormatFields<'w> for OneLine {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut text = String::new();
        self.0.format_fields(Writer::new(&mut text), fields)?;
        write!(writer, "{}", Visible(&text))
    }
}

/// Target of an event, and its name, which is its place in the source code.
type EventPlace = (&'static str, &'static str);

/// Formatter that bounds the number of lines that callers cause.
struct Bounded<F> {
    lines: F,
    timer: Arc<dyn Timer>,
    /// State of each place. Places are fixed at build time, so there are few.
    places: Mutex<HashMap<EventPlace, PlaceState>>,
}

#[derive(Debug, Default)]
struct PlaceState {
    /// Time from which the place may write again, as elapsed time.
    again_at_ms: u64,
    unsaid: u64,
}

impl<F> Bounded<F> {
    fn new(lines: F, timer: Arc<dyn Timer>) -> Self {
        Self { lines, timer, places: Mutex::default() }
    }

    /// Returns the number of lines left out at this place, if it may write now.
    fn due(&self, place: EventPlace) -> Option<u64> {
        let now_ms = self.timer.elapsed().get();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let state = places.entry(place).or_default();
        if now_ms < state.again_at_ms {
            state.unsaid = state.unsaid.saturating_add(1);
            return None;
        }
        state.again_at_ms = now_ms.saturating_add(EVERY_MS);
        Some(std::mem::take(&mut state.unsaid))
    }
}

/// Returns whether callers can cause an event without limit. Levels below INFO are never limited:
/// an operator who enables them gets all lines.
fn is_bounded_here(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_wanted = ["snowmint", "audit"].iter().any(|own| target.starts_with(own));
    let is_of_requests = target.starts_with("snowmint_server") && target != COUNTED;
    (!is_wanted || is_of_requests) && *metadata.level() <= Level::INFO
}

impl<S, N, F> FormatEvent<S, N> for Bounded<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let place = (metadata.target(), metadata.name());
        let unsaid = if is_bounded_here(metadata) { self.due(place) } else { Some(0) };
        match unsaid {
            None => Ok(()),
            Some(0) => self.lines.format_event(context, writer, event),
            Some(unsaid) => {
                let mut line = String::new();
                self.lines.format_event(context, Writer::new(&mut line), event)?;
                writeln!(writer, "{} unsaid={unsaid}", line.trim_end())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::ManualTimer;
    use snowmint_coord::label::is_control;

    use super::*;

    /// Captured output.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that `what` writes.
    fn lines(timer: &ManualTimer, what: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let (to, timer) = (written.clone(), Arc::new(timer.clone()));
        let log = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || to.clone())
            .fmt_fields(OneLine(DefaultFields::new()))
            .map_event_format(|lines| Bounded::new(lines.with_ansi(false).without_time(), timer))
            .finish();
        tracing::subscriber::with_default(log, what);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn flood(peer: u32) {
        tracing::warn!(target: "h2::proto", peer, "too many resets");
    }

    #[test]
    fn each_place_that_callers_reach_writes_a_line_a_second() {
        let timer = ManualTimer::new(5);
        let log_lines = lines(&timer, || {
            (0..1_000).for_each(flood);
            tracing::error!(target: "h2::proto", "another place");
            for _ in 0..10 {
                tracing::warn!(target: "snowmint_server::cluster::peers", "not forwarded");
            }
            timer.advance_ms(999);
            flood(1_000);
            timer.advance_ms(1);
            (1_001..1_003).for_each(flood);
            timer.advance_ms(1_000);
            flood(1_003);
        });
        assert_eq!(
            log_lines,
            [
                "WARN h2::proto: too many resets peer=0",
                "ERROR h2::proto: another place",
                "WARN snowmint_server::cluster::peers: not forwarded",
                "WARN h2::proto: too many resets peer=1001 unsaid=1000",
                "WARN h2::proto: too many resets peer=1003 unsaid=1",
            ]
        );
    }

    #[test]
    fn control_characters_of_any_field_are_visible() {
        let hostile = "a\u{1b}[2J\nERROR b";
        let log_lines = lines(&ManualTimer::new(5), || {
            tracing::info!(target: "audit", owner = %hostile, "{hostile}");
        });
        assert_eq!(log_lines.len(), 1, "{log_lines:?}");
        assert!(!log_lines[0].contains(is_control), "{log_lines:?}");
        assert_eq!(log_lines[0].matches("[2J\\nERROR b").count(), 2, "{log_lines:?}");
    }

    #[test]
    fn changes_requests_and_wanted_details_are_all_written() {
        let log_lines = lines(&ManualTimer::new(5), || {
            for _ in 0..10 {
                tracing::info!(target: "audit", "a change");
                tracing::info!(target: "snowmint::access", "a request");
                tracing::warn!(target: COUNTED, "a code");
                tracing::debug!(target: "h2::codec", "a frame");
            }
        });
        assert_eq!(log_lines.len(), 40, "{log_lines:?}");
    }
}

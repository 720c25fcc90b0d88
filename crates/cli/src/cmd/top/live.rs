//! The live view: threads that call, a thread that reads keys, and the loop that draws.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyEvent};
use snowmint_coord::{BootTimer, Timer as _};
use tokio::signal::unix::{SignalKind, signal};

use super::fetch::{self, NamedServer};
use super::state::{Moment, State, Update};
use super::tables::table;
use super::view::{Theme, draw};
use crate::client::ApiClient;
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome};

/// Longest time between two screens: the clock and the age of values move.
const REDRAW: Duration = Duration::from_secs(1);
/// Time between two samples of a server's last hour.
const HOURS_EVERY_MS: u64 = 5_000;

/// Input of the loop.
enum Event {
    Update(Update),
    Key(KeyEvent),
    Resized,
    /// A signal to end.
    Stop,
    Failed(Failure),
    /// A thread ended, which none does by itself.
    ThreadEnded,
}

/// Sends an event at the end of its thread, also after a panic.
struct EndNotice(Sender<Event>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        let _ = self.0.send(Event::ThreadEnded);
    }
}

/// Shows the view until a key or a signal ends it.
pub(super) fn run(url: &str, named: Vec<NamedServer>, mut state: State, theme: Theme) -> Outcome {
    let (sender, events) = mpsc::channel();
    let interval_ms = state.interval_ms;
    let client = ApiClient::looking(url)?;
    repeat(&sender, interval_ms, move |tell| fetch::pulse(&client, tell))?;
    let (client, mut due) = (ApiClient::looking(url)?, BootTimer.elapsed());
    repeat(&sender, interval_ms, move |tell| {
        let now = BootTimer.elapsed();
        let has_hours = now >= due;
        if has_hours {
            due = now.saturating_add(HOURS_EVERY_MS);
        }
        fetch::cluster(&client, has_hours, tell);
    })?;
    for server in named {
        repeat(&sender, interval_ms, move |tell| {
            server.metrics(tell);
        })?;
    }
    watch_signals(&sender)?;
    // Installs a hook that restores the terminal before a panic is printed.
    let terminal = ratatui::try_init();
    let outcome = terminal.map_err(|error| lost(&error)).and_then(|mut terminal| {
        start(&sender, read_keys)?;
        show(&mut terminal, &events, &mut state, theme)
    });
    let restored = ratatui::try_restore().map_err(|error| lost(&error));
    outcome.and(restored)
}

fn lost(error: &io::Error) -> Failure {
    Failure::unavailable(format!(
        "the terminal cannot be used: {error}; run snowmint top --once to print one snapshot"
    ))
}

/// Starts a thread, which must not end before the process does.
fn start(sender: &Sender<Event>, work: impl FnOnce(&Sender<Event>) + Send + 'static) -> Outcome {
    let notice = EndNotice(sender.clone());
    let started = thread::Builder::new().spawn(move || {
        let notice = notice;
        work(&notice.0);
    });
    started
        .map(drop)
        .map_err(|error| Failure::unavailable(format!("a thread cannot be started: {error}")))
}

/// Starts a thread that calls again and again.
fn repeat(
    sender: &Sender<Event>,
    interval_ms: u64,
    mut round: impl FnMut(&mut dyn FnMut(Update)) + Send + 'static,
) -> Outcome {
    let runtime = store::runtime()?;
    start(sender, move |sender| {
        let mut is_open = true;
        while is_open {
            round(&mut |update| is_open &= sender.send(Event::Update(update)).is_ok());
            runtime.block_on(BootTimer.sleep_ms(interval_ms));
        }
    })
}

/// Starts a thread that waits for signals: their default action would not restore the terminal.
fn watch_signals(sender: &Sender<Event>) -> Outcome {
    let runtime = store::runtime()?;
    let listen = |kind| {
        let _entered = runtime.enter();
        signal(kind).map_err(|error| {
            Failure::unavailable(format!("signal handlers cannot be set: {error}"))
        })
    };
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hangup = listen(SignalKind::hangup())?;
    start(sender, move |sender| {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
            }
        });
        let _ = sender.send(Event::Stop);
    })
}

fn read_keys(sender: &Sender<Event>) {
    loop {
        let event = match event::read() {
            Ok(event::Event::Key(key)) if key.is_release() => continue,
            Ok(event::Event::Key(key)) => Event::Key(key),
            Ok(event::Event::Resize(..)) => Event::Resized,
            Ok(_) => continue,
            Err(error) => Event::Failed(lost(&error)),
        };
        let is_last = matches!(event, Event::Failed(_));
        if sender.send(event).is_err() || is_last {
            return;
        }
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    events: &Receiver<Event>,
    state: &mut State,
    theme: Theme,
) -> Outcome {
    loop {
        state.tick(Moment::now());
        terminal.draw(|frame| draw(frame, state, theme)).map_err(|error| lost(&error))?;
        let mut event = match events.recv_timeout(REDRAW) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(thread_ended()),
        };
        // Updates that came together need one screen.
        while let Some(next) = event {
            state.tick(Moment::now());
            match next {
                Event::Update(update) => state.apply(update),
                Event::Key(key) if ends(state, key) => return Ok(()),
                Event::Key(_) | Event::Resized => {}
                Event::Stop => return Ok(()),
                Event::Failed(failure) => return Err(failure),
                Event::ThreadEnded => return Err(thread_ended()),
            }
            event = events.try_recv().ok();
        }
    }
}

/// Acts on a key, and returns whether it ends the view.
fn ends(state: &mut State, key: KeyEvent) -> bool {
    let rows = table(state, state.focus).rows;
    let keys: Vec<String> = rows.into_iter().map(|row| row.key).collect();
    state.act(key, &keys)
}

fn thread_ended() -> Failure {
    Failure::internal("a thread of the view ended")
}

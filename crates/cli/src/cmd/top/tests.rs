//! Screens of made-up clusters, compared with the files in `screens`.
#![allow(clippy::unwrap_used, reason = "a test reports by a panic")]

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use snowmint_core::{ElapsedMillis, Rfc3339};

use super::heading::standing;
use super::metrics::Metrics;
use super::state::{Focus, Moment, State, Update};
use super::table::{Cell, Tone};
use super::tables::table;
use super::view::{Theme, draw};

/// Environment variable that writes the files instead of comparing them.
const WRITE: &str = "SNOWMINT_WRITE_GENERATED";
const NOW: &str = "2026-11-29T10:42:17.250Z";
const BEGUN_MS: u64 = 1_000_000;

/// Returns the moment this many milliseconds after the start of the view.
fn moment(after_ms: u64) -> Moment {
    let Rfc3339(now) = NOW.parse().unwrap();
    Moment { unix: now.saturating_add(after_ms), elapsed: ElapsedMillis::new(BEGUN_MS + after_ms) }
}

fn state() -> State {
    State::new(vec!["ids-1:7700".to_owned()], 2_000, moment(0))
}

fn read<T: DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).unwrap()
}

/// Returns the member ID of a server.
fn id(number: u64) -> String {
    format!("{number:032x}")
}

/// Returns a live member with its report.
fn member(number: u64) -> Value {
    let clock_ahead_ms = [0, 3, -1_250][usize::try_from(number - 1).unwrap()];
    json!({
        "member": id(number), "owner": format!("ids-{number}"), "host": format!("host-{number}"),
        "process": 100 + number, "http": format!("http://10.0.0.{number}:7700"),
        "resp": format!("10.0.0.{number}:7701"), "own": number == 1, "live": true,
        "joined": "2026-11-29T09:12:00Z", "last_renewed": "2026-11-29T10:42:16Z",
        "report": {
            "version": "0.1.0", "ready": true, "codes": [], "clock_ahead_ms": clock_ahead_ms,
            "presence_ms": 2_000, "sections": 5_461, "issued": 1_234_567,
        },
    })
}

fn worker(number: u64) -> Value {
    json!({
        "pool": "workers-10", "number": number - 1, "owner": format!("ids-{number}"),
        "host": format!("host-{number}"), "process": 100 + number, "term": 1,
        "mark": "2026-11-29T10:42:47Z", "live": true,
    })
}

/// Returns five minutes of a server.
fn history(number: u64) -> Value {
    let samples = 60_u64;
    let list = |value: &dyn Fn(u64) -> Value| (0..samples).map(value).collect::<Vec<Value>>();
    let orders = list(&|at| json!(50_000 * number + at * 2_500));
    let invoices = list(&|at| json!(if at % 20 < 10 { 0 } else { at * number }));
    json!({
        "every_ms": 5_000, "times_ms": list(&|at| json!(1_000_000 + at * 5_001)),
        "spans_ms": list(&|_| json!(5_000)), "ready": list(&|_| json!(true)),
        "ids": { "http": orders, "resp": invoices, "grpc": list(&|_| json!(0)) },
        "sources": { "orders": orders, "invoices": invoices },
        "errors": { "http": list(&|at| json!(at % 2 * number)), "resp": list(&|_| json!(0)) },
        "request_p50_us": list(&|_| json!(50)), "request_p99_us": list(&|_| json!(250)),
        "window_runway_ms": list(&|_| json!(number * 7_000)),
        "prefetch_runway_ms": list(&|_| json!(null)),
        "clock_ahead_ms": list(&|_| json!(0)),
    })
}

fn sources() -> Vec<Value> {
    let source = |name: &str, more: Value| {
        let mut body = json!({ "name": name, "version": 3, "enabled": true });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    vec![
        source("counters", json!({ "kind": "counter" })),
        source("invoices", json!({ "kind": "segment", "next": "70001" })),
        source("old", json!({ "kind": "snowflake", "enabled": false })),
        source("orders", json!({ "kind": "snowflake", "layout": "time=41,worker=10,sequence=12" })),
    ]
}

/// Returns the metrics of the named server after a number of calls.
fn metrics(calls: u64) -> Metrics {
    Metrics::read(&format!(
        "snowmint_source_errors_total{{source=\"invoices\"}} {}\n\
         snowmint_source_errors_total{{source=\"orders\"}} 0\n\
         snowmint_request_errors_total{{protocol=\"http\",code=\"overloaded\"}} {}\n\
         snowmint_request_errors_total{{protocol=\"resp\",code=\"unknown_source\"}} 12\n\
         snowmint_window_runway_seconds{{source=\"orders\"}} 19.94\n\
         snowmint_segment_runway_seconds{{source=\"invoices\"}} 4.2\n\
         snowmint_segment_prefetched{{source=\"invoices\"}} 12345.0\n",
        calls * 3,
        calls * 50
    ))
}

fn server() -> Update {
    Update::Server(Box::new(Ok(read(json!({
        "version": "0.1.0", "namespace": "shop", "owner": "ids-1", "host": "host-1",
        "member": id(1), "tokens_required": false,
        "store": {
            "clock": "store", "durable_on_reply": true, "safe_over_failover": true,
            "presence": "record", "warnings": [],
        },
    })))))
}

fn ready() -> Update {
    Update::Ready(Ok(read(json!({ "ready": true, "reasons": [], "codes": [] }))))
}

/// Takes two rounds of calls to three servers.
fn healthy() -> State {
    let mut state = state();
    for calls in 1..=2 {
        state.tick(moment(calls * 2_000));
        let members: Vec<Value> = (1..=3).map(member).collect();
        let workers: Vec<Value> = (1..=3).map(worker).collect();
        let name = "ids-1:7700".to_owned();
        state.apply(ready());
        state.apply(server());
        state.apply(Update::Members(Ok(read(json!({ "servers": members })))));
        state.apply(Update::Workers(Ok(read(json!(workers)))));
        state.apply(Update::Sources(Ok(read(json!(sources())))));
        state.apply(Update::Metrics(name, Box::new(Ok(metrics(calls)))));
        for number in 1..=3 {
            state.apply(Update::History(id(number), Box::new(Ok(read(history(number))))));
        }
    }
    state
}

/// Takes a round in which the second server has been killed.
fn one_gone() -> State {
    let mut state = healthy();
    state.tick(moment(14_000));
    let mut gone = member(2);
    let fields = gone.as_object_mut().unwrap();
    fields.remove("report");
    fields.insert("error".into(), "server sent no report within 2000 ms".into());
    state.apply(ready());
    state.apply(Update::Members(Ok(read(json!({ "servers": [member(1), gone, member(3)] })))));
    for number in [1, 3] {
        state.apply(Update::History(id(number), Box::new(Ok(read(history(number))))));
    }
    state
}

/// Returns what a terminal of this size shows.
fn screen(state: &State, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Theme::new(false))).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let lines = (0..height).map(|y| format!("{}\n", line(y).trim_end()));
    lines.collect()
}

#[track_caller]
fn compare(name: &str, state: &State, size: (u16, u16)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/top/screens").join(name);
    let shown = screen(state, size);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    assert_eq!(shown, wanted, "run the test with {WRITE}=1, and look at {name}");
}

#[test]
fn screen_shows_a_healthy_cluster() {
    compare("healthy.txt", &healthy(), (80, 24));
}

#[test]
fn screen_shows_all_columns_with_room() {
    compare("wide.txt", &healthy(), (120, 30));
}

#[test]
fn screen_shows_a_server_that_is_gone() {
    compare("one-gone.txt", &one_gone(), (100, 24));
}

#[test]
fn screen_fits_sixty_columns() {
    compare("narrow.txt", &one_gone(), (60, 24));
}

#[test]
fn screen_shows_a_namespace_without_sources() {
    let mut state = healthy();
    state.apply(Update::Sources(Ok(Vec::new())));
    press(&mut state, &[KeyCode::Tab]);
    compare("no-sources.txt", &state, (80, 24));
}

#[test]
fn screen_shows_a_server_that_was_never_reached() {
    let mut state = state();
    state.tick(moment(7_000));
    let error = "no response from http://ids-1:7700: connection refused".to_owned();
    state.apply(Update::Ready(Err(error.clone())));
    state.apply(Update::Members(Err(error.clone())));
    state.apply(Update::Metrics("ids-1:7700".into(), Box::new(Err(error))));
    compare("unreachable.txt", &state, (80, 24));
}

/// Returns the second line, and its tone, for these servers.
fn second_line(servers: &[Value]) -> (String, Tone) {
    let mut state = healthy();
    state.apply(Update::Members(Ok(read(json!({ "servers": servers })))));
    let Cell { text, tone } = standing(&state);
    (text, tone)
}

#[test]
fn second_line_says_which_servers_need_a_look() {
    let with = |number: u64, more: Value| {
        let mut one = member(number);
        one["report"]["clock_ahead_ms"] = json!(0);
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    let well = |number| with(number, json!({}));
    let report = |ready: bool, ahead_ms: i64| {
        json!({ "report": { "version": "0.1.0", "ready": ready, "codes": [], "presence_ms": 1,
            "clock_ahead_ms": ahead_ms, "sections": 0, "issued": 0 } })
    };
    let silent = json!({ "report": null, "error": "server sent no report within 2000 ms" });
    let gone = json!({ "report": null, "live": false, "last_renewed": "2026-11-29T10:38:17.000Z" });
    for (servers, text, tone) in [
        (vec![well(1)], "ready", Tone::Good),
        (vec![well(1), well(2), well(3)], "ready; all 3 servers are ready", Tone::Good),
        (
            vec![well(1), with(2, gone.clone()), well(3)],
            "ready; 2 of 2 servers are ready; ids-2 has been gone for 4 min",
            Tone::Doubt,
        ),
        (
            vec![well(1), with(2, gone.clone())],
            "ready; 1 of 1 server is ready; ids-2 has been gone for 4 min",
            Tone::Doubt,
        ),
        (
            vec![well(1), with(2, silent.clone()), with(3, report(true, -3_800))],
            "ready; 2 of 3 servers are ready; ids-2 does not respond; \
             the clock of ids-3 is 3.8 s behind",
            Tone::Doubt,
        ),
        (
            vec![with(1, report(true, 1_000))],
            "ready; the clock of ids-1 is 1.0 s ahead",
            Tone::Doubt,
        ),
        // The line begins with the reasons of an only server.
        (vec![with(1, report(false, 0))], "ready", Tone::Good),
        (
            vec![well(1), with(2, report(false, 0))],
            "ready; 1 of 2 servers is ready; ids-2 is not ready",
            Tone::Doubt,
        ),
        (
            // Programs that mint themselves are no servers.
            vec![well(1), with(2, json!({ "http": null, "report": null }))],
            "ready",
            Tone::Good,
        ),
        (
            (1..=6)
                .map(|at| {
                    if at == 1 {
                        well(1)
                    } else {
                        let name = format!("ids-{at}");
                        let mut one = with(2, silent.clone());
                        (one["member"], one["owner"]) = (json!(id(at)), json!(name));
                        one
                    }
                })
                .collect(),
            "ready; 1 of 6 servers is ready; ids-2 does not respond; ids-3 does not respond; \
             ids-4 does not respond; 2 more need a look",
            Tone::Doubt,
        ),
    ] {
        assert_eq!(second_line(&servers), (text.to_owned(), tone));
    }
}

#[test]
fn second_line_of_a_silent_server_says_nothing_of_others() {
    let mut state = one_gone();
    assert!(standing(&state).text.contains("ids-2 does not respond"));
    state.tick(moment(60_000));
    assert!(!standing(&state).text.contains("ids-2"), "{}", standing(&state).text);
}

#[test]
fn screen_of_forty_columns_has_rates_and_a_long_name() {
    let mut state = healthy();
    let long = "production-orders-of-the-european-region-1";
    let named = json!([{ "name": long, "version": 1, "kind": "snowflake" }]);
    state.apply(Update::Sources(Ok(read(named))));
    let shown = screen(&state, (40, 24));
    let row = shown.lines().find(|line| line.starts_with("production")).unwrap();
    assert!(row.contains("\u{2026} "), "{shown}");
    assert!(row.trim_end().ends_with('0') || row.trim_end().ends_with('-'), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("SOURCE") && line.contains("IDS/S")));
    // With room to spare it is whole.
    assert!(screen(&state, (120, 24)).contains(&format!("{long} snowflake")));
}

#[test]
fn one_member_that_left_is_singular() {
    let mut state = healthy();
    let left = json!({ "live": false, "last_renewed": "2026-11-29T09:00:00Z", "report": null });
    let mut old = member(2);
    old.as_object_mut().unwrap().extend(left.as_object().unwrap().clone());
    state.apply(Update::Members(Ok(read(json!({ "servers": [member(1), old] })))));
    let notice = table(&state, Focus::Servers).notice.unwrap();
    assert_eq!(notice, "1 member that left more than 10 minutes ago");
}

#[test]
fn screen_marks_all_values_of_a_silent_server_as_old() {
    let mut state = healthy();
    state.tick(moment(4_000 + 5_000));
    assert_eq!(state.silent_ms(), None);
    state.tick(moment(4_000 + 12_000));
    compare("silent.txt", &state, (80, 24));
    state.apply(ready());
    assert_eq!(state.silent_ms(), None);
}

#[test]
fn servers_are_old_while_they_cannot_be_listed() {
    let mut state = healthy();
    let seen = |state: &State| {
        let servers = table(state, Focus::Servers);
        (servers.is_old, servers.rows[2].cells.last().unwrap().text.clone())
    };
    assert_eq!(seen(&state), (false, "now".to_owned()));
    state.tick(moment(6_500));
    state.apply(ready());
    state.apply(Update::Members(Err("no response from the store".to_owned())));
    assert_eq!(seen(&state), (true, "2.5 s ago".to_owned()));
    // The history of the called server, which the list has under another key, counts once.
    let known = state.histories.len();
    state.apply(Update::History("own".into(), Box::new(Ok(read(history(1))))));
    assert_eq!(state.histories.len(), known);
}

#[test]
fn screen_says_what_a_token_may_not_see() {
    let mut state = state();
    let error = || "token \"metrics\" lacks the right admin; ask its owner".to_owned();
    state.apply(ready());
    state.apply(server());
    state.apply(Update::Members(Err(error())));
    state.apply(Update::Sources(Err(error())));
    state.apply(Update::History("own".into(), Box::new(Ok(read(history(1))))));
    state.apply(Update::Metrics("ids-1:7700".into(), Box::new(Ok(metrics(1)))));
    compare("forbidden.txt", &state, (80, 24));
}

#[test]
fn help_covers_the_tables_until_a_key() {
    let mut state = healthy();
    press(&mut state, &[KeyCode::Char('?')]);
    compare("help.txt", &state, (80, 24));
    press(&mut state, &[KeyCode::Down]);
    assert!(!state.is_help && state.choice(Focus::Servers).selected.is_none());
}

#[test]
fn screens_of_any_size_are_drawn() {
    let mut states = [state(), healthy(), one_gone()];
    press(&mut states[1], &[KeyCode::Char('?')]);
    for state in &mut states {
        for focus in Focus::ALL {
            state.focus = focus;
            for width in [0, 1, 2, 7, 19, 40, 79, 200] {
                for height in [0, 1, 2, 3, 4, 5, 8, 13, 21] {
                    screen(state, (width, height));
                }
            }
        }
    }
}

#[test]
fn colours_are_used_only_if_wanted() {
    for wanted in [true, false] {
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &one_gone(), Theme::new(wanted))).unwrap();
        let cells = terminal.backend().buffer().content();
        let is_coloured =
            cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(is_coloured, wanted);
    }
}

fn keys(state: &State) -> Vec<String> {
    table(state, state.focus).rows.into_iter().map(|row| row.key).collect()
}

fn press(state: &mut State, codes: &[KeyCode]) {
    for code in codes {
        let keys = keys(state);
        assert!(!state.act(KeyEvent::new(*code, KeyModifiers::NONE), &keys));
    }
}

#[test]
fn keys_sort_and_select_rows() {
    let mut state = healthy();
    assert_eq!(keys(&state), [id(1), id(2), id(3)]);
    press(&mut state, &[KeyCode::Char('s')]);
    assert_eq!(keys(&state), [id(3), id(2), id(1)]);
    // The first key selects the first row, which keeps the selection when rows move.
    press(&mut state, &[KeyCode::Down, KeyCode::Char('j'), KeyCode::Up, KeyCode::Char('j')]);
    press(&mut state, &[KeyCode::Char('s'), KeyCode::Char('s')]);
    assert_eq!(state.choice(Focus::Servers).selected, Some(id(2)));
    press(&mut state, &[KeyCode::Char('j'), KeyCode::Char('j'), KeyCode::Char('j')]);
    assert_eq!(state.choice(Focus::Servers).selected, Some(id(3)));
    press(&mut state, &[KeyCode::Tab]);
    assert_eq!(keys(&state), ["orders", "invoices", "counters", "old"]);
    press(&mut state, &[KeyCode::Char('s')]);
    assert_eq!(keys(&state)[0], "invoices");
    press(&mut state, &[KeyCode::BackTab, KeyCode::BackTab]);
    assert_eq!(keys(&state), ["overloaded http", "unknown_source resp"]);
}

#[test]
fn key_with_control_only_ends_the_view_or_closes_the_help() {
    let mut state = healthy();
    let key = |letter, modifiers| KeyEvent::new(KeyCode::Char(letter), modifiers);
    let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
    for letter in ['s', 'p', '?', 'j', 'q'] {
        let before = screen(&state, (80, 24));
        assert!(!state.act(key(letter, control), &keys(&state)), "{letter}");
        assert_eq!(screen(&state, (80, 24)), before, "{letter}");
        press(&mut state, &[KeyCode::Char('?')]);
        assert!(!state.act(key(letter, control), &keys(&state)), "{letter}");
        assert_eq!(screen(&state, (80, 24)), before, "{letter}");
    }
    assert!(!state.act(key('c', none), &[]));
    for is_help in [false, true] {
        state.is_help = is_help;
        assert!(state.act(key('c', control), &[]) && state.act(key('q', none), &[]));
    }
}

#[test]
fn paused_view_stands_still() {
    let mut state = healthy();
    press(&mut state, &[KeyCode::Char('p')]);
    let paused = screen(&state, (80, 24));
    state.tick(moment(60_000));
    state.apply(Update::Members(Ok(read(json!({ "servers": [] })))));
    assert_eq!(screen(&state, (80, 24)), paused);
    press(&mut state, &[KeyCode::Char('p')]);
    assert_ne!(screen(&state, (80, 24)), paused);
}

#[test]
fn restarted_server_has_no_rate_of_errors_for_one_round() {
    let mut state = healthy();
    let rate = |state: &State| state.rise(|metrics| metrics.source_errors.get("invoices").copied());
    assert_eq!(rate(&state).unwrap().to_string(), "1.5");
    let mut next = |after_ms, calls| {
        state.tick(moment(after_ms));
        state.apply(Update::Metrics("ids-1:7700".into(), Box::new(Ok(metrics(calls)))));
        rate(&state).map(|rate| rate.to_string())
    };
    assert_eq!(next(6_000, 0), None);
    assert_eq!(next(8_000, 2), Some("3.0".into()));
}

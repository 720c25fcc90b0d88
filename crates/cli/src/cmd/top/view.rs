//! The screen: the heading, the tables, and the line of keys.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Block, Borders, Cell as TableCell, Clear, Paragraph, Row as TableRow, Table as TableWidget,
    TableState, Wrap,
};

use super::heading::{place, standing};
use super::state::{Focus, State};
use super::table::{Align, Cell, GAP, Row, Table, Tone, width};
use super::tables::table;
use crate::terminal::table::cut;

/// Smallest useful height of a table: its title, its columns and a row.
const TABLE_ROWS_MIN: u16 = 3;
/// Height from which on the selected row has lines of its own.
const HEIGHT_WITH_DETAIL: u16 = 20;
const DETAIL_ROWS: u16 = 2;
/// Most lines of the reasons that a server is not ready.
const STANDING_ROWS_MAX: usize = 3;

const KEYS: &str = "q quit  tab table  j/k row  s sort  p pause  ? help";

const HELP: &str = "\
q, Ctrl-C   quit
tab         next table
j k ↓ ↑     select a row; its details are below
s           sort by name, by rate, by errors
p           pause
?           this help

IDS/S       rate of the last 5 seconds
RUNWAY      time that the windows, or the
            prefetched numbers, still last
CLOCK       ahead (+) or behind (-) of the
            server's time reference
SECTIONS    counter sections in use
SEEN        last sign of life
(value)     old: the server does not respond
-           unknown, or without a meaning";

/// Styles of the view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    is_coloured: bool,
}

impl Theme {
    pub(super) const fn new(is_coloured: bool) -> Self {
        Self { is_coloured }
    }

    fn of(self, tone: Tone) -> Style {
        let style = Style::new();
        let coloured = |color| if self.is_coloured { style.fg(color) } else { style };
        match tone {
            Tone::Plain => style,
            Tone::Good => coloured(Color::Green),
            Tone::Doubt => coloured(Color::Yellow).add_modifier(Modifier::BOLD),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Old => style.add_modifier(Modifier::DIM),
        }
    }
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    let standing = standing(state);
    let lines = width(&standing.text).div_ceil(usize::from(area.width).max(1));
    let standing_rows = rows_of(lines.clamp(1, STANDING_ROWS_MAX));
    let detail_rows = if area.height >= HEIGHT_WITH_DETAIL { DETAIL_ROWS } else { 0 };
    let heights = [
        Constraint::Length(1),
        Constraint::Length(standing_rows),
        Constraint::Min(0),
        Constraint::Length(detail_rows),
        Constraint::Length(1),
    ];
    let [top, second, body, below, last] = Layout::vertical(heights).areas(area);
    frame.render_widget(Line::styled(joined(&place(state), top.width), Modifier::BOLD), top);
    let reasons = Paragraph::new(standing.text).style(theme.of(standing.tone));
    frame.render_widget(reasons.wrap(Wrap { trim: true }), second);
    let detail = draw_tables(frame, body, state, theme);
    frame.render_widget(Paragraph::new(detail).wrap(Wrap { trim: true }), below);
    let order = state.choice(state.focus).order.name();
    let keys = KEYS.replace("s sort", &format!("s sort ({order})"));
    frame.render_widget(Line::styled(keys, Modifier::DIM), last);
    if state.is_help {
        draw_help(frame, area);
    }
}

/// Joins the facts that fit.
fn joined(facts: &[String], available: u16) -> String {
    let mut line = String::new();
    for fact in facts {
        let gap = if line.is_empty() { "" } else { "  " };
        if width(&line) + gap.len() + width(fact) <= usize::from(available) {
            line.push_str(gap);
            line.push_str(fact);
        }
    }
    line
}

fn rows_of(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Draws the tables that have room; returns the detail of the selected row.
fn draw_tables(frame: &mut Frame<'_>, body: Rect, state: &State, theme: Theme) -> String {
    let tables = Focus::ALL.map(|focus| table(state, focus));
    // The heading already has the error of a server that does not respond.
    let is_silent = state.silent_ms().is_some();
    let wanted = tables.each_ref().map(|table| {
        let notice = table.notice.as_ref().filter(|_| !is_silent);
        let rows = table.rows.len().max(1) + usize::from(notice.is_some());
        rows_of(rows).saturating_add(TABLE_ROWS_MIN - 1)
    });
    let focused = Focus::ALL.iter().position(|focus| *focus == state.focus).unwrap_or_default();
    let heights = heights(body.height, wanted, focused);
    let mut top = body.y;
    let mut detail = String::new();
    for ((table, focus), height) in tables.iter().zip(Focus::ALL).zip(heights) {
        let area = Rect { y: top, height, ..body };
        top = top.saturating_add(height);
        let is_focused = focus == state.focus;
        let selected = selected(state, focus, table);
        if let Some(row) = selected.and_then(|at| table.rows.get(at)).filter(|_| is_focused) {
            detail = row.detail.clone();
        }
        let is_old = is_silent || table.is_old;
        let look = Look { theme, is_silent, is_old, selected: selected.filter(|_| is_focused) };
        draw_table(frame, area, table, is_focused, look);
    }
    detail
}

/// Divides the height among the tables: the focused one comes first. A table without room for a
/// row gets none.
fn heights(available: u16, wanted: [u16; 3], focused: usize) -> [u16; 3] {
    let order = [focused, (focused + 1) % 3, (focused + 2) % 3];
    let (mut given, mut left) = ([0; 3], available);
    // The focused table alone may be smaller than the minimum.
    for (place, at) in order.into_iter().enumerate() {
        let least = TABLE_ROWS_MIN.min(left);
        if place == 0 || least == TABLE_ROWS_MIN {
            given[at] = least;
            left -= least;
        }
    }
    for at in order {
        if given[at] > 0 {
            let more = wanted[at].saturating_sub(given[at]).min(left);
            given[at] += more;
            left -= more;
        }
    }
    given
}

/// Returns the place of the selected row: the first one before a choice.
fn selected(state: &State, focus: Focus, table: &Table) -> Option<usize> {
    let chosen = state.choice(focus).selected.as_ref();
    let place = table.rows.iter().position(|row| Some(&row.key) == chosen);
    place.or_else(|| (!table.rows.is_empty()).then_some(0))
}

/// Circumstances that decide how a table looks.
#[derive(Clone, Copy)]
struct Look {
    theme: Theme,
    /// Whether the called server does not respond.
    is_silent: bool,
    /// Whether all values of the table are old.
    is_old: bool,
    selected: Option<usize>,
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, table: &Table, is_focused: bool, look: Look) {
    let title =
        if is_focused { format!("[{}]", table.title) } else { format!(" {} ", table.title) };
    let age = if look.is_old && !table.rows.is_empty() { "old: " } else { "" };
    let note = Line::raw(format!("{age}{}", table.note)).alignment(Alignment::Right);
    let mut block = Block::new().borders(Borders::TOP).title(Line::styled(title, Modifier::BOLD));
    if width(table.title) + 2 + note.width() < usize::from(area.width) {
        block = block.title(note);
    }
    let notice = table.notice.as_ref().filter(|_| !look.is_silent);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [rows, last] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(u16::from(notice.is_some()))])
            .areas(inner);
    if let Some(notice) = notice {
        frame.render_widget(Line::styled(notice.as_str(), look.theme.of(Tone::Doubt)), last);
    }
    if table.rows.is_empty() {
        frame.render_widget(Line::styled(table.empty, Modifier::DIM), rows);
        return;
    }
    let columns = table.fit(usize::from(rows.width));
    let head = columns.iter().map(|(at, width)| {
        let column = table.columns.get(*at);
        let cell = Cell::plain(column.map_or("", |column| column.title));
        drawn(&cell, column.map_or(Align::Left, |column| column.align), *width, look)
    });
    let body = table.rows.iter().map(|row| drawn_row(table, row, &columns, look));
    let widths = columns.iter().map(|(_, width)| Constraint::Length(rows_of(*width)));
    let widget = TableWidget::new(body, widths)
        .header(TableRow::new(head).style(Modifier::DIM))
        .column_spacing(rows_of(GAP))
        .row_highlight_style(Modifier::REVERSED);
    let mut place = TableState::new().with_selected(look.selected);
    frame.render_stateful_widget(widget, rows, &mut place);
}

fn drawn_row<'r>(table: &Table, row: &Row, columns: &[(usize, usize)], look: Look) -> TableRow<'r> {
    let cells = columns.iter().filter_map(|(at, width)| {
        let column = table.columns.get(*at)?;
        Some(drawn(row.cells.get(*at)?, column.align, *width, look))
    });
    TableRow::new(cells)
}

fn drawn<'c>(cell: &Cell, align: Align, room: usize, look: Look) -> TableCell<'c> {
    let tone = if look.is_old { Tone::Old } else { cell.tone };
    let spare = width(&cell.text).saturating_sub(room);
    let text = match align {
        // Bars are one column wide each.
        Align::Picture => cell.text.chars().skip(spare).collect(),
        Align::Left | Align::Right => cut(&cell.text, room),
    };
    let line = Line::from(Span::styled(text, look.theme.of(tone)));
    TableCell::from(match align {
        Align::Right => line.alignment(Alignment::Right),
        Align::Left | Align::Picture => line,
    })
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let text = Text::raw(HELP);
    let room = |wanted: usize, available: u16| rows_of(wanted + 2).min(available);
    let (wide, high) = (room(text.width(), area.width), room(text.height(), area.height));
    let place = Rect {
        x: area.x + (area.width - wide) / 2,
        y: area.y + (area.height - high) / 2,
        width: wide,
        height: high,
    };
    frame.render_widget(Clear, place);
    let block = Block::new().borders(Borders::ALL).title("Help: any key closes it");
    frame.render_widget(Paragraph::new(text).block(block), place);
}

//! One snapshot as text, for output that is no terminal.

use super::heading::{place, standing};
use super::state::{Focus, State};
use super::table::{Align, Table, width};
use super::tables::table;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

/// Prints all tables with all their columns, but without pictures.
pub(super) fn print(state: &State, out: &mut Output) -> Outcome {
    out.line(place(state).join("  "))?;
    out.line(standing(state).text)?;
    for focus in Focus::ALL {
        out.text("\n")?;
        lines(&table(state, focus)).into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(())
}

fn lines(table: &Table) -> Vec<String> {
    let age = if table.is_old { "old: " } else { "" };
    let mut lines = vec![format!("{} ({age}{})", table.title, table.note)];
    let columns: Vec<(usize, usize)> = table.fit(usize::MAX);
    let line = |texts: &dyn Fn(usize) -> String| {
        let mut line = String::new();
        for (at, room) in &columns {
            let Some(column) = table.columns.get(*at) else { continue };
            let text = texts(*at);
            let spaces = " ".repeat(room.saturating_sub(width(&text)));
            match column.align {
                Align::Left => line.push_str(&format!("{text}{spaces}  ")),
                Align::Right => line.push_str(&format!("{spaces}{text}  ")),
                Align::Picture => {}
            }
        }
        line.trim_end().to_owned()
    };
    if table.rows.is_empty() {
        lines.push(table.empty.to_owned());
    } else {
        let title = |at: usize| table.columns.get(at).map_or("", |column| column.title).to_owned();
        lines.push(line(&title));
    }
    for row in &table.rows {
        let text = |at: usize| row.cells.get(at).map_or_else(String::new, |cell| cell.text.clone());
        lines.push(line(&text));
    }
    lines.extend(table.notice.clone());
    lines
}

//! A table of texts, and the columns of it that fit a width.

use ratatui::text::Span;
use snowmint_coord::label::visible;

/// Meaning of a text, which decides its style.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Good,
    Doubt,
    Bad,
    /// A value from before the server stopped responding.
    Old,
}

/// Side on which a column's texts begin, and what happens to long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// Bars, the newest last: cut on the left.
    Picture,
}

/// A column. Where the width is too small for all columns, those with the highest rank are left
/// out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) align: Align,
    pub(super) rank: u8,
}

impl Column {
    pub(super) const fn left(title: &'static str, rank: u8) -> Self {
        Self { title, align: Align::Left, rank }
    }

    pub(super) const fn right(title: &'static str, rank: u8) -> Self {
        Self { title, align: Align::Right, rank }
    }
}

/// One text of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl Cell {
    /// Makes a cell; control characters become visible, because names come from elsewhere.
    pub(super) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: visible(text.into()), tone }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }

    /// Makes a cell of a value that may be unknown.
    pub(super) fn known<T: ToString>(value: Option<T>) -> Self {
        Self::plain(value.map_or_else(|| "-".to_owned(), |value| value.to_string()))
    }

    /// Returns the same as an old value, if `is_old`.
    pub(super) fn old_if(self, is_old: bool) -> Self {
        if !is_old || self.text == "-" {
            return self;
        }
        // Without colours the brackets alone show it.
        Self { text: format!("({})", self.text), tone: Tone::Old }
    }
}

/// A row, which its key identifies when rows move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) cells: Vec<Cell>,
    /// More about the row, for a line of its own.
    pub(super) detail: String,
}

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) title: &'static str,
    /// Facts about the whole table.
    pub(super) note: String,
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Row>,
    /// Whether all rows are from before the last call failed.
    pub(super) is_old: bool,
    /// Reason that the rows are old or incomplete.
    pub(super) notice: Option<String>,
    /// Text for a table without rows.
    pub(super) empty: &'static str,
}

/// Narrowest picture.
const PICTURE_MIN: usize = 12;
/// Longest text of another cell, unless there is room to spare.
const CELL_MAX: usize = 40;
/// Width to which names are cut, so that the columns up to this rank stay.
const NAME_MIN: usize = 12;
const RANK_KEPT: u8 = 2;
/// Spaces between columns.
pub(super) const GAP: usize = 1;

/// Returns the width of a text on a terminal.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

impl Table {
    /// Returns the columns that fit, in order, each with its width. The first one always does; it has
    /// names, and becomes narrower before a column of the first ranks goes.
    pub(super) fn fit(&self, available: usize) -> Vec<(usize, usize)> {
        let mut chosen: Vec<(usize, usize)> =
            self.columns.iter().enumerate().map(|(at, _)| (at, self.least(at))).collect();
        while sum(&chosen) > available && chosen.len() > 1 {
            let rank = |(at, _): &(usize, usize)| self.columns.get(*at).map(|column| column.rank);
            let Some(last) = chosen.iter().map(rank).max() else { break };
            let over = sum(&chosen) - available;
            match chosen.first_mut() {
                Some((_, name)) if last <= Some(RANK_KEPT) && *name >= NAME_MIN + over => {
                    *name -= over;
                }
                _ => chosen.retain(|column| rank(column) != last),
            }
        }
        if let [(_, only)] = &mut chosen[..] {
            *only = (*only).min(available.max(1));
        }
        // Texts come before pictures.
        for of_pictures in [false, true] {
            for at in 0..chosen.len() {
                let rest = available.saturating_sub(sum(&chosen));
                let Some((column, width)) = chosen.get_mut(at) else { continue };
                let align = self.columns.get(*column).map(|column| column.align);
                if (align == Some(Align::Picture)) == of_pictures {
                    *width = (*width + rest).min(self.widest(*column));
                }
            }
        }
        chosen
    }

    /// Returns the smallest width of a column.
    fn least(&self, at: usize) -> usize {
        let Some(column) = self.columns.get(at) else { return 0 };
        match column.align {
            Align::Picture => PICTURE_MIN,
            Align::Left | Align::Right => self.widest(at).min(CELL_MAX),
        }
    }

    fn widest(&self, at: usize) -> usize {
        let title = self.columns.get(at).map_or(0, |column| width(column.title));
        let cells = self.rows.iter().filter_map(|row| row.cells.get(at));
        cells.map(|cell| width(&cell.text)).max().unwrap_or(0).max(title)
    }
}

fn sum(columns: &[(usize, usize)]) -> usize {
    let widths = columns.iter().map(|(_, width)| width);
    widths.sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::left("NAME", 0),
        Column::right("RATE", 1),
        Column::left("ADDRESS", 2),
        Column { title: "LAST", align: Align::Picture, rank: 3 },
    ];

    fn table() -> Table {
        let cells = ["orders", "1,000", "127.0.0.1:7700", &"▁".repeat(60)];
        let row = Row { cells: cells.map(Cell::plain).to_vec(), ..Row::default() };
        Table { columns: &COLUMNS, rows: vec![row], ..Table::default() }
    }

    #[test]
    fn columns_leave_by_rank_and_pictures_take_the_rest() {
        let table = table();
        for (available, columns) in [
            (200, &[(0, 6), (1, 5), (2, 14), (3, 60)][..]),
            (50, &[(0, 6), (1, 5), (2, 14), (3, 22)]),
            (40, &[(0, 6), (1, 5), (2, 14), (3, 12)]),
            (39, &[(0, 6), (1, 5), (2, 14)]),
            (26, &[(0, 6), (1, 5)]),
            (11, &[(0, 6)]),
            (5, &[(0, 5)]),
            (0, &[(0, 1)]),
        ] {
            assert_eq!(table.fit(available), columns, "{available}");
        }
        assert_eq!(Table::default().fit(80), []);
    }

    #[test]
    fn long_names_are_cut_before_a_rate_goes() {
        let mut table = table();
        table.rows[0].cells[0] = Cell::plain("x".repeat(41));
        for (available, columns) in [
            (200, &[(0, 41), (1, 5), (2, 14), (3, 60)][..]),
            (62, &[(0, 41), (1, 5), (2, 14)]),
            (61, &[(0, 40), (1, 5), (2, 14)]),
            (60, &[(0, 39), (1, 5), (2, 14)]),
            (40, &[(0, 19), (1, 5), (2, 14)]),
            (32, &[(0, 26), (1, 5)]),
            (18, &[(0, 12), (1, 5)]),
            (17, &[(0, 17)]),
        ] {
            assert_eq!(table.fit(available), columns, "{available}");
        }
    }

    #[test]
    fn cells_show_control_characters_and_age() {
        assert_eq!(Cell::plain("a\u{1b}[2J").text, "a\\u{1b}[2J");
        assert_eq!(Cell::plain("+3 ms").old_if(true).text, "(+3 ms)");
        assert_eq!(Cell::known(None::<u64>).old_if(true), Cell::plain("-"));
    }
}

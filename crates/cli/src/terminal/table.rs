//! Tables that fit the terminal.

use snowmint_coord::label::Visible;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Width below which no column of text is cut.
const TEXT_MIN: usize = 16;
/// Spaces between two columns.
const GAP: usize = 2;

/// A column: its title, and the side of its cells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    Text(&'static str),
    /// Begins at the left, and is never cut: a part of a time, or of a name to type, says nothing.
    Whole(&'static str),
    /// Ends at the right, and is never cut: a part of a number is another number.
    Number(&'static str),
}

/// A table with a row of titles.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    indent: usize,
    /// Title of the column that is left out last.
    kept: Option<&'static str>,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0, kept: None }
    }

    /// Returns the same table with this many spaces before each line.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Returns the same table, which keeps the column with this title longer than all but the first.
    pub(crate) fn keeping(self, title: &'static str) -> Self {
        Self { kept: Some(title), ..self }
    }

    /// Adds a row. Its texts may have any origin.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| Visible(&cell).to_string()).collect());
    }

    /// Returns the line of titles and the lines of rows, at most `width` wide. Columns that do not
    /// fit are left out, the last ones first; only a text in the first column is cut to any width.
    pub(crate) fn lines(&self, width: Option<usize>) -> (String, Vec<String>) {
        let titles: Vec<String> =
            self.columns.iter().map(|column| column.title().to_owned()).collect();
        let mut shown: Vec<Shown> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = self.rows.iter().filter_map(|row| row.get(at));
                let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
                Shown { at, column: *column, width: widest.max(column.title().width()) }
            })
            .collect();
        if let Some(width) = width {
            shown = self.fitted(shown, width);
        }
        (self.line(&titles, &shown), self.rows.iter().map(|row| self.line(row, &shown)).collect())
    }

    /// Returns the columns that fit, at the widths at which they do.
    fn fitted(&self, mut shown: Vec<Shown>, width: usize) -> Vec<Shown> {
        loop {
            let mut narrow = shown.clone();
            let gaps = GAP * narrow.len().saturating_sub(1) + self.indent;
            if narrowed(&mut narrow, width.saturating_sub(gaps)) || narrow.len() <= 1 {
                return narrow;
            }
            let can_go = |one: &Shown| one.at > 0 && Some(one.column.title()) != self.kept;
            let last = shown.iter().rposition(can_go).unwrap_or(shown.len() - 1);
            shown.remove(last);
        }
    }

    fn line(&self, cells: &[String], shown: &[Shown]) -> String {
        let mut line = " ".repeat(self.indent);
        for Shown { at, column, width } in shown {
            let cell = cells.get(*at).map_or_else(String::new, |cell| cut(cell, *width));
            let space = " ".repeat(width.saturating_sub(cell.width()));
            match column {
                Column::Text(_) | Column::Whole(_) => line.extend([cell.as_str(), &space]),
                Column::Number(_) => line.extend([space.as_str(), &cell]),
            }
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A column in a line, with its place in the rows.
#[derive(Clone, Copy, Debug)]
struct Shown {
    at: usize,
    column: Column,
    width: usize,
}

/// Makes columns of text narrower, the widest first, until they fit or all are at their minimum,
/// which a single column does not have. Returns whether they fit.
fn narrowed(shown: &mut [Shown], width: usize) -> bool {
    let is_single = shown.len() == 1;
    let least = |title: &str| if is_single { 1 } else { TEXT_MIN.max(title.width()) };
    while shown.iter().map(|one| one.width).sum::<usize>() > width {
        let texts = shown.iter_mut().filter_map(|one| match one.column {
            Column::Text(title) => (one.width > least(title)).then_some(&mut one.width),
            Column::Whole(_) | Column::Number(_) => None,
        });
        let Some(widest) = texts.max() else { return false };
        *widest -= 1;
    }
    true
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Whole(title) | Self::Number(title) => title,
        }
    }
}

/// Returns a text in at most this width; an ellipsis replaces what is cut off.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut cut, mut left) = (String::new(), width.saturating_sub(1));
    for letter in text.chars() {
        let wide = letter.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        cut.push(letter);
    }
    cut + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::Text("NAME"),
            Column::Number("WORKERS"),
            Column::Text("A LONG TEXT"),
        ]);
        table.row(["orders", "1024", "one two three four five six"].map(str::to_owned));
        table.row(["\u{6ce8}\u{6587}", "7", "a\u{1b}[1m"].map(str::to_owned));
        table
    }

    #[test]
    fn whole_table_is_aligned_and_shows_control_characters() {
        let (head, rows) = table().lines(None);
        assert_eq!(head, "NAME    WORKERS  A LONG TEXT");
        assert_eq!(rows[0], "orders     1024  one two three four five six");
        assert!(rows[1].starts_with("\u{6ce8}\u{6587}          7  a"), "{}", rows[1]);
        assert!(!rows[1].contains('\u{1b}'), "{}", rows[1]);
    }

    #[test]
    fn table_on_a_terminal_is_cut_to_its_width() {
        for width in 1..60 {
            let (head, rows) = table().lines(Some(width));
            for line in [&head].into_iter().chain(&rows) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        let (head, rows) = table().lines(Some(36));
        assert_eq!(head, "NAME    WORKERS  A LONG TEXT");
        assert_eq!(rows[0], "orders     1024  one two three four\u{2026}");
        // Below the minimum of its texts whole columns go, so that no number is cut.
        assert_eq!(table().lines(Some(33)).1[0], "orders     1024  one two three f\u{2026}");
        assert_eq!(table().lines(Some(32)), table().lines(Some(15)));
        assert_eq!(table().lines(Some(15)).1[0], "orders     1024");
        assert_eq!(table().lines(Some(14)).1[0], "orders");
        assert_eq!(table().lines(Some(5)).1[0], "orde\u{2026}");
    }

    #[test]
    fn numbers_and_times_are_whole_or_absent_at_any_width() {
        let long = "18446744073709551615";
        let time = "2026-11-29T10:42:47.123Z";
        let cells = [long, "a long name of a host", time, "33"];
        let columns = |first| {
            let (name, mark, term) = (Column::Text("HOST"), Column::Whole("MARK"), "TERM");
            let mut table = Table::new([first, name, mark, Column::Number(term)]).keeping("MARK");
            table.row(cells.map(str::to_owned));
            table
        };
        for width in 1..100 {
            let (head, rows) = columns(Column::Number("ID")).lines(Some(width));
            for (cell, title) in [(long, "ID"), (time, "MARK"), ("33", "TERM")] {
                assert_eq!(head.contains(title), rows[0].contains(cell), "{width}: {rows:?}");
            }
            assert!(rows[0].contains(long) && rows[0].width() <= width.max(long.len()), "{rows:?}");
        }
        let (head, rows) = columns(Column::Text("ID")).lines(Some(20 + 2 + 24));
        let wanted = ("ID                    MARK", format!("{long}  {time}"));
        assert_eq!((head.as_str(), rows[0].clone()), wanted, "the kept column goes last");
    }

    #[test]
    fn indented_table_begins_later_and_fits() {
        let (head, rows) = table().indented(2).lines(Some(36));
        assert!(head.starts_with("  NAME") && rows[0].starts_with("  orders"), "{head}");
        assert!(rows.iter().all(|row| row.width() <= 36), "{rows:?}");
    }
}

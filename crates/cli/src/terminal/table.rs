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
    /// Ends at the right, and is never cut: a part of a number is another number.
    Number(&'static str),
}

/// A table with a row of titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    indent: usize,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0 }
    }

    /// Returns the same table with this many spaces before each line.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Adds a row. Its texts may have any origin.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| Visible(&cell).to_string()).collect());
    }

    /// Returns the line of titles and the lines of rows, at most `width` wide.
    pub(crate) fn lines(&self, width: Option<usize>) -> (String, Vec<String>) {
        let titles: Vec<String> =
            self.columns.iter().map(|column| column.title().to_owned()).collect();
        let mut widths: Vec<usize> = titles.iter().map(|title| title.width()).collect();
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.width().max(*widest);
            }
        }
        if let Some(width) = width {
            self.fit(&mut widths, width);
        }
        let line = |cells: &Vec<String>| {
            let line = self.line(cells, &widths);
            width.map_or_else(|| line.clone(), |width| cut(&line, width))
        };
        (line(&titles), self.rows.iter().map(line).collect())
    }

    /// Makes columns of text narrower, the widest first, until the table fits or all are at their
    /// minimum.
    fn fit(&self, widths: &mut [usize], width: usize) {
        let gaps = GAP * self.columns.len().saturating_sub(1) + self.indent;
        while widths.iter().sum::<usize>() + gaps > width {
            let texts = self.columns.iter().zip(widths.iter_mut());
            let texts = texts.filter_map(|(column, width)| match column {
                Column::Text(title) if *width > TEXT_MIN.max(title.width()) => Some(width),
                _ => None,
            });
            let Some(widest) = texts.max() else { return };
            *widest -= 1;
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = " ".repeat(self.indent);
        for ((column, cell), width) in self.columns.iter().zip(cells).zip(widths) {
            let cell = cut(cell, *width);
            let space = " ".repeat(width.saturating_sub(cell.width()));
            match column {
                Column::Text(_) => line.extend([cell.as_str(), &space]),
                Column::Number(_) => line.extend([space.as_str(), &cell]),
            }
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Number(title) => title,
        }
    }
}

/// Returns a text in at most this width; an ellipsis replaces what is cut off.
fn cut(text: &str, width: usize) -> String {
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
        // Below the minimum of its texts the line itself is cut, so the first columns stay whole.
        assert_eq!(table().lines(Some(13)).1[0], "orders     1\u{2026}");
    }

    #[test]
    fn indented_table_begins_later_and_fits() {
        let (head, rows) = table().indented(2).lines(Some(36));
        assert!(head.starts_with("  NAME") && rows[0].starts_with("  orders"), "{head}");
        assert!(rows.iter().all(|row| row.width() <= 36), "{rows:?}");
    }
}

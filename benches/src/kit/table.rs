//! Tables of figures, as text and in Markdown.

use std::fmt::{self, Display};

/// Rows of cells, of which the first has the headings. The first column is aligned to the left, the others to the
/// right.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(title: impl Display, columns: &[&str]) -> Self {
        let mut table = Table(Vec::new());
        table.row(title, columns.iter().map(ToString::to_string));
        table
    }

    pub fn row(&mut self, name: impl Display, cells: impl IntoIterator<Item = String>) {
        self.0.push(std::iter::once(name.to_string()).chain(cells).collect());
    }

    /// Adds a row of figures with so many decimals.
    pub fn figures(
        &mut self,
        name: impl Display,
        decimals: usize,
        figures: impl IntoIterator<Item = f64>,
    ) {
        self.row(name, figures.into_iter().map(|figure| format!("{figure:.decimals$}")));
    }

    /// Returns the table in Markdown, with columns that are aligned in this way.
    pub fn markdown(&self, align: &str) -> String {
        let lines: Vec<String> =
            self.0.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
        let columns = format!("{align}|").repeat(self.0[0].len() - 1);
        format!("{}|---|{columns}\n{}", lines[0], lines[1..].concat())
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.0[0].len()).map(width).collect();
        for row in &self.0 {
            write!(f, "  {:1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! Totals of the evidence: a total in the text is the sum of the cells of its table.

use std::fs;

use super::root;

/// Returns the sum of the cells in each table of faults, whose first two columns are no counts.
fn sums(text: &str) -> Vec<u64> {
    let mut sums = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let is_row = is_inside && cells.len() == 8;
        let is_head = !is_inside && cells.starts_with(&["fault", "how often"]);
        if is_head {
            sums.push(0);
        } else if is_row && let Some(sum) = sums.last_mut() {
            let counts =
                cells[2..].iter().filter_map(|cell| cell.replace(',', "").parse::<u64>().ok());
            *sum += counts.sum::<u64>();
        }
        is_inside = is_row || is_head;
    }
    sums
}

/// Returns a number as the documents write it.
pub(super) fn written(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

#[test]
fn totals_of_faults_are_the_sums_of_their_cells() {
    let text = fs::read_to_string(root().join("docs/evidence/faults.md")).unwrap();
    let sums = sums(&text);
    assert!(!sums.is_empty() && sums.iter().all(|sum| *sum > 0), "{sums:?}");
    for sum in sums {
        let total = format!("{} IDs and numbers", written(sum));
        assert!(text.contains(&total), "docs/evidence/faults.md does not have \"{total}\"");
    }
    assert_eq!([written(7), written(1_234_567), written(12_000)], ["7", "1,234,567", "12,000"]);
}

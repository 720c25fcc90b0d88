// Samples of the last hour as lines for a chart, independent of the page. A pause without samples is a gap.

/** Length of the charts. */
export const HOUR_MS = 3_600_000;

/** Returns counts as rates per second; null where no time has passed. */
export function rates(counts, spansMs) {
  return counts.map((count, place) => (spansMs[place] > 0 ? (count * 1_000) / spansMs[place] : null));
}

/**
 * Returns times in seconds and the columns, with a row of nulls in each pause: where two samples are further apart than
 * twice their usual distance.
 */
export function withGaps(timesMs, columns, everyMs) {
  const times = [];
  const lines = columns.map(() => []);
  timesMs.forEach((timeMs, place) => {
    const before = timesMs[place - 1];
    if (place > 0 && timeMs - before > 2 * everyMs) {
      times.push((before + everyMs) / 1_000);
      for (const line of lines) line.push(null);
    }
    // A clock that was set back repeats times: a chart needs rising ones.
    if (times.length > 0 && timeMs / 1_000 <= times.at(-1)) return;
    times.push(timeMs / 1_000);
    columns.forEach((column, index) => lines[index].push(column[place] ?? null));
  });
  return [times, ...lines];
}

/** Returns the lines with all values of one unit, such as milliseconds of microseconds; null stays null. */
export const scaled = (values, divisor) =>
  values.map((value) => (value === null || value === undefined ? null : value / divisor));

/** Returns the last value that is known, the highest one, and the one that is farthest from zero, for a text about a chart. */
export function summaryOf(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  const far = known.reduce((one, other) => (Math.abs(other) > Math.abs(one ?? 0) ? other : (one ?? other)), undefined);
  return { last: known.at(-1), most: known.length > 0 ? Math.max(...known) : undefined, far };
}

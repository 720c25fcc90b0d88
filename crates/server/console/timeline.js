// Samples of the last hour as lines for a chart, independent of the page. A pause without samples is a gap.

/** Length of the charts. */
export const HOUR_MS = 3_600_000;

/** Distances between the lines of an axis of rates: each line has a text of its own, with one decimal below 10. */
export const RATE_STEPS = [
  ...[0.1, 0.2, 0.5],
  ...Array.from({ length: 36 }, (_, place) => [1, 2, 5][place % 3] * 10 ** Math.floor(place / 3)),
];

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

/** Samples after which a value is no longer that of now. */
const PRESENT_SAMPLES = 3;

const isKnown = (value) => value !== null && value !== undefined;

/**
 * Returns the present value, the highest one, and the one that is farthest from zero; undefined without one. A value is
 * present if it was known within a few samples before `newest`, the time of the newest sample. Times are in seconds.
 */
export function summaryOf(times, values, everyMs, newest = times.at(-1)) {
  const known = values.filter(isKnown);
  const far = known.reduce((one, other) => (Math.abs(other) > Math.abs(one ?? 0) ? other : (one ?? other)), undefined);
  const place = values.findLastIndex(isKnown);
  const isPresent = place >= 0 && (newest - times[place]) * 1_000 <= PRESENT_SAMPLES * everyMs;
  return {
    now: isPresent ? values[place] : undefined,
    most: known.length > 0 ? Math.max(...known) : undefined,
    far,
  };
}

/**
 * Returns the text about a line, from its `summaryOf`: the present value, and what follows it. `asOf` is the time of a
 * chart that could not be refreshed.
 */
export function legendOf({ now, most, far }, { format, offsets, asOf }) {
  if (most === undefined) return ["none", ""];
  const when = asOf ? `at ${asOf}` : "now";
  const rest = offsets ? `farthest ${format(far)}` : `at most ${format(most)}`;
  return [now === undefined ? "none" : format(now), ` ${when}, ${rest}`];
}

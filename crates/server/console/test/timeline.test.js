import assert from "node:assert/strict";
import test from "node:test";

import { pace } from "../values.js";
import { RATE_STEPS, legendOf, rates, scaled, summaryOf, withGaps } from "../timeline.js";

test("a pause without samples is a gap", () => {
  const [times, line] = withGaps([10_000, 15_000, 60_000, 65_000], [[1, 2, 3, null]], 5_000);
  assert.deepEqual(times, [10, 15, 20, 60, 65]);
  assert.deepEqual(line, [1, 2, null, 3, null]);
});

test("a clock that was set back adds no point before the newest one", () => {
  const [times, line] = withGaps([10_000, 15_000, 12_000, 20_000], [[1, 2, 3, 4]], 5_000);
  assert.deepEqual(
    [times, line],
    [
      [10, 15, 20],
      [1, 2, 4],
    ],
  );
});

test("no two lines of an axis of rates have one text", () => {
  for (const step of RATE_STEPS) {
    const texts = Array.from({ length: 20 }, (_, line) => pace(line * step));
    assert.equal(new Set(texts).size, texts.length, `${step}: ${texts}`);
  }
});

test("rates are per second of elapsed time", () => {
  assert.deepEqual(rates([10, 10, 10], [5_000, 0, 10_000]), [2, null, 1]);
  assert.deepEqual(scaled([2_000, null, undefined], 1_000), [2, null, null]);
});

test("a value is that of now for three samples", () => {
  const times = [10, 15, 20, 25, 30];
  for (const [values, newest, now, most, far] of [
    [[1, 5, 2, 4, null], undefined, 4, 5, 5],
    [[1, 5, null, null, null], undefined, 5, 5, 5],
    [[5, null, null, null, null], undefined, undefined, 5, 5],
    [[-3_900, -4_000, 2, 2, -4_000], undefined, -4_000, 2, -4_000],
    [[0, 0, 0, 0, 0], undefined, 0, 0, 0],
    [[null, undefined, null, null, null], undefined, undefined, undefined, undefined],
    // The times of another server's clock, which is ahead, say nothing about this server's line.
    [[5, null, null, null, null], 25, 5, 5, 5],
  ]) {
    assert.deepEqual(summaryOf(times, values, 5_000, newest), { now, most, far }, JSON.stringify(values));
  }
});

test("the text of a line says what is of now, and what is not", () => {
  const format = (value) => `${value} ms`;
  for (const [summary, more, text] of [
    [{ now: 4, most: 5, far: 5 }, {}, ["4 ms", " now, at most 5 ms"]],
    [{ now: 0, most: 0, far: 0 }, {}, ["0 ms", " now, at most 0 ms"]],
    [{ now: undefined, most: 5, far: 5 }, {}, ["none", " now, at most 5 ms"]],
    [{ now: undefined, most: 5, far: -9 }, { offsets: 5 }, ["none", " now, farthest -9 ms"]],
    [{ now: 4, most: 5, far: 5 }, { asOf: "12:00:05" }, ["4 ms", " at 12:00:05, at most 5 ms"]],
    [{ now: undefined, most: undefined, far: undefined }, {}, ["none", ""]],
  ]) {
    assert.deepEqual(legendOf(summary, { format, ...more }), text);
  }
});

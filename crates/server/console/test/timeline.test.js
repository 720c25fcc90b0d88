import assert from "node:assert/strict";
import test from "node:test";

import { rates, scaled, summaryOf, withGaps } from "../timeline.js";

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

test("rates are per second of elapsed time", () => {
  assert.deepEqual(rates([10, 10, 10], [5_000, 0, 10_000]), [2, null, 1]);
  assert.deepEqual(scaled([2_000, null, undefined], 1_000), [2, null, null]);
  assert.deepEqual(summaryOf([1, 5, 2, null]), { last: 2, most: 5, far: 5 });
  assert.deepEqual(summaryOf([-3_900, -4_000, 2, -4_000]), { last: -4_000, most: 2, far: -4_000 });
  assert.deepEqual(summaryOf([0, null]), { last: 0, most: 0, far: 0 });
  assert.deepEqual(summaryOf([null]), { last: undefined, most: undefined, far: undefined });
});

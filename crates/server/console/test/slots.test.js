import assert from "node:assert/strict";
import test from "node:test";

import { heldBy, poolsOf, stateOf } from "../slots.js";

const NOW = Date.parse("2026-11-20T00:00:00Z");
const LATER = "2026-11-20T00:00:30.000Z";
const EARLIER = "2026-11-19T00:00:00.000Z";

test("each number has one state", () => {
  for (const [slot, state] of [
    [{ live: true, own: true, mark: LATER }, "own"],
    [{ live: true, mark: LATER }, "held"],
    [{ live: false, mark: LATER }, "ahead"],
    [{ live: false, mark: EARLIER }, "free"],
    [{ live: false, external: true, mark: LATER }, "external"],
    [{ live: false, external: true, mark: EARLIER }, "free"],
    [{ live: false, excluded: true, mark: "+584556019-04-03T14:25:51.615Z" }, "excluded"],
  ]) {
    assert.equal(stateOf(slot, NOW), state, JSON.stringify(slot));
  }
});

test("numbers that were never held are free", () => {
  const workers = [
    { pool: "workers-3", number: 0, live: true, mark: LATER },
    { pool: "workers-3", number: 5, live: false, mark: LATER },
    { pool: "old", number: 6, live: false, mark: EARLIER },
  ];
  const [old, three] = poolsOf(workers, new Map([["workers-3", 8]]), NOW);
  assert.deepEqual([old.name, old.size, old.count.free], ["old", 7, 7]);
  assert.deepEqual([three.size, three.count.free, three.count.held, three.count.ahead], [8, 6, 1, 1]);
  assert.equal(three.slots.get(5).state, "ahead");
});

test("a member holds the live numbers with its label, host and process", () => {
  const one = { owner: "a", host: "h", process: 7 };
  const workers = [
    { pool: "p", number: 1, live: true, ...one },
    { pool: "p", number: 2, live: false, ...one },
    { pool: "q", number: 3, live: true, ...one, process: 8 },
  ];
  assert.deepEqual(heldBy(one, workers), [{ pool: "p", numbers: [1] }]);
});

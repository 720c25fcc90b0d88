import assert from "node:assert/strict";
import test from "node:test";

import { heldBy, heldText, markless, poolsOf, sentenceOf, stateOf } from "../slots.js";

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

test("numbers that a member holds do not read as a count", () => {
  for (const [numbers, text] of [
    [[1], "number 1"],
    [[0, 1_023], "numbers 0, 1,023"],
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "numbers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 1 more"],
  ]) {
    assert.equal(heldText(numbers), text);
  }
});

test("a pool without a known size has that of its name", () => {
  const workers = [
    { pool: "workers-10", number: 5, live: false, mark: EARLIER },
    { pool: "workers-7-clock-3", number: 5, live: false, mark: EARLIER },
    { pool: "lent", number: 5, live: false, external: true, mark: LATER },
    { pool: "workers-10-x", number: 5, live: false, mark: EARLIER },
    { pool: "workers-2", number: 5, live: false, mark: EARLIER },
  ];
  const sizes = poolsOf(workers, new Map([["workers-10", 1_000]]), NOW).map(({ name, size, atLeast }) => [name, size, atLeast]);
  assert.deepEqual(sizes, [
    ["lent", 6, true],
    ["workers-10", 1_000, false],
    ["workers-10-x", 6, true],
    ["workers-2", 6, false],
    ["workers-7-clock-3", 1_024, false],
  ]);
});

test("a mark that is no time is shown as none", () => {
  assert.equal(markless({ mark: "1970-01-01T00:00:00.000Z" }), "nothing promised yet");
  assert.equal(markless({ mark: "+584556019-04-03T14:25:51.615Z", excluded: true }), "never assigned");
  assert.equal(markless({ mark: LATER }), undefined);
});

test("the sentence on a number says who has it", () => {
  const slot = { owner: "a", host: "h", process: 7, term: 2, mark: LATER };
  const until = "promised until 2026-11-20 00:00:30 UTC (in 30 s)";
  for (const [more, sentence] of [
    [undefined, "3: free; it was never held."],
    [{ state: "held" }, `3: held by a, on h, process 7, term 2, ${until}.`],
    [{ state: "free", mark: "1970-01-01T00:00:00.000Z" }, "3: free; last a, on h, process 7, nothing promised yet."],
    [{ state: "external" }, `3: leased to a, on h, process 7, ${until}.`],
    [{ state: "excluded", host: undefined, owner: "the old fleet" }, "3: excluded for the old fleet; no member ever gets it."],
    [{ state: "excluded", owner: undefined }, "3: excluded; no member ever gets it."],
  ]) {
    assert.equal(sentenceOf(3, more && { ...slot, ...more }, NOW), sentence);
  }
});

import assert from "node:assert/strict";
import test from "node:test";

import { forget, learn, leftText, placeOf, summaryOf } from "../members.js";

const NOW = Date.parse("2026-11-20T00:10:00Z");
const member = (number, more = {}) => ({
  member: `id-${number}`,
  owner: `ids-${number}`,
  http: `http://10.0.0.${number}:7700`,
  live: true,
  last_renewed: "2026-11-20T00:09:59Z",
  report: { ready: true, codes: [], clock_ahead_ms: 0 },
  ...more,
});
const own = member(1, { own: true });
const ahead = (number, ms) => member(number, { report: { ready: true, clock_ahead_ms: ms } });
const unready = { report: { ready: false, codes: ["not_claimed"] } };
const silent = { report: undefined, error: "server sent no report within 2000 ms" };
const gone = { live: false, report: undefined, last_renewed: "2026-11-20T00:06:00Z" };

test("the summary names each server that needs a look", () => {
  for (const [rows, words, isWell] of [
    [[own], "The only server is ready.", true],
    [[own, member(2), member(3)], "All 3 servers are ready.", true],
    [[own, ahead(2, 999), ahead(3, -999)], "All 3 servers are ready.", true],
    [[own, member(2), ahead(3, -3_900)], "All 3 servers are ready; the clock of ids-3 is 3.9 s behind.", false],
    [[own, ahead(2, 1_000)], "All 2 servers are ready; the clock of ids-2 is 1 s ahead.", false],
    [[own, member(2, gone), member(3)], "2 of 2 servers are ready; ids-2 has been gone for 4 min.", false],
    [[own, member(2, silent), member(3)], "2 of 3 servers are ready; ids-2 does not respond.", false],
    [[own, member(2, gone)], "1 of 1 server is ready; ids-2 has been gone for 4 min.", false],
    [[member(1, { own: true, ...unready }), member(2, unready)], "0 of 2 servers are ready; ids-1 is not ready; ids-2 is not ready.", false],
    [[member(1, { own: true, ...unready })], "The only server is not ready.", false],
    [[own, member(2, unready)], "1 of 2 servers is ready; ids-2 is not ready.", false],
    // Members that left long ago, and programs that mint themselves, are no servers to look at.
    [[own, member(2, { ...gone, last_renewed: "2026-11-19T00:00:00Z" })], "The only server is ready.", true],
    [[own, member(2, { http: undefined, report: undefined })], "The only server is ready.", true],
    [
      [own, ...[2, 3, 4, 5, 6].map((number) => member(number, silent))],
      "1 of 6 servers is ready; ids-2 does not respond; ids-3 does not respond; ids-4 does not respond; 2 more need a look.",
      false,
    ],
  ]) {
    assert.deepEqual(summaryOf(rows, NOW), { words, isWell });
  }
});

test("one member that left is singular", () => {
  assert.equal(leftText(1), "Not shown: 1 member that left more than 10 minutes ago.");
  assert.equal(leftText(1_200), "Not shown: 1,200 members that left more than 10 minutes ago.");
});

test("a member keeps its place while the page is open", () => {
  learn([own, member(2)]);
  learn([own, member(3), member(2), member(4, { http: undefined })]);
  assert.deepEqual(["id-1", "id-2", "id-3", "id-4"].map(placeOf), [0, 1, 2, undefined]);
  forget();
  assert.equal(placeOf("id-1"), undefined);
});

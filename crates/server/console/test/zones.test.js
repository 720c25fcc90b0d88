import assert from "node:assert/strict";
import test from "node:test";

import { dayIn, inZone, isKnown } from "../zones.js";

test("times keep their milliseconds and show their offset", () => {
  assert.equal(inZone("2022-06-28T16:07:40.105Z", "UTC"), "2022-06-28 16:07:40.105 UTC");
  assert.equal(inZone("2022-06-28T16:07:40.105Z", "Asia/Shanghai"), "2022-06-29 00:07:40.105 +08:00");
  assert.equal(inZone("2022-06-28T00:07:40.005Z", "America/St_Johns"), "2022-06-27 21:37:40.005 -02:30");
});

test("a time that the browser cannot read stays unchanged", () => {
  assert.equal(inZone("+584556019-04-03T14:25:51.615Z", "UTC"), "+584556019-04-03T14:25:51.615Z");
  assert.ok(isKnown("Europe/Berlin") && !isKnown("Europe/Nowhere"));
});

test("a day begins with its zone", () => {
  const ms = Date.parse("2026-11-29T23:30:00Z");
  assert.deepEqual(dayIn(ms, "UTC"), [2026, 11, 29]);
  assert.deepEqual(dayIn(ms, "Europe/Berlin"), [2026, 11, 30]);
  assert.deepEqual(dayIn(ms, "Europe/Nowhere"), [2026, 11, 29]);
});

import assert from "node:assert/strict";
import test from "node:test";

import { definitions, designOf, fromLocal, mints, textOf, timeLeft, toLocal, totalOf } from "../design.js";

test("designs become the text that they came from", () => {
  for (const text of [
    "time=41,worker=10,sequence=12,unit=1ms,epoch=2010-11-04T01:42:54.657Z",
    "time=41,worker=5+5,sequence=12,unit=1ms,epoch=2010-11-04T01:42:54.657Z",
    "time=39,sequence=8,worker=16,unit=10ms,epoch=2014-09-01T00:00:00Z",
    "time=41,clock=3,worker=7,sequence=12,unit=1ms,epoch=2026-01-01T00:00:00Z",
    "time=48,worker=15,unit=10us,epoch=2015-01-01T00:00:00Z",
    "time=31+10,worker=9+1,sequence=12,unit=1ms,epoch=2025-10-01T00:00:00Z",
    "worker=10,time=41,sequence=12,unit=1ms,epoch=2020-05-02T16:00:00Z",
  ]) {
    assert.equal(textOf(designOf(text)), text);
  }
});

test("fields without bits can be added, the clock sequence below the time", () => {
  const design = designOf("time=41,worker=10,sequence=12,unit=1ms,epoch=2026-01-01T00:00:00Z");
  assert.deepEqual(design.order, ["time", "clock", "worker", "sequence"]);
  assert.equal(totalOf(design), 63);
  design.bits.clock = 2;
  design.bits.worker = 8;
  assert.equal(textOf(design), "time=41,clock=2,worker=8,sequence=12,unit=1ms,epoch=2026-01-01T00:00:00Z");
  // A part as wide as the field is no part.
  design.low.worker = 8;
  assert.match(textOf(design), /worker=8,/);
});

test("epochs are those of UTC, in the browser's form and back", () => {
  assert.equal(toLocal("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00");
  assert.equal(fromLocal("2026-01-01T00:00"), "2026-01-01T00:00:00Z");
  assert.equal(fromLocal("2026-01-01T00:00:00.657"), "2026-01-01T00:00:00.657Z");
  assert.equal(fromLocal(""), "");
});

test("the definition names the source and the layout", () => {
  const { command, configuration } = definitions("orders", "time=41,worker=10,sequence=12");
  assert.equal(command, "snowmint source define orders --layout time=41,worker=10,sequence=12");
  assert.equal(configuration, '[sources.orders]\nlayout = "time=41,worker=10,sequence=12"');
});

test("a layout that has ended mints nothing", () => {
  const now = Date.parse("2026-11-29T00:00:00Z");
  for (const [end, canMint, left, words] of [
    ["2026-04-01T00:00:00Z", true, "none: it has ended", "no: it has ended"],
    ["2026-11-29T00:00:00Z", true, "none: it has ended", "no: it has ended"],
    ["2026-11-29T00:00:01Z", true, "1 s", "yes"],
    ["2026-11-29T00:00:01Z", false, "1 s", "no"],
  ]) {
    const layout = { end, can_mint: canMint };
    assert.deepEqual([timeLeft(layout, now), mints(layout, now)], [left, words]);
  }
});

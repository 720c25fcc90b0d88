import assert from "node:assert/strict";
import test from "node:test";

import { risesBy, samplesOf, single, sums } from "../metrics.js";

const PAGE = `# HELP snowmint_ids IDs issued, by the server that minted them.
# TYPE snowmint_ids counter
snowmint_ids_total{source="default",protocol="http"} 12
snowmint_ids_total{source="default",protocol="resp"} 30
snowmint_ids_total{source="a\\"b\\\\c\\nd",protocol="http"} 1
# TYPE snowmint_ready gauge
snowmint_ready 1.0
snowmint_window_runway_seconds{source="default"} 29.5
# EOF
`;

test("samples keep their labels", () => {
  const samples = samplesOf(PAGE);
  assert.equal(samples.length, 5);
  assert.deepEqual([...sums(samples, "snowmint_ids_total", "source")], [["default", 42], ['a"b\\c\nd', 1]]);
  assert.equal(single(samples, "snowmint_ready"), 1);
  assert.equal(single(samples, "snowmint_nothing"), undefined);
  assert.equal(sums(samples, "snowmint_window_runway_seconds", "source").get("default"), 29.5);
});

test("a rate needs two counts without a restart or a long absence between them", () => {
  for (const [before, after, elapsedMs, rate] of [
    [undefined, 10, 1_000, undefined],
    [10, 15, 2_000, 2.5],
    [10, 10, 2_000, 0],
    [10, 3, 2_000, undefined],
    [10, 15, 0, undefined],
    [10, 15, 30_000, 1 / 6],
    [10, 15, 30_001, undefined],
  ]) {
    assert.equal(risesBy(before, after, elapsedMs, 30_000), rate);
  }
});

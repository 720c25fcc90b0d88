import assert from "node:assert/strict";
import test from "node:test";

import { respond, settle } from "./browser.js";

const { layoutPlan, recentUse, serialText } = await import("../plan.js");

test("the plan of a layout keeps the words of the server's warnings", async () => {
  const plan = layoutPlan("x");
  await settle();
  const body = { layout: "time=41,sequence=12", end: "2095-09-06T15:47:35Z", workers: 1, ids_per_second: 4_096_000 };
  await respond("GET", "v1/layouts/x", { ...body, warnings: ["id % N depends on the worker alone"] });
  assert.deepEqual(await plan, [
    "1 worker mints up to 4,096,000 IDs a second, until 2095-09-06.",
    "The layout in full: time=41,sequence=12",
    "Warning: id % N depends on the worker alone.",
  ]);
});

test("the plan counts the IDs of the last minute", async () => {
  for (const [counts, words] of [
    [[9, 1], "This server alone issued 1 ID of it in the last minute."],
    [[9, 2], "This server alone issued 2 IDs of it in the last minute."],
    [[9, 0], "This server issued no ID of it in the last minute."],
  ]) {
    const use = recentUse("a");
    await settle();
    await respond("GET", "v1/history", { times_ms: [100_000, 160_000], sources: { a: counts } });
    assert.equal(await use, words);
  }
});

test("a serial of one digit has no plural", () => {
  assert.equal(serialText({ prefix: "T-", width: 1, reset: "never" }), "“T-”, then at least 1 digit");
});

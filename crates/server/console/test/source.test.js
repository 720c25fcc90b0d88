// A confirmed change applies to the source that the dialog named, even if the address names another one meanwhile.

import assert from "node:assert/strict";
import test from "node:test";

import { byId, pending, respond, settle } from "./browser.js";

const source = (name, more = {}) => ({ name, version: 1, kind: "segment", enabled: true, ...more });

const panel = await import("../source.js");
let looks = 0;
panel.begin(async () => {
  looks += 1;
});

async function show(name) {
  const shown = panel.load(name);
  await respond("GET", `v1/sources/${name}`, source(name));
  await shown;
}

test("the source requested last is shown, in any order of responses", async () => {
  const [first, second] = [panel.load("a"), panel.load("b")];
  await respond("GET", "v1/sources/b", source("b", { step: { size: 22 } }));
  await respond("GET", "v1/sources/a", source("a", { step: { size: 11 } }));
  await Promise.all([first, second]);
  assert.equal(byId("source-title").textContent, "Source b");
  assert.match(byId("source-keys").textContent, /step.size = 22/);
});

test("a confirmed change applies to no other source", async () => {
  for (const [begins, confirmed] of [
    [() => byId("source-switch").fire("click"), { version: 1, enabled: false }],
    [
      () => {
        byId("source-alter").fire("click");
        byId("source-lines").value += "\nstep.size = 7";
        byId("source-alter-form").fire("submit");
      },
      { version: 1, step: { size: 7 } },
    ],
  ]) {
    await show("a");
    begins();
    await settle();
    assert.match(byId("confirm-title").textContent, / a\b/);
    await show("b");
    byId("confirm-yes").fire("click");
    await settle();
    const { body } = await respond("PATCH", "v1/sources/a", source("a", { version: 2 }));
    assert.deepEqual(JSON.parse(body), confirmed);
  }
});

test("a source changed by another caller is refreshed, not altered", async () => {
  await show("a");
  byId("source-alter").fire("click");
  byId("source-lines").value += "\nstep.size = 7";
  // The panel refreshes; the lines that the user typed still belong to the earlier version.
  const later = panel.load("a");
  await respond("GET", "v1/sources/a", source("a", { version: 2 }));
  await later;
  const before = looks;
  byId("source-alter-form").fire("submit");
  await settle();
  byId("confirm-yes").fire("click");
  await settle();
  const conflict = { error: { code: "conflict", message: "it was changed since" } };
  const { body } = await respond("PATCH", "v1/sources/a", conflict, 409);
  assert.deepEqual(JSON.parse(body), { version: 1, step: { size: 7 } });
  assert.match(byId("change-notice").textContent, /changed since/);
  assert.equal(byId("source-done").hidden, true);
  assert.equal(looks, before + 1);
});

test("a dialog closes unconfirmed when the user leaves its page", async () => {
  await show("a");
  const { dismiss } = await import("../confirm.js");
  dismiss();
  byId("source-switch").fire("click");
  await settle();
  assert.equal(byId("confirm").open, true);
  dismiss();
  await settle();
  assert.equal(byId("confirm").open, false);
  assert.equal(pending("PATCH"), 0, "nothing is sent");
});

test("the outcome of a change stays with its source", async () => {
  const conflict = { error: { code: "exists", message: "it cannot be" } };
  const fail = async () => {
    byId("source-switch").fire("click");
    await settle();
    byId("confirm-yes").fire("click");
    await settle();
  };
  await show("a");
  await fail();
  await respond("PATCH", "v1/sources/a", conflict, 400);
  assert.equal(byId("change-notice").hidden, false);
  await show("b");
  assert.equal(byId("change-notice").hidden, true, "the error of another source");
  await fail();
  await show("a");
  await respond("PATCH", "v1/sources/b", conflict, 400);
  assert.equal(byId("change-notice").hidden, true, "an error that came later");
});

test("a bound is shown with its time, and only with its source", async () => {
  const counters = await import("../counters.js");
  counters.begin();
  const done = byId("counter-done");
  const ask = async () => {
    byId("counter-key").value = "alice";
    byId("counter-form").fire("submit");
    await settle();
  };
  counters.load("a");
  await ask();
  await respond("GET", "v1/counters/a/alice", { bound: 7 });
  assert.match(done.textContent, /^alice: at \d\d:\d\d:\d\d, 7 was the highest/);
  assert.equal(done.hidden, false);
  await ask();
  assert.equal(done.hidden, true, "the earlier bound is no response to this request");
  await respond("GET", "v1/counters/a/alice", { error: { code: "timeout", message: "none" } }, 504);
  assert.deepEqual([done.hidden, byId("counter-notice").hidden], [true, false]);
  await ask();
  counters.load("b");
  await respond("GET", "v1/counters/a/alice", { bound: 8 });
  assert.deepEqual([done.hidden, byId("counter-notice").hidden], [true, true], "a bound of another source");
});

test("earlier IDs are not shown as those of a request that failed", async () => {
  const mint = await import("../mint.js");
  mint.begin();
  byId("mint-count").value = "1";
  byId("mint-source").value = "a";
  const ask = async () => {
    byId("mint-form").fire("submit");
    await settle();
  };
  await ask();
  await respond("POST", "v1/ids/a", { ids: ["12"] });
  assert.deepEqual([byId("mint-ids").value, byId("mint-result").hidden], ["12", false]);
  await ask();
  await respond("POST", "v1/ids/a", { error: { code: "timeout", message: "none" } }, 504);
  assert.deepEqual([byId("mint-notice").hidden, byId("mint-result").hidden], [false, true]);
});

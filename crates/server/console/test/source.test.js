// A confirmed change applies to the source that the dialog named, even if the address names another one meanwhile.

import assert from "node:assert/strict";
import test from "node:test";

/** The part of a browser's element that the scripts use. */
class Element {
  hidden = false;
  textContent = "";
  value = "";
  dataset = {};
  #listeners = new Map();

  addEventListener(kind, listener, { once = false } = {}) {
    const all = this.#listeners.get(kind) ?? [];
    this.#listeners.set(kind, [...all, { listener, once }]);
  }
  fire(kind) {
    const all = this.#listeners.get(kind) ?? [];
    this.#listeners.set(kind, all.filter(({ once }) => !once));
    for (const { listener } of all) listener({ preventDefault() {} });
  }
  close(value) {
    this.returnValue = value;
    this.fire("close");
  }
  contains() {
    return false;
  }
  querySelectorAll() {
    return [];
  }
  append() {}
  focus() {}
  removeAttribute() {}
  replaceChildren() {}
  setAttribute() {}
  showModal() {}
}

const elements = new Map();
const byId = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
globalThis.document = { activeElement: null, createElement: () => new Element(), getElementById: byId };
globalThis.location = { hash: "" };

/** The calls without a response. */
let waiting = [];
globalThis.fetch = (url, { method, body }) => new Promise((respond) => waiting.push({ url, method, body, respond }));

const settle = () => new Promise((done) => setImmediate(done));

/** Responds to a waiting call. */
async function respond(method, url, body, status = 200) {
  const call = waiting.find((one) => one.method === method && one.url === url);
  assert.ok(call, `${method} ${url} is not among ${JSON.stringify(waiting)}`);
  waiting = waiting.filter((one) => one !== call);
  call.respond({ ok: status === 200, status, text: async () => JSON.stringify(body) });
  await settle();
  return call;
}

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

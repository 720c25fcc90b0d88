// The part of a browser that the console's scripts use, and calls that wait until the test responds.

import assert from "node:assert/strict";

/** The part of a browser's element that the scripts use. */
class Element {
  hidden = false;
  textContent = "";
  value = "";
  dataset = {};
  open = false;
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
    this.open = false;
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
  showModal() {
    this.open = true;
  }
}

const elements = new Map();
export const byId = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
globalThis.document = { activeElement: null, createElement: () => new Element(), getElementById: byId };
globalThis.location = { hash: "" };

/** The calls without a response. */
let waiting = [];
globalThis.fetch = (url, { method, body }) => new Promise((respond) => waiting.push({ url, method, body, respond }));

/** Returns how many calls of this method have no response. */
export const pending = (method) => waiting.filter((one) => one.method === method).length;

export const settle = () => new Promise((done) => setImmediate(done));

/** Responds to a waiting call. */
export async function respond(method, url, body, status = 200) {
  const call = waiting.find((one) => one.method === method && one.url === url);
  assert.ok(call, `${method} ${url} is not among ${JSON.stringify(waiting)}`);
  waiting = waiting.filter((one) => one !== call);
  call.respond({ ok: status === 200, status, text: async () => JSON.stringify(body) });
  await settle();
  return call;
}

// A part of the page whose refresh fails keeps its content, and says from when that is.

import assert from "node:assert/strict";
import test from "node:test";

import { emptied, refill } from "../dom.js";

const fails = () => Promise.reject(new Error("no response"));

test("content that could not be refreshed is shown with its time", async () => {
  const notice = { hidden: true, textContent: "" };
  assert.equal(await refill(notice, fails), false);
  assert.deepEqual(notice, { hidden: false, textContent: "no response" }, "nothing is shown below yet");
  assert.equal(await refill(notice, async () => {}), true);
  assert.deepEqual(notice, { hidden: true, textContent: "" });
  assert.equal(await refill(notice, fails), false);
  assert.match(notice.textContent, /^no response; what is shown below is of \d\d:\d\d:\d\d$/);
  emptied();
  assert.equal(await refill(notice, fails), false);
  assert.equal(notice.textContent, "no response");
});

import assert from "node:assert/strict";
import test from "node:test";

import { administers } from "../grants.js";

test("only a right over all of the namespace administers it", () => {
  for (const [grants, is] of [
    [["admin *"], true],
    [["mint orders", "metrics,admin *"], true],
    [["admin shop/*"], true],
    [["admin other/*"], false],
    [["admin orders", "mint *"], false],
    [[], false],
  ]) {
    assert.equal(administers(grants, "shop"), is, String(grants));
  }
});

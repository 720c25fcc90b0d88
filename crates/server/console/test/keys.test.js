import assert from "node:assert/strict";
import test from "node:test";

import { changes, fromLines, keysOf, nested, toLines } from "../keys.js";
import { parse, write } from "../values.js";

const BODY = parse(
  '{"name":"invoices","version":3,"next":"17","store_status":[{"store":"a","serving":true}],"kind":"segment",' +
    '"enabled":true,"first":9007199254740993,"step":{"rule":"adaptive","min":100}}',
);

test("keys become lines and back", () => {
  const keys = keysOf(BODY);
  const lines = toLines(keys);
  assert.deepEqual(lines, [
    'kind = "segment"',
    "enabled = true",
    "first = 9007199254740993",
    'step.rule = "adaptive"',
    "step.min = 100",
  ]);
  const read = fromLines(lines.join("\n"));
  assert.deepEqual(changes(keys, read), []);
  assert.equal(
    write(nested(read)),
    '{"kind":"segment","enabled":true,"first":9007199254740993,"step":{"rule":"adaptive","min":100}}',
  );
});

test("lines may have comments, spaces and bare texts", () => {
  const read = fromLines("# a remark\n\n  lead_max=10s\ntext = 'base62'\nserial.suffix = 007\nserial.prefix = \"A = \\\"1\\\"\"\nenabled = false\r\n");
  assert.deepEqual([...read], [["lead_max", "10s"], ["text", "base62"], ["serial.suffix", "007"], ["serial.prefix", 'A = "1"'], ["enabled", false]]);
});

test("an invalid line is named in the error", () => {
  for (const [text, words] of [
    ["kind", /line 1 is not of the form KEY = VALUE/],
    ["a = 1\nb =", /line 2 is not/],
    ["a = 1\na = 2", /line 2 repeats the key a/],
    ['a = "open', /line 1 has an invalid value/],
    ["a = [1]", /line 1 has an invalid value/],
    ["= 3", /line 1 is not/],
  ]) {
    assert.throws(() => fromLines(text), words, text);
  }
});

test("a patch has only changes, with null for removed keys", () => {
  const before = keysOf(BODY);
  const after = fromLines('kind = "segment"\nenabled = false\nfirst = 9007199254740993\nstep.min = 100\nstep.max = 500');
  const different = changes(before, after);
  assert.deepEqual(different, [
    { name: "enabled", from: true, to: false },
    { name: "step.rule", from: "adaptive", to: undefined },
    { name: "step.max", from: undefined, to: 500 },
  ]);
  const patch = nested(different.map(({ name, to }) => [name, to]));
  assert.equal(write(patch), '{"enabled":false,"step":{"rule":null,"max":500}}');
});

test("names of JavaScript objects are ordinary keys", () => {
  assert.equal(write(nested([["__proto__.a", 1], ["constructor", 2]])), '{"__proto__":{"a":1},"constructor":2}');
  assert.equal({}.a, undefined);
  assert.throws(() => nested([["a", 1], ["a.b", 2]]), /a\.b lies within a/);
});

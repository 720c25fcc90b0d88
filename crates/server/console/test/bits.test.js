import assert from "node:assert/strict";
import test from "node:test";

import { described, fieldsOf, split } from "../bits.js";

const TWITTER = "time=41,worker=10,sequence=12,unit=1ms,epoch=2010-11-04T01:42:54.657Z";

test("fields are listed from the highest bit to the lowest", () => {
  const names = (layout) => fieldsOf(layout).map(({ name, bits, shift }) => [name, bits, shift]);
  assert.deepEqual(names(TWITTER), [["time", 41, 22], ["worker", 10, 12], ["sequence", 12, 0]]);
  assert.deepEqual(names("time=41,worker=5+5,sequence=12,unit=1ms,epoch=0"), [
    ["time", 41, 22],
    ["worker 1", 5, 17],
    ["worker 2", 5, 12],
    ["sequence", 12, 0],
  ]);
  assert.deepEqual(names("time=39,sequence=8,worker=16,unit=10ms,epoch=0").map(([name]) => name), ["time", "sequence", "worker"]);
  assert.equal(described(fieldsOf("time=41,clock=1,sequence=9")), "time 41 bits, clock 1 bit, sequence 9 bits");
});

test("an ID beyond 2^53 is split exactly", () => {
  // Twitter's example, as the command line decodes it.
  const [time, worker, sequence] = split("1541815603606036480", fieldsOf(TWITTER));
  assert.equal(new Date(Number(time.value) + 1_288_834_974_657).toISOString(), "2022-06-28T16:07:40.105Z");
  assert.equal(worker.value, 378n);
  assert.equal(sequence.value, 0n);
  // The next ID differs, though as Numbers the two are equal.
  assert.equal(Number("1541815603606036481"), Number("1541815603606036480"));
  assert.equal(split("1541815603606036481", fieldsOf(TWITTER))[2].value, 1n);
});

test("all bits are kept, including leading zeros", () => {
  const fields = fieldsOf("time=42,worker=5+5,sequence=12,unit=1ms,epoch=2015-01-01T00:00:00Z");
  for (const id of [0n, 1n, 175928847299117063n, 18446744073709551615n]) {
    const digits = split(id, fields).map((field) => field.digits).join("");
    assert.equal(digits.length, 64);
    assert.equal(BigInt(`0b${digits}`), id);
  }
});

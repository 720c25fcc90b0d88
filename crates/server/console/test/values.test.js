import assert from "node:assert/strict";
import test from "node:test";

import { counted, distance, grouped, nextText, pace, parse, readable, span, unit, write } from "../values.js";

test("numbers too long for a Number stay exact", () => {
  const text = '{"first":18446744073709551615,"last":-9223372036854775808,"tick":7,"id":"9007199254740993"}';
  const read = parse(text);
  assert.equal(read.first, 18446744073709551615n);
  assert.equal(read.last, -9223372036854775808n);
  assert.equal(read.tick, 7);
  assert.equal(read.id, "9007199254740993", "a text stays a text");
  assert.equal(write(read), text, "written as read");
});

test("digits within texts and fractions stay unchanged", () => {
  for (const text of [
    '{"a":"12345678901234567890"}',
    '{"a":"say \\"12345678901234567890\\", then 12345678901234567890"}',
    '["\\\\",12345678901234567890,"\\\\\\""]',
    '{"a":0.1234567890123456789}',
    '{"a":1234567890123456789.5}',
  ]) {
    const exact = parse(text);
    const plain = JSON.parse(text);
    const rounded = JSON.parse(write(exact));
    assert.deepEqual(rounded, plain, text);
  }
  assert.equal(parse('["\\\\",12345678901234567890]')[1], 12345678901234567890n);
});

test("invalid JSON is rejected", () => {
  for (const text of ["", "<html>", '{"a":12345678901234567890x}']) assert.throws(() => parse(text), SyntaxError);
});

test("written JSON omits undefined members", () => {
  assert.equal(write({ count: 3n, key: "a\"b", format: undefined, list: [1, null, true] }), '{"count":3,"key":"a\\"b","list":[1,null,true]}');
});

test("long numbers have commas", () => {
  for (const [number, text] of [
    [0, "0"],
    [999, "999"],
    [1000, "1,000"],
    ["4096000", "4,096,000"],
    [18446744073709551615n, "18,446,744,073,709,551,615"],
  ]) {
    assert.equal(grouped(number), text);
  }
});

test("one thing has no plural", () => {
  for (const [count, text] of [[0, "0 IDs"], [1, "1 ID"], [1n, "1 ID"], ["1", "1 ID"], [2, "2 IDs"], [1_001, "1,001 IDs"]]) {
    assert.equal(counted(count, "ID"), text);
  }
});

test("durations have a suitable unit", () => {
  const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
  for (const [ms, text] of [
    [0, "0 ms"],
    [999, "999 ms"],
    [second, "1 s"],
    [1_050, "1.0 s"],
    [9_999, "9.9 s"],
    [10 * second, "10 s"],
    [2 * minute - 1, "119 s"],
    [2 * minute, "2 min"],
    [2 * hour - 1, "119 min"],
    [2 * hour, "2 h"],
    [2 * day - 1, "47 h"],
    [2 * day, "2 days"],
    [730 * day, "730 days"],
    [731 * day, "2.0 years"],
    [53.65 * 365.25 * day, "53.6 years"],
  ]) {
    assert.equal(span(ms), text, String(ms));
  }
});

test("a time has a distance from now", () => {
  const nowMs = Date.parse("2026-11-22T02:03:31.297Z");
  assert.equal(distance("2026-11-22T02:04:01.297Z", nowMs), "in 30 s");
  assert.equal(distance("2026-11-22T02:03:31.297Z", nowMs), "in 0 ms");
  assert.equal(distance("2026-11-19T02:03:31.297Z", nowMs), "3 days ago");
  assert.equal(distance("584556019-04-03T14:25:52Z", nowMs), "", "a time that JavaScript cannot parse");
  assert.equal(readable("2026-11-22T02:03:31.297Z"), "2026-11-22 02:03:31.297 UTC");
  assert.equal(readable("2026-11-22T02:03:31.000Z"), "2026-11-22 02:03:31 UTC");
});

test("a slow rate is not shown as zero", () => {
  assert.deepEqual([0, 0.3, 9.94, 10, 1234.5].map(pace), ["0", "0.3", "9.9", "10", "1,235"]);
});

test("the length of a tick is shown below a millisecond too", () => {
  for (const [ns, text] of [[1_000_000, "1 ms"], [10_000_000, "10 ms"], [1_000_000_000, "1 s"], [10_000, "10 µs"], [100, "100 ns"]]) {
    assert.equal(unit(ns), text);
  }
});

test("the next number of a serial source is shown as its serial", () => {
  const nowMs = Date.parse("2026-11-29T23:30:00Z");
  const day = { prefix: "R-", date: "yyMMdd", width: 6, reset: "day" };
  for (const [next, serial, text] of [
    [20_786_001_221, day, "R-261129001221"],
    [20_786_001_221n, { ...day, date: "yyyy-MM-dd" }, "R-2026-11-29001221"],
    [2_026 * 12_000 + 10_007, { date: "yyyyMM", width: 3, reset: "month" }, "202611007"],
    [20_260_042, { prefix: "Y", date: "yy", width: 4, reset: "year" }, "Y260042"],
    [1_222, { prefix: "T-", width: 6, reset: "never" }, "T-001222"],
    // No ID of an earlier period comes next. In Berlin, the next day has begun.
    [1, day, "today’s first"],
    [20_785_001_221, day, "today’s first"],
    [20_786_001_221, { ...day, zone: "Europe/Berlin" }, "today’s first"],
    [20_787_000_002, { ...day, zone: "Europe/Berlin" }, "R-261130000002"],
    [20_786_001_221, { ...day, zone: "Mars/Olympus" }, "R-261129001221"],
    [2_026 * 12_000 + 9_007, { date: "yyyyMM", width: 3, reset: "month" }, "this month’s first"],
    [20_250_042, { date: "yy", width: 4, reset: "year" }, "this year’s first"],
    // No period has these numbers.
    [20_786_000_000, day, "20,786,000,000"],
    [1_000_001, { width: 6, reset: "never" }, "1,000,001"],
    [1_222, undefined, "1,222"],
    [undefined, day, ""],
  ]) {
    assert.equal(nextText(next, serial, nowMs), text);
  }
});

// Values as the server sends and takes them, and as texts for users; independent of the page.

import { dayIn } from "./zones.js";

const LONG = /"(?:[^"\\]|\\.)*"|(?<![\d.])-?\d{16,}(?![\d.eE])/g;
const MARKED = /^\u0000-?\d+$/;

/** Parses JSON. A whole number too long for a Number becomes a BigInt, since numbers of 64 bits exceed 2^53. */
export function parse(text) {
  const marked = text.replace(LONG, (part) => (part.startsWith('"') ? part : `"\\u0000${part}"`));
  const unmark = (_, value) =>
    typeof value === "string" && MARKED.test(value) ? BigInt(value.slice(1)) : value;
  return JSON.parse(marked, unmark);
}

/** Returns a value as JSON, with a BigInt as a number. */
export function write(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/** Returns a whole number, or a text of digits, with a comma before each three digits. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Returns a count with its noun: `1 server`, `1,024 servers`. */
export function counted(count, noun) {
  return `${grouped(count)} ${noun}${String(count) === "1" ? "" : "s"}`;
}

const DAY_MS = 24 * 60 * 60_000;

/** The part of a date that changes from one period to the next, and the first serial of the present period. */
const FIRST = { dd: "today’s first", MM: "this month’s first", yy: "this year’s first" };

/** Returns the part of a date's form that decides the period; undefined if the numbers have no periods. */
const periodPart = (date) => Object.keys(FIRST).find((part) => date.includes(part));

/** Returns the serial of one of a source's numbers; undefined for a number that no period has. */
function serialOf(number, { prefix = "", date = "", width = 6 }) {
  const reset = periodPart(date);
  const each = 10n ** BigInt(width);
  const [period, rest] = [Number(BigInt(number) / each), BigInt(number) % each];
  if (rest === 0n || (!reset && period > 0)) return undefined;
  const begin = {
    dd: () => period * DAY_MS,
    MM: () => Date.UTC(Math.floor(period / 12), period % 12),
    yy: () => Date.UTC(period, 0),
  }[reset];
  const [year, month, day] = new Date(begin?.() ?? 0).toISOString().split("T")[0].split("-");
  const dated = date.replace("yyyy", year).replace("yy", year.slice(2)).replace("MM", month).replace("dd", day);
  return `${prefix}${dated}${String(rest).padStart(width, "0")}`;
}

/** Returns whether a number belongs to an earlier period than the present one, so that the next ID skips it. */
function isOver(number, { date = "", width = 6, zone = "UTC" }, nowMs) {
  const [year, month, day] = dayIn(nowMs, zone);
  const present = {
    dd: () => Date.UTC(year, month - 1, day) / DAY_MS,
    MM: () => year * 12 + month - 1,
    yy: () => year,
  }[periodPart(date)];
  return present !== undefined && BigInt(number) / 10n ** BigInt(width) < BigInt(present());
}

/** Returns the next number of a source, as its IDs show it; empty if it is unknown. */
export function nextText(next, serial, nowMs) {
  if (next === undefined || next === null) return "";
  if (!serial) return grouped(next);
  if (isOver(next, serial, nowMs)) return FIRST[periodPart(serial.date)];
  return serialOf(next, serial) ?? grouped(next);
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const YEAR_MS = 365.25 * DAY_MS;

/** Returns a duration in one unit, rounded for users. */
export function span(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000 && ms % 1_000 !== 0) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < 2 * MINUTE_MS) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  if (ms < 2 * YEAR_MS) return `${Math.floor(ms / DAY_MS)} days`;
  return `${(Math.floor((ms / YEAR_MS) * 10) / 10).toFixed(1)} years`;
}

/** Returns the length of a tick, which may be shorter than a millisecond. */
export function unit(ns) {
  if (ns % 1_000_000 === 0) return span(ns / 1_000_000);
  return ns % 1_000 === 0 ? `${ns / 1_000} µs` : `${ns} ns`;
}

/** Returns the distance of a time from now; empty for a time that cannot be parsed, such as after the year 9999. */
export function distance(time, nowMs) {
  const ms = Date.parse(time) - nowMs;
  if (Number.isNaN(ms)) return "";
  return ms >= 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** Returns an RFC 3339 time for users: with a space, and without a fraction of zero. */
export function readable(time) {
  return time.replace("T", " ").replace(/\.000Z$/, "Z").replace(/Z$/, " UTC");
}

/** Returns a rate in IDs per second. */
export function pace(perSecond) {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : grouped(Math.round(perSecond));
}

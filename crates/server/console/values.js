// How values are read from the server, sent to it, and written for people. Nothing here knows the page.

const LONG = /"(?:[^"\\]|\\.)*"|(?<![\d.])-?\d{16,}(?![\d.eE])/g;
const MARKED = /^\u0000-?\d+$/;

/** JSON, in which a whole number too long for a Number becomes a BigInt: 64 bits are more than 2^53. */
export function parse(text) {
  const marked = text.replace(LONG, (part) => (part.startsWith('"') ? part : `"\\u0000${part}"`));
  const unmark = (_, value) =>
    typeof value === "string" && MARKED.test(value) ? BigInt(value.slice(1)) : value;
  return JSON.parse(marked, unmark);
}

/** A value as JSON; a BigInt as the number that it is. */
export function write(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/** A whole number, which may be text, with a comma before each three digits. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365.25 * DAY_MS;

/** A length of time in one unit, as precise as a person wants to know. */
export function span(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000 && ms % 1_000 !== 0) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < 2 * MINUTE_MS) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  if (ms < 2 * YEAR_MS) return `${Math.floor(ms / DAY_MS)} days`;
  return `${(Math.floor((ms / YEAR_MS) * 10) / 10).toFixed(1)} years`;
}

/** How far a time lies from now; empty for one that cannot be read, such as after the year 9999. */
export function distance(time, nowMs) {
  const ms = Date.parse(time) - nowMs;
  if (Number.isNaN(ms)) return "";
  return ms >= 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** RFC 3339 as people read it: with a space, and no fraction where it is zero. */
export function readable(time) {
  return time.replace("T", " ").replace(/\.000Z$/, "Z").replace(/Z$/, " UTC");
}

/** A pace in IDs a second. */
export function pace(perSecond) {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : grouped(Math.round(perSecond));
}

// The keys of a source as lines, such as a configuration file has: `step.min = 100`. Nothing here knows the page.

import { parse, write } from "./values.js";

/** What is in a source's body beside its keys. */
const BESIDE = ["name", "version", "next", "shares"];

/** The keys of a source's body by their dotted names. */
export function keysOf(body) {
  const keys = new Map();
  const add = (prefix, table) => {
    for (const [name, value] of Object.entries(table)) {
      if (value !== null && typeof value === "object") add(`${prefix}${name}.`, value);
      else keys.set(prefix + name, value);
    }
  };
  add("", Object.fromEntries(Object.entries(body).filter(([name]) => !BESIDE.includes(name))));
  return keys;
}

/** Keys as lines. */
export function toLines(keys) {
  return [...keys].map(([name, value]) => `${name} = ${write(value)}`);
}

/** The keys that lines say. Text may stand without quotes. Throws an Error that names the line. */
export function fromLines(text) {
  const keys = new Map();
  text.split("\n").forEach((whole, index) => {
    const line = whole.trim();
    if (line === "" || line.startsWith("#")) return;
    const found = /^([A-Za-z_][\w.]*)\s*=\s*(.+)$/.exec(line);
    if (!found) throw new Error(`line ${index + 1} is not KEY = VALUE: ${line}`);
    const [, name, value] = found;
    if (keys.has(name)) throw new Error(`line ${index + 1} says ${name} a second time`);
    keys.set(name, valueOf(value, index + 1));
  });
  return keys;
}

function valueOf(text, line) {
  if (/^(true|false|0|[1-9]\d*)$/.test(text)) return parse(text);
  if (/^'[^']*'$/.test(text)) return text.slice(1, -1);
  if (!/^["'[{]/.test(text)) return text;
  try {
    const value = JSON.parse(text);
    if (typeof value === "string") return value;
  } catch {
    // Told below.
  }
  throw new Error(`line ${line} has no value that a key takes: ${text}`);
}

/** What is different, key by key: `from` or `to` is undefined where there is none. */
export function changes(before, after) {
  const names = new Set([...before.keys(), ...after.keys()]);
  const all = [...names].map((name) => ({ name, from: before.get(name), to: after.get(name) }));
  return all.filter(({ from, to }) => write(from) !== write(to));
}

/** Keys by their dotted names as tables in tables; undefined becomes null, which takes a key away. */
export function nested(entries) {
  const whole = {};
  for (const [name, value] of entries) {
    const parts = name.split(".");
    const last = parts.pop();
    let table = whole;
    for (const part of parts) {
      if (!Object.hasOwn(table, part)) define(table, part, {});
      if (table[part] === null || typeof table[part] !== "object") {
        throw new Error(`${name} lies within ${part}, which is a value itself`);
      }
      table = table[part];
    }
    define(table, last, value === undefined ? null : value);
  }
  return whole;
}

/** Also `__proto__` is but a name. */
function define(table, name, value) {
  Object.defineProperty(table, name, { value, enumerable: true, writable: true, configurable: true });
}

// The keys of a source as lines of a configuration file (`step.min = 100`), independent of the page.

import { parse, write } from "./values.js";

/** Members of a source's body that are not keys. */
const NOT_KEYS = ["name", "version", "next", "store_status"];

/** Returns the keys of a source's body by their dotted names. */
export function keysOf(body) {
  const keys = new Map();
  const add = (prefix, table) => {
    for (const [name, value] of Object.entries(table)) {
      if (value !== null && typeof value === "object") add(`${prefix}${name}.`, value);
      else keys.set(prefix + name, value);
    }
  };
  add("", Object.fromEntries(Object.entries(body).filter(([name]) => !NOT_KEYS.includes(name))));
  return keys;
}

/** Returns the keys as lines. */
export function toLines(keys) {
  return [...keys].map(([name, value]) => `${name} = ${write(value)}`);
}

/** Returns the keys of lines; text needs no quotes. Throws an Error that names the line. */
export function fromLines(text) {
  const keys = new Map();
  text.split("\n").forEach((whole, index) => {
    const line = whole.trim();
    if (line === "" || line.startsWith("#")) return;
    const found = /^([A-Za-z_][\w.]*)\s*=\s*(.+)$/.exec(line);
    if (!found) throw new Error(`line ${index + 1} is not of the form KEY = VALUE: ${line}`);
    const [, name, value] = found;
    if (keys.has(name)) throw new Error(`line ${index + 1} repeats the key ${name}; remove one of the lines`);
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
    // The error below reports it.
  }
  throw new Error(`line ${line} has an invalid value: ${text}; expected a text, a whole number, true or false`);
}

/** Returns the changes, key by key: `from` or `to` is undefined without a value. */
export function changes(before, after) {
  const names = new Set([...before.keys(), ...after.keys()]);
  const all = [...names].map((name) => ({ name, from: before.get(name), to: after.get(name) }));
  return all.filter(({ from, to }) => write(from) !== write(to));
}

/** Returns keys with dotted names as nested tables; undefined becomes null, which removes the key. */
export function nested(entries) {
  const whole = {};
  for (const [name, value] of entries) {
    const parts = name.split(".");
    const last = parts.pop();
    let table = whole;
    for (const part of parts) {
      if (!Object.hasOwn(table, part)) define(table, part, {});
      if (table[part] === null || typeof table[part] !== "object") {
        throw new Error(`key ${name} lies within ${part}, which has a value of its own`);
      }
      table = table[part];
    }
    define(table, last, value === undefined ? null : value);
  }
  return whole;
}

/** Defines a member of any name: `__proto__` is an ordinary name here. */
function define(table, name, value) {
  Object.defineProperty(table, name, { value, enumerable: true, writable: true, configurable: true });
}

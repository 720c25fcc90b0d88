// A layout as the designer changes it, and as text, independent of the page. What a layout can do, only the server says.

import { span } from "./values.js";

export const FIELDS = ["time", "clock", "worker", "sequence"];

/** Units of a tick that the designer offers, as the text of a layout names them. */
export const UNITS = ["1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "10s"];

/**
 * Returns the design of a full layout: `order` has its fields from the highest bits to the lowest, then those that it
 * lacks; `bits` and `low` (the lower part of a split field, or 0) are by field; `epoch` is RFC 3339.
 */
export function designOf(layout) {
  const design = { order: [], bits: {}, low: {}, unit: "1ms", epoch: "" };
  for (const item of layout.split(",")) {
    const at = item.indexOf("=");
    const [key, value] = [item.slice(0, at), item.slice(at + 1)];
    if (FIELDS.includes(key)) {
      const parts = value.split("+").map(Number);
      design.order.push(key);
      design.bits[key] = parts.reduce((a, b) => a + b, 0);
      design.low[key] = parts.length > 1 ? parts[1] : 0;
    } else if (key === "unit") design.unit = value;
    else if (key === "epoch") design.epoch = value;
  }
  for (const field of FIELDS.filter((name) => !design.order.includes(name))) {
    // A clock sequence belongs next to the time, above the other fields.
    const place = field === "clock" ? design.order.indexOf("time") + 1 : design.order.length;
    design.order.splice(place, 0, field);
    design.bits[field] = 0;
    design.low[field] = 0;
  }
  return design;
}

/** Returns the text of a design: the fields that have bits, the unit and the epoch. */
export function textOf({ order, bits, low, unit, epoch }) {
  const fields = order
    .filter((field) => bits[field] > 0)
    .map((field) => {
      const split = low[field] > 0 && low[field] < bits[field];
      return `${field}=${split ? `${bits[field] - low[field]}+${low[field]}` : bits[field]}`;
    });
  return [...fields, `unit=${unit}`, ...(epoch ? [`epoch=${epoch}`] : [])].join(",");
}

/** Returns the sum of all bits. */
export const totalOf = ({ bits }) => FIELDS.reduce((sum, field) => sum + bits[field], 0);

/** Returns an epoch for a field of type `datetime-local`, whose time counts as UTC. */
export const toLocal = (epoch) => epoch.replace(/Z$/, "");

/** Returns the epoch of such a field; the browser leaves out seconds of zero. */
export function fromLocal(text) {
  return text === "" ? "" : `${/T\d\d:\d\d$/.test(text) ? `${text}:00` : text}Z`;
}

/** Returns the command and the configuration that define a source with this layout. */
export function definitions(name, layout) {
  return {
    command: `snowmint source define ${name} --layout ${layout}`,
    configuration: `[sources.${name}]\nlayout = "${layout}"`,
  };
}

const hasEnded = ({ end }, nowMs) => Date.parse(end) <= nowMs;

/** Returns the time for which a layout has IDs left. */
export const timeLeft = (layout, nowMs) =>
  hasEnded(layout, nowMs) ? "none: it has ended" : span(Date.parse(layout.end) - nowMs);

/** Returns whether sources of a layout can mint, in words. */
export function mints(layout, nowMs) {
  if (!layout.can_mint) return "no";
  return hasEnded(layout, nowMs) ? "no: it has ended" : "yes";
}

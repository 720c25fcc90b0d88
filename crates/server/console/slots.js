// Worker numbers by pool and state, independent of the page.

import { distance, grouped, readable } from "./values.js";

/** Most numbers of a pool that the page draws as a map. */
export const MAP_MAX = 4_096;

/** States in the order of the legend, with their meaning. */
export const STATES = {
  own: "held by this server",
  held: "held by another member",
  external: "leased to a client outside the namespace",
  ahead: "free, but ahead of the clock: its mark lies in the future",
  excluded: "excluded: never assigned",
  free: "free",
};

/** Returns the state of a worker number that was ever held. */
export function stateOf({ excluded, own, live, external, mark }, nowMs) {
  const isAhead = Date.parse(mark) > nowMs;
  if (excluded) return "excluded";
  if (external && isAhead) return "external";
  if (live) return own ? "own" : "held";
  return isAhead ? "ahead" : "free";
}

/** Returns why a slot has no time as its mark; undefined if it has one. */
export function markless({ mark, excluded }) {
  if (excluded) return "never assigned";
  return Date.parse(mark) === 0 ? "nothing promised yet" : undefined;
}

/**
 * Returns the size of a pool as its name gives it: that of `workers-7-clock-3` has 10 bits. Undefined for a name of
 * another form.
 */
function sizeIn(name) {
  const [, workers, clock = "0"] = /^workers-(\d+)(?:-clock-(\d+))?$/.exec(name) ?? [];
  return workers === undefined ? undefined : 2 ** (Number(workers) + Number(clock));
}

/**
 * Returns the pools by name: `{ name, size, atLeast, slots, count }`. `sizes` has the sizes that the server's metrics
 * name, which not every caller sees; otherwise the pool's name gives the size. Where neither does, the size is the least
 * that the pool can have, and `atLeast` is true. `count` has the numbers by state, with those never held as free.
 */
export function poolsOf(workers, sizes, nowMs) {
  const named = new Set([...sizes.keys(), ...workers.map(({ pool }) => pool)]);
  const pools = new Map(
    [...named].map((name) => {
      const size = sizes.get(name) ?? sizeIn(name);
      return [name, { name, size: size ?? 0, atLeast: size === undefined, slots: new Map() }];
    }),
  );
  for (const slot of workers) {
    const pool = pools.get(slot.pool);
    pool.slots.set(Number(slot.number), { ...slot, state: stateOf(slot, nowMs) });
    pool.size = Math.max(pool.size, Number(slot.number) + 1);
  }
  for (const pool of pools.values()) {
    const count = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
    for (const { state } of pool.slots.values()) count[state] += 1;
    count.free += pool.size - pool.slots.size;
    pool.count = count;
  }
  return [...pools.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** Returns the numbers that a member holds, by pool: `{ pool, numbers }`. Rows of workers have no member ID. */
export function heldBy({ owner, host, process }, workers) {
  const held = new Map();
  for (const slot of workers) {
    if (!slot.live || slot.owner !== owner || slot.host !== host || slot.process !== process) continue;
    held.set(slot.pool, [...(held.get(slot.pool) ?? []), Number(slot.number)]);
  }
  return [...held].map(([pool, numbers]) => ({ pool, numbers }));
}

/** Numbers of a pool that a text names. */
const NAMED_MAX = 12;

/** Returns the numbers that a member holds of a pool, in words that do not read as a count. */
export function heldText(numbers) {
  const rest = numbers.length - NAMED_MAX;
  const shown = numbers.slice(0, NAMED_MAX).map(grouped).join(", ");
  const more = rest > 0 ? ` and ${grouped(rest)} more` : "";
  return `${numbers.length === 1 ? "number" : "numbers"} ${shown}${more}`;
}

/** Returns the sentence on a number of a map: who has it, and until when. `slot` is undefined if no member ever held it. */
export function sentenceOf(number, slot, nowMs) {
  if (!slot) return `${number}: free; it was never held.`;
  const { state, owner, host, process, mark, term } = slot;
  if (state === "excluded") return `${number}: excluded${owner ? ` for ${owner}` : ""}; no member ever gets it.`;
  const who = [owner, host && host !== owner && `on ${host}`, process && `process ${process}`]
    .filter(Boolean)
    .join(", ");
  const until =
    markless(slot) ??
    (Date.parse(mark) > nowMs
      ? `promised until ${readable(mark)} (${distance(mark, nowMs)})`
      : `mark ${readable(mark)}`);
  if (state === "own" || state === "held")
    return `${number}: held by ${who || "an unnamed member"}, term ${term}, ${until}.`;
  if (state === "external") return `${number}: leased to ${who || "an external client"}, ${until}.`;
  return `${number}: ${state === "ahead" ? "ahead of the clock" : "free"}; last ${who || "an unnamed member"}, ${until}.`;
}

// Worker numbers by pool and state, independent of the page.

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

/**
 * Returns the pools by name: `{ name, size, slots, count }`. `sizes` has the sizes that the server's metrics name; a
 * pool without one is as large as its highest number. `count` has the numbers by state, with those never held as free.
 */
export function poolsOf(workers, sizes, nowMs) {
  const pools = new Map([...sizes].map(([name, size]) => [name, { name, size, slots: new Map() }]));
  for (const slot of workers) {
    if (!pools.has(slot.pool)) pools.set(slot.pool, { name: slot.pool, size: 0, slots: new Map() });
    const pool = pools.get(slot.pool);
    pool.slots.set(Number(slot.number), { ...slot, state: stateOf(slot, nowMs) });
    if (!sizes.has(slot.pool)) pool.size = Math.max(pool.size, Number(slot.number) + 1);
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

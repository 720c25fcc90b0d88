// Maps of worker numbers: one field for each number of a pool, with its state, its holder and its mark.

import { counted, grouped } from "./values.js";
import { el, fill, table, when } from "./dom.js";
import { MAP_MAX, STATES, markless, sentenceOf } from "./slots.js";

/** Rows of a list of a large pool. */
const ROWS_MAX = 200;

/** Maps on the page by pool: `{ box, cells, states }`. A map is made once; later only its fields change. */
const maps = new Map();

/** Shows the pools in a box. */
export function show(box, pools) {
  for (const name of [...maps.keys()].filter(
    (name) => !pools.some((pool) => pool.name === name && pool.size <= MAP_MAX),
  ))
    maps.delete(name);
  const shown = pools.map((pool) => (pool.size <= MAP_MAX ? mapOf(pool) : listOf(pool)));
  const same = box.childElementCount === shown.length && shown.every((node, place) => box.children[place] === node);
  if (!same) fill(box, shown);
}

export function forget() {
  maps.clear();
}

/** Returns how many numbers a pool has, and in which states. */
function counts({ size, atLeast, count }) {
  const states = Object.keys(STATES).filter((state) => count[state] > 0);
  const words = states.map((state) => `${grouped(count[state])} ${state}`).join(", ");
  return `${atLeast ? "at least " : ""}${counted(size, "number")}: ${words}`;
}

function mapOf(pool) {
  if (maps.get(pool.name)?.cells.length !== pool.size) maps.set(pool.name, make(pool));
  const map = maps.get(pool.name);
  map.pool = pool;
  map.summary.textContent = counts(pool);
  map.cells.forEach((cell, number) => {
    const state = pool.slots.get(number)?.state ?? "free";
    if (map.states[number] === state) return;
    map.states[number] = state;
    cell.className = `slot ${state}`;
    cell.setAttribute("aria-label", `${number}: ${state}`);
  });
  describe(map);
  return map.box;
}

function make({ name, size }) {
  const id = `pool-${name.replace(/\W+/g, "-")}`;
  const cells = Array.from({ length: size }, (_, number) =>
    el("span", { class: "slot free", role: "option", id: `${id}-${number}`, "aria-label": `${number}: free` }),
  );
  const grid = el(
    "div",
    {
      class: size > 1_024 ? "slots dense" : "slots",
      role: "listbox",
      tabindex: "0",
      id,
      "aria-label": `Worker numbers of ${name}`,
      "aria-describedby": `${id}-note`,
      "aria-activedescendant": `${id}-0`,
    },
    cells,
  );
  const summary = el("p", { class: "hint" });
  const note = el("p", { class: "slot-note", id: `${id}-note`, role: "status" });
  const map = { cells, states: new Array(size).fill("free"), active: undefined, grid, summary, note };
  map.box = el("section", { class: "pool", "aria-label": `Pool ${name}` }, el("h4", {}, name), summary, grid, note);
  grid.addEventListener("pointerover", ({ target }) => {
    const number = cells.indexOf(target);
    if (number >= 0) choose(map, number);
  });
  grid.addEventListener("focus", () => choose(map, map.active ?? 0));
  grid.addEventListener("keydown", (event) => {
    const number = next(map, event.key);
    if (number === undefined) return;
    event.preventDefault();
    choose(map, number);
    cells[number].scrollIntoView({ block: "nearest" });
  });
  return map;
}

/** Returns the number that a key leads to. */
function next({ cells, active = 0 }, key) {
  const top = cells[0].offsetTop;
  const columns = Math.max(
    1,
    cells.findIndex((cell) => cell.offsetTop > top) < 0
      ? cells.length
      : cells.findIndex((cell) => cell.offsetTop > top),
  );
  const steps = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    PageUp: -8 * columns,
    PageDown: 8 * columns,
  };
  if (key === "Home") return 0;
  if (key === "End") return cells.length - 1;
  if (!(key in steps)) return undefined;
  return Math.min(cells.length - 1, Math.max(0, active + steps[key]));
}

function choose(map, number) {
  if (map.active !== undefined) map.cells[map.active].removeAttribute("aria-selected");
  map.active = number;
  map.cells[number].setAttribute("aria-selected", "true");
  map.grid.setAttribute("aria-activedescendant", map.cells[number].id);
  describe(map);
}

/** Says who has the chosen number, and until when. */
function describe({ pool, active, note }) {
  const words =
    active === undefined
      ? "Point at a field, or move with the arrow keys."
      : sentenceOf(active, pool.slots.get(active), Date.now());
  if (note.textContent !== words) note.textContent = words;
}

/** Returns a large pool as the list of the numbers that were ever held. */
function listOf(pool) {
  const rows = [...pool.slots.values()];
  const columns = [
    { title: "Number", numeric: true, cell: ({ number }) => grouped(number) },
    { title: "State", cell: ({ state }) => el("span", { class: `state-${state}` }, state) },
    { title: "Owner", cell: ({ owner }) => owner ?? "" },
    { title: "Host", cell: ({ host }) => host ?? "" },
    { title: "Mark", cell: (slot) => markless(slot) ?? when(slot.mark) },
  ];
  const rest = rows.length - ROWS_MAX;
  return el(
    "section",
    { class: "pool", "aria-label": `Pool ${pool.name}` },
    el("h4", {}, pool.name),
    el(
      "p",
      { class: "hint" },
      `${counts(pool)}. Only numbers that were ever held are listed.`,
    ),
    table({
      caption: `Numbers of ${pool.name} that were ever held`,
      columns,
      rows: rows.slice(0, ROWS_MAX),
      empty: "No number was ever held.",
    }),
    rest > 0 && el("p", { class: "empty" }, `Not shown: ${grouped(rest)} more; the part Workers lists them.`),
  );
}

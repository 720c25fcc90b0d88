// Worker numbers as a list, with their holders and marks.

import * as api from "./api.js";
import { ago, byId, el, fill, refill, table, when } from "./dom.js";
import { markless, stateOf } from "./slots.js";
import { grouped } from "./values.js";

export const everyMs = 10_000;

/** Limit of rows: more would slow the page, and no user reads that many. */
const ROWS_MAX = 1_000;

const held = byId("workers-held");
let all = [];

export function begin() {
  held.addEventListener("change", draw);
}

export async function load() {
  return refill(byId("workers-notice"), async () => {
    all = (await api.workers()).workers;
    draw();
  });
}

function draw() {
  const now = Date.now();
  const rows = held.checked ? all.filter(({ live }) => live) : all;
  const columns = [
    { title: "Pool", cell: ({ pool }) => pool },
    { title: "Number", numeric: true, cell: ({ number }) => grouped(number) },
    { title: "State", cell: (slot) => el("span", { class: `state-${stateOf(slot, now)}` }, stateOf(slot, now)) },
    { title: "Owner", cell: ({ owner }) => owner ?? "" },
    { title: "Host", cell: ({ host }) => host ?? "" },
    { title: "Process", numeric: true, cell: ({ process }) => (process === undefined ? "" : String(process)) },
    { title: "Term", numeric: true, cell: ({ term }) => grouped(term) },
    { title: "Mark", cell: (slot) => markless(slot) ?? when(slot.mark) },
    { title: "Held since", cell: ({ held_since: since }) => ago(since) },
    { title: "Renewed", cell: ({ last_renewed: renewed }) => ago(renewed) },
    { title: "Launched", cell: ({ launched }) => ago(launched) },
  ];
  const rest = rows.length - ROWS_MAX;
  fill(
    byId("workers-table"),
    table({
      caption: "Worker numbers",
      columns,
      rows: rows.slice(0, ROWS_MAX),
      empty: held.checked ? "No worker number has a live holder." : "No worker number was ever held.",
      marks: (slot) => stateOf(slot, now) === "own" && "open",
    }),
    rest > 0 && el("p", { class: "empty" }, `Not shown: ${grouped(rest)} more; snowmint worker list prints all.`),
  );
}

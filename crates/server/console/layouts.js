// Layouts: how the bits of an ID are divided, and what follows.

import * as api from "./api.js";
import { fieldsOf } from "./bits.js";
import { attempt, byId, day, el, facts, fill, onSubmit, table, when } from "./dom.js";
import * as drawing from "./drawing.js";
import { grouped, span } from "./values.js";

/** It changes by nobody but the person who looks. */
export const everyMs = 0;

export function begin() {
  onSubmit(byId("layout-form"), look);
}

export async function load() {
  await attempt(byId("layouts-notice"), async () => {
    const { layouts } = await api.layouts();
    const columns = [
      { title: "Name", cell: ({ name, about }) => [el("strong", {}, name), el("small", {}, about)] },
      { title: "Bits, to scale", cell: ({ layout }) => drawing.scale(fieldsOf(layout)) },
      { title: "Unit", numeric: true, cell: ({ unit_ms }) => span(unit_ms) },
      { title: "Lasts until", cell: ({ end, can_mint: can }) => [day(end), !can && el("small", {}, "cannot mint")] },
      { title: "Workers", numeric: true, cell: ({ workers }) => grouped(workers) },
      { title: "IDs/s a worker", numeric: true, cell: ({ ids_per_second: rate }) => grouped(rate) },
    ];
    fill(byId("layouts-table"), table({ caption: "Layouts that have a name", columns, rows: layouts, empty: "" }));
  });
}

/** Any layout, also one written out. */
async function look() {
  await attempt(byId("layout-notice"), async () => {
    const layout = await api.layout(byId("layout-text").value.trim());
    const { bits, end, epoch, unit_ms: unit, workers, ids_per_second: rate, about, layout: text } = layout;
    const pairs = [
      ["In full", el("code", {}, text)],
      ["About", about],
      ["Bits", `${bits.total} in all`],
      ["Unit", span(unit)],
      ["Begins", when(epoch)],
      ["Lasts until", when(end)],
      ["Workers", grouped(workers)],
      ["IDs a second", `${grouped(rate)} a worker`],
    ];
    fill(byId("layout-result"), drawing.scale(fieldsOf(text)), facts(pairs));
  });
}

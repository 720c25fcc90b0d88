// Layouts: the designer, and the named ones in a table.

import * as api from "./api.js";
import { fieldsOf } from "./bits.js";
import * as designer from "./designer.js";
import { attempt, byId, day, el, fill, onSubmit, table } from "./dom.js";
import * as drawing from "./drawing.js";
import { grouped, unit } from "./values.js";

/** Only the user changes this part. */
export const everyMs = 0;

export function begin() {
  designer.begin();
  onSubmit(byId("layout-form"), startFromText);
}

export async function load() {
  await attempt(byId("layouts-notice"), async () => {
    const { layouts } = await api.layouts();
    designer.offer(layouts);
    const columns = [
      { title: "Name", cell: ({ name, about }) => [el("strong", {}, name), el("small", {}, about)] },
      { title: "Bits to scale", cell: ({ layout }) => drawing.scale(fieldsOf(layout)) },
      { title: "Unit", numeric: true, cell: ({ unit_ns: ns }) => unit(ns) },
      { title: "Lasts until", cell: ({ end, can_mint: can }) => [day(end), !can && el("small", {}, "decodes only")] },
      { title: "Workers", numeric: true, cell: ({ workers }) => grouped(workers) },
      { title: "IDs/s per worker", numeric: true, cell: ({ ids_per_second: rate }) => grouped(rate) },
    ];
    fill(byId("layouts-table"), table({ caption: "Named layouts", columns, rows: layouts, empty: "" }));
  });
}

/** Starts the designer from the layout that the user typed: a name, a name with overrides, or all fields. */
async function startFromText() {
  await attempt(byId("layout-notice"), async () => {
    const { layout } = await api.layout(byId("layout-text").value.trim());
    designer.start(layout);
  });
}

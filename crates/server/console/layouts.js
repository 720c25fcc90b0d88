// Layouts: the fields of an ID in bits, with the limits that result.

import * as api from "./api.js";
import { fieldsOf } from "./bits.js";
import { attempt, byId, day, el, facts, fill, onSubmit, table, when } from "./dom.js";
import * as drawing from "./drawing.js";
import { grouped, unit } from "./values.js";

/** Only the user changes this part. */
export const everyMs = 0;

export function begin() {
  onSubmit(byId("layout-form"), showLayout);
}

export async function load() {
  await attempt(byId("layouts-notice"), async () => {
    const { layouts } = await api.layouts();
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

/** Shows the layout that the user typed, as a name or as fields. */
async function showLayout() {
  await attempt(byId("layout-notice"), async () => {
    const layout = await api.layout(byId("layout-text").value.trim());
    const { bits, end, epoch, unit_ns: ns, workers, ids_per_second: rate, about, layout: text } = layout;
    const pairs = [
      ["Full layout", el("code", {}, text)],
      ["About", about],
      ["Total bits", String(bits.total)],
      ["Unit", unit(ns)],
      ["Epoch", when(epoch)],
      ["Lasts until", when(end)],
      ["Workers", grouped(workers)],
      ["IDs/s per worker", grouped(rate)],
    ];
    fill(byId("layout-result"), drawing.scale(fieldsOf(text)), facts(pairs));
  });
}

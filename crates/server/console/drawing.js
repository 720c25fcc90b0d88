// Bits, drawn. What is drawn stands beside it in words, too.

import { described } from "./bits.js";
import { el, table } from "./dom.js";
import { grouped } from "./values.js";

/** Fields as wide as they have bits. */
export function scale(fields) {
  const parts = fields.map(({ field, name, bits }) =>
    wide(bits, el("span", { class: `field ${field}`, title: `${name}: ${bits}` }, String(bits))),
  );
  return el("div", { class: "scale", role: "img", "aria-label": described(fields) }, parts);
}

/** Every bit of an ID, those that are 1 filled, and what they say. `fields` are split. */
export function bits(fields) {
  const parts = fields.map(({ field, bits, digits }) =>
    wide(bits, el("span", { class: `bits ${field}` }, [...digits].map((digit) => el("i", { class: digit === "1" && "one" })))),
  );
  const drawn = el("div", { class: "scale", "aria-hidden": "true" }, parts);
  const columns = [
    { title: "Field", cell: ({ field, name }) => [el("span", { class: `key ${field}` }), name] },
    { title: "Bits", numeric: true, cell: (row) => String(row.bits) },
    { title: "Value", numeric: true, cell: ({ value }) => grouped(value) },
    { title: "Binary", cell: ({ digits }) => el("code", {}, digits) },
  ];
  return [drawn, table({ caption: "The bits of the ID, from the highest", columns, rows: fields })];
}

/** The page's policy forbids styles in attributes; set from here they are allowed. */
function wide(bits, node) {
  node.style.flexGrow = String(bits);
  return node;
}

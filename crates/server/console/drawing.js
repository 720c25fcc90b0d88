// Drawings of bits. Each drawing also has a text.

import { described } from "./bits.js";
import { el, table } from "./dom.js";
import { grouped } from "./values.js";

/** Draws fields, each as wide as its number of bits. */
export function scale(fields) {
  const parts = fields.map(({ field, name, bits }) =>
    wide(bits, el("span", { class: `field ${field}`, title: `${name}: ${bits}` }, String(bits))),
  );
  return el("div", { class: "scale", role: "img", "aria-label": described(fields) }, parts);
}

/** Draws every bit of an ID, filled if it is 1, with a table of the fields. `fields` come from `split`. */
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
  return [drawn, table({ caption: "Bits, highest first", columns, rows: fields })];
}

/** Sets the width. The page's policy forbids style attributes, but not styles that a script sets. */
function wide(bits, node) {
  node.style.flexGrow = String(bits);
  return node;
}

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

/** Draws fields to the scale of 64 bits: what is left of them stays empty at the top. */
export function room(fields) {
  const total = fields.reduce((sum, { bits }) => sum + bits, 0);
  const parts = fields.map(({ field, name, bits }) =>
    wide(bits, el("span", { class: `field ${field}`, title: `${name}: ${bits}` }, String(bits))),
  );
  const free = total < 64 && wide(64 - total, el("span", { class: "field unused", title: `unused: ${64 - total}` }));
  const label = [total < 64 && `unused ${64 - total}`, described(fields)].filter(Boolean).join(", ");
  return el("div", { class: "scale tall", role: "img", "aria-label": label }, free, parts);
}

/** Draws every bit of an ID, filled if it is 1, with a table of the fields. `fields` come from `split`. */
export function bits(fields) {
  const parts = fields.map(({ field, name, bits, digits, value }) =>
    wide(
      bits,
      el(
        "span",
        { class: `drawn ${field}` },
        el(
          "span",
          { class: "bits" },
          [...digits].map((digit) => el("i", { class: digit === "1" && "one" })),
        ),
        el("span", { class: "drawn-name", title: `${name} ${grouped(value)}` }, name, el("b", {}, grouped(value))),
      ),
    ),
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

// The properties of a layout as the server names them: figures, warnings and texts, and how two layouts differ.

import { copyFrom } from "./copy.js";
import * as define from "./define.js";
import { definitions, mints, timeLeft } from "./design.js";
import { day, el, table } from "./dom.js";
import { grouped, unit } from "./values.js";

const allOf = ({ workers, ids_per_second: rate }) => BigInt(workers) * BigInt(rate);
const isExact = ({ bits }) => bits.total <= 53;
const about = (count) => {
  const power = ["", " thousand", " million", " billion", " trillion"];
  const place = Math.min(4, Math.floor((String(count).length - 1) / 3));
  return place === 0 ? grouped(count) : `${(Number(count) / 1000 ** place).toPrecision(3)}${power[place]}`;
};

/** Returns nodes that show the properties of a design; `which` names it for screen readers. */
export function result(known, which) {
  const { layout, end, workers, ids_per_second: rate, unit_ns: ns, warnings = [], sample = {} } = known;
  const { command, configuration } = definitions("NAME", layout);
  const big = (title, value, small) =>
    el("div", { class: "figure" }, el("dt", {}, title), el("dd", {}, value, small && el("small", {}, small)));
  const forms = Object.entries(sample).filter(([name]) => !name.endsWith("-padded"));
  const padded = Object.entries(sample).filter(([name]) => name.endsWith("-padded"));
  const columns = [
    { title: "Form", cell: ([name]) => name },
    { title: "Text", cell: ([, text]) => el("code", {}, text) },
    { title: "Length", numeric: true, cell: ([, text]) => String(text.length) },
  ];
  return [
    el(
      "dl",
      { class: "figures" },
      big("Lasts until", day(end)),
      big("Workers", grouped(workers)),
      big("IDs a second, each", about(rate), `${unit(ns)} a tick`),
      big("IDs a second, all", about(allOf(known))),
      big("In JavaScript", isExact(known) ? "exact" : "rounded", isExact(known) ? "below 2^53" : "send strings"),
    ),
    warnings.length > 0 &&
      el(
        "ul",
        { class: "warnings", "aria-label": "Warnings" },
        warnings.map((text) => el("li", {}, text)),
      ),
    forms.length > 0 &&
      table({ caption: `First ID of worker 1 now, ${which} design`, columns, rows: [...forms, ...padded], empty: "" }),
    el("h4", {}, "Define a source with it"),
    lines(command, "command", which),
    lines(configuration, "configuration", which),
    mints(known, Date.now()) === "yes" &&
      el(
        "p",
        { class: "buttons" },
        el("button", { type: "button", onclick: () => define.offer(layout) }, "Define here…"),
      ),
  ];
}

/** Returns lines with a button that copies them. */
function lines(text, what, which) {
  const shown = el("pre", { tabindex: "0", "aria-label": `The ${what}, ${which} design` }, text);
  const done = el("span", { class: "hint", role: "status" });
  const button = el("button", { type: "button", onclick: () => copyFrom(shown, done) }, `Copy ${what}`);
  return el("div", { class: "lines" }, shown, el("p", { class: "buttons" }, button, done));
}

/** Returns the table of two layouts, with what differs marked. */
export function differences(one, two) {
  const nowMs = Date.now();
  const rows = [
    ["Bits", (it) => String(it.bits.total)],
    ["Lasts until", (it) => it.end.split("T")[0]],
    ["Time left", (it) => timeLeft(it, nowMs)],
    ["Workers", (it) => grouped(it.workers)],
    ["IDs a second, each worker", (it) => grouped(it.ids_per_second)],
    ["IDs a second, all workers", (it) => grouped(allOf(it))],
    ["Exact in JavaScript", (it) => (isExact(it) ? "yes" : "no")],
    ["Mints", (it) => mints(it, nowMs)],
  ].map(([name, of]) => ({ name, first: of(one), second: of(two) }));
  const columns = [
    { title: "Property", cell: ({ name }) => name },
    { title: "First", cell: ({ first }) => first },
    { title: "Second", cell: ({ second }) => second },
  ];
  const marks = ({ first, second }) => first !== second && "open";
  return table({ caption: "Differences", columns, rows, empty: "", marks });
}

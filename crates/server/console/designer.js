// The layout designer: one design or two, with what the server says of each.

import * as api from "./api.js";
import { fieldsOf } from "./bits.js";
import { FIELDS, UNITS, designOf, fromLocal, textOf, toLocal, totalOf } from "./design.js";
import { differences, result } from "./design_facts.js";
import { attempt, byId, el, fill } from "./dom.js";
import * as drawing from "./drawing.js";

/** Pause after the last change until the server is called. */
const PAUSE_MS = 120;
const START = "time=41,worker=10,sequence=12,unit=1ms,epoch=2026-01-01T00:00:00Z";
/** Value of the choice that is no layout of the server; no layout has this name. */
const OWN = "=";
/** Most bits of one field. */
const BITS_MAX = 63;

const LABELS = { time: "Time", clock: "Clock", worker: "Worker", sequence: "Sequence" };

/** Designs on the page: the second one only while the user compares. */
const panes = [];
let presets = [];

export function begin() {
  panes.push(paneOf(byId("design-one"), "first"), paneOf(byId("design-two"), "second"));
  const compares = byId("design-compare");
  compares.addEventListener("change", () => {
    byId("design-two").hidden = !compares.checked;
    byId("designs").classList.toggle("two", compares.checked);
    if (compares.checked) panes[1].start(textOf(panes[0].design));
    compare();
  });
  panes[0].start(START);
}

/** Offers these layouts of the server to start from. */
export function offer(layouts) {
  if (presets.length > 0) return;
  presets = layouts;
  for (const { select } of panes) {
    select.append(...layouts.map(({ name, about }) => el("option", { value: name }, `${name}: ${about}`)));
  }
}

/** Starts the first design from a layout. */
export function start(layout) {
  panes[0].start(layout);
  byId("designer-title").focus();
}

/** Fills a box with the fields of a design, and returns the pane. `which` names it for screen readers. */
function paneOf(box, which) {
  const pane = { which, design: designOf(START), known: undefined, asked: 0, timer: undefined };
  const id = (name) => `${box.id}-${name}`;
  const input = {};
  const change = () => {
    pane.select.value = OWN;
    read(pane, input);
    draw(pane, input);
  };
  const field = (name) => {
    const shared = { min: "0", max: String(BITS_MAX), oninput: undefined };
    const slider = el("input", {
      ...shared,
      type: "range",
      id: id(`${name}-slider`),
      "aria-label": `${LABELS[name]} bits, slider`,
      class: name,
    });
    const number = el("input", { ...shared, type: "number", id: id(name), "aria-label": `${LABELS[name]} bits` });
    slider.addEventListener("input", () => {
      number.value = slider.value;
      change();
    });
    number.addEventListener("input", () => {
      slider.value = number.value;
      change();
    });
    input[name] = { slider, number };
    return el(
      "div",
      { class: "bits-row", role: "group", "aria-label": LABELS[name] },
      el("span", { class: "bits-name" }, el("span", { class: `key ${name}` }), LABELS[name]),
      slider,
      number,
    );
  };
  pane.select = el(
    "select",
    {
      id: id("preset"),
      onchange: () => {
        const preset = presets.find(({ name }) => name === pane.select.value);
        if (preset) pane.start(preset.layout, preset.name);
      },
    },
    el("option", { value: OWN }, "own design"),
  );
  input.unit = el(
    "select",
    { id: id("unit"), onchange: change },
    UNITS.map((text) =>
      el(
        "option",
        { value: text },
        text
          .replace("us", " µs")
          .replace("ms", " ms")
          .replace(/(\d)s$/, "$1 s"),
      ),
    ),
  );
  input.epoch = el("input", {
    id: id("epoch"),
    type: "datetime-local",
    step: "0.001",
    max: "9999-12-31T23:59",
    onchange: change,
    oninput: change,
  });
  input.order = el("select", { id: id("order"), onchange: change });
  input.split = el("input", { id: id("split"), type: "number", min: "0", max: String(BITS_MAX), oninput: change });
  pane.scale = el("div", { class: "design-scale" });
  pane.notice = el("p", { class: "notice", role: "alert", hidden: true });
  pane.result = el("div", { role: "status", "aria-label": `Properties of the ${which} design` });
  fill(
    box,
    el("label", {}, "Start from", pane.select),
    pane.scale,
    FIELDS.map(field),
    el(
      "div",
      { class: "row" },
      el("label", {}, "Unit of a tick", input.unit),
      el("label", {}, "Epoch (UTC)", input.epoch),
    ),
    el(
      "details",
      {},
      el("summary", {}, "Order of the fields, parts of the worker"),
      el(
        "div",
        { class: "row" },
        el("label", {}, "Order, highest bits first", input.order),
        el("label", {}, "Low part of the worker, in bits", input.split),
      ),
    ),
    pane.notice,
    pane.result,
  );
  pane.start = (layout, name = OWN) => {
    pane.design = designOf(layout);
    pane.select.value = name;
    show(pane, input);
    draw(pane, input);
  };
  return pane;
}

/** Returns the orders that the designer offers: the usual ones, and that of the design. */
function ordersOf({ order }) {
  const usual = ["time,clock,worker,sequence", "time,clock,sequence,worker", "worker,time,clock,sequence"];
  return [...new Set([order.join(","), ...usual])];
}

/** Shows a design in its fields. */
function show({ design }, input) {
  for (const name of FIELDS) {
    input[name].slider.value = design.bits[name];
    input[name].number.value = design.bits[name];
  }
  if (!UNITS.includes(design.unit)) input.unit.append(el("option", { value: design.unit }, design.unit));
  input.unit.value = design.unit;
  input.epoch.value = toLocal(design.epoch);
  fill(
    input.order,
    ordersOf(design).map((order) => el("option", { value: order }, order.replaceAll(",", ", "))),
  );
  input.order.value = design.order.join(",");
  input.split.value = design.low.worker;
}

/** Reads a design from its fields. */
function read(pane, input) {
  const { design } = pane;
  for (const name of FIELDS)
    design.bits[name] = Math.min(BITS_MAX, Math.max(0, Math.trunc(Number(input[name].number.value)) || 0));
  design.order = input.order.value.split(",");
  design.unit = input.unit.value;
  design.epoch = fromLocal(input.epoch.value);
  design.low.worker = Math.max(0, Math.trunc(Number(input.split.value)) || 0);
}

/** Draws the bits at once, and the rest when the server has responded. */
function draw(pane) {
  const text = textOf(pane.design);
  const total = totalOf(pane.design);
  fill(pane.scale, drawing.room(fieldsOf(text)), el("p", { class: "hint" }, `${total} of 64 bits`));
  // The figures below are those of the earlier design until the server responds.
  pane.result.setAttribute("aria-busy", "true");
  clearTimeout(pane.timer);
  pane.timer = setTimeout(() => ask(pane, text), PAUSE_MS);
}

async function ask(pane, text) {
  pane.asked += 1;
  const mine = pane.asked;
  await attempt(pane.notice, async () => {
    let known;
    try {
      known = await api.layout(text);
    } finally {
      // The user has changed the design meanwhile.
      if (mine === pane.asked) pane.known = known;
    }
  });
  if (mine !== pane.asked) return;
  pane.result.removeAttribute("aria-busy");
  fill(pane.result, pane.known && result(pane.known, pane.which));
  compare();
}

/** Shows what differs between the two designs. */
function compare() {
  const [one, two] = panes.map(({ known }) => known);
  const box = byId("design-comparison");
  box.hidden = !byId("design-compare").checked;
  if (box.hidden || !one || !two) return fill(box);
  return fill(box, differences(one, two));
}

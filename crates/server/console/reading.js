// The content of one ID: its bits, its parts, and the readings of all layouts with what supports and weakens each.

import { fieldsOf, split } from "./bits.js";
import { el, facts, fill } from "./dom.js";
import * as drawing from "./drawing.js";
import { distance, grouped } from "./values.js";
import { inZone } from "./zones.js";

const number = (value) => value !== undefined && grouped(value);

function timeOf(time, zone) {
  if (!time) return "";
  const far = distance(time, Date.now());
  return el("time", { datetime: time }, inZone(time, zone), far && el("small", {}, far));
}

/** Returns the texts of the most plausible reading, for a table. */
export function firstOf(read, zone) {
  const { readings = [], kind, layout } = read;
  const best = readings.find(({ plausible }) => plausible);
  const of = best ?? (readings.length > 0 ? {} : read);
  const name = best ? nameOf(best) : (kind ?? layout ?? (readings.length > 0 ? "no plausible reading" : "number"));
  return {
    name,
    time: of.time && inZone(of.time, zone),
    worker: number(of.worker) || "",
    sequence: number(of.sequence) || "",
  };
}

const nameOf = ({ layout, format }) => (format ? `${layout}, from ${format}` : layout);

/** Returns nodes that show an ID as the server has read it. */
export function detailsOf(read, zone) {
  const { readings = [] } = read;
  const known = facts(factsOf(read, zone));
  if (readings.length === 0) {
    const drawn = read.layout && read.number !== undefined;
    return [drawn && drawing.bits(split(read.number, fieldsOf(read.layout))), known];
  }
  const plausible = readings.filter((reading) => reading.plausible);
  const isPlain = read.number === undefined || read.number === read.id;
  const others = readings.filter((reading) => !reading.plausible);
  return [
    !isPlain && known,
    el("h3", {}, plausible.length === 0 ? "No layout reads it plausibly" : `Plausible readings: ${plausible.length}`),
    plausible.length > 0 &&
      el(
        "p",
        { class: "hint" },
        "No layout was named, so the server read the ID with each that it knows; the most plausible comes first.",
      ),
    plausible.map((reading, place) => card(read, reading, zone, place === 0)),
    others.length > 0 &&
      el("details", {}, el("summary", {}, `Implausible readings: ${others.length}`), refused(others, zone)),
  ];
}

/** Returns a reading that opens to its bits. */
function card(read, reading, zone, isOpen) {
  const body = el("div", {});
  const box = el(
    "details",
    { class: "reading", open: isOpen },
    el(
      "summary",
      {},
      el("strong", {}, nameOf(reading)),
      " ",
      el("span", { class: "reading-time" }, timeOf(reading.time, zone)),
      el(
        "span",
        { class: reading.why ? "doubt" : "support" },
        reading.why ? `but ${reading.why}` : "nothing speaks against it",
      ),
    ),
    body,
  );
  const draw = () => {
    if (box.open && body.childElementCount === 0)
      fill(
        body,
        el("p", { class: "hint" }, supportOf(reading)),
        drawing.bits(split(reading.number ?? read.number, fieldsOf(reading.in_full))),
        el("p", {}, el("code", {}, reading.in_full)),
      );
  };
  box.addEventListener("toggle", draw);
  draw();
  return box;
}

/** Returns the sentence on what makes a reading plausible, from the values that the server read. */
function supportOf({ time, worker, worker_parts: parts, sequence, format, number: read }) {
  const worked =
    worker !== undefined && `worker ${grouped(worker)}${parts ? ` (${parts.map(grouped).join(" and ")})` : ""}`;
  const counted = sequence !== undefined && `sequence number ${grouped(sequence)}`;
  const from = format && `the text is ${grouped(read)} in ${format}`;
  const content = [from, worked, counted].filter(Boolean).join(", ");
  return `Its time lies in the years of the layout (${distance(time, Date.now()) || time}): ${content || "no other fields"}.`;
}

function refused(readings, zone) {
  const lines = readings.map((reading) =>
    el(
      "li",
      {},
      el("strong", {}, nameOf(reading)),
      `: ${reading.why ?? ""}`,
      reading.time && el("small", {}, ` ${inZone(reading.time, zone)}`),
    ),
  );
  return el("ul", { class: "refused" }, lines);
}

function factsOf(read, zone) {
  return [
    ["ID", el("code", {}, read.id)],
    ["Form", read.kind],
    ["Number", read.number !== undefined && read.number !== read.id && el("code", {}, read.number)],
    ["Time", timeOf(read.time, zone)],
    ["Tick", number(read.tick)],
    ["Worker", number(read.worker)],
    ["Worker parts", read.worker_parts && read.worker_parts.map(grouped).join(" and ")],
    ["Clock sequence", number(read.clock)],
    ["Sequence", number(read.sequence)],
    ["Period", read.period],
    ["UUID version", read.uuid_version],
    ["Layout", read.layout && el("code", {}, read.layout)],
    ...Object.entries(read.more ?? {}).map(([name, value]) => [name[0].toUpperCase() + name.slice(1), value]),
  ];
}

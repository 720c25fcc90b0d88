// The form that decodes an ID and draws its bits.

import * as api from "./api.js";
import { fieldsOf, split } from "./bits.js";
import { attempt, byId, el, facts, fill, onSubmit, when } from "./dom.js";
import * as drawing from "./drawing.js";
import { choices } from "./sources.js";
import { grouped } from "./values.js";

/** Only the user changes this part. */
export const everyMs = 0;

const by = byId("decode-by");
/** An ID that another part offers for decoding. */
let offered;

export function begin() {
  const shows = () => {
    byId("decode-source-box").hidden = by.value !== "source";
    byId("decode-layout-box").hidden = by.value !== "layout";
  };
  by.addEventListener("change", shows);
  shows();
  onSubmit(byId("decode-form"), decode);
}

/** Shows this part, and decodes an ID of a source. */
export function offer(id, source) {
  offered = { id, source };
  location.hash = "#decode";
}

export async function load() {
  const wanted = offered;
  offered = undefined;
  await attempt(byId("decode-notice"), async () => {
    await Promise.all([choices(byId("decode-source"), wanted?.source), layouts()]);
  });
  if (!wanted) return;
  by.value = "source";
  by.dispatchEvent(new Event("change"));
  byId("decode-id").value = wanted.id;
  await decode();
}

async function layouts() {
  const list = byId("decode-layouts");
  if (list.childElementCount > 0) return;
  const { layouts } = await api.layouts();
  fill(list, layouts.map(({ name, about }) => el("option", { value: name }, about)));
}

async function decode() {
  const result = byId("decode-result");
  result.hidden = true;
  await attempt(byId("decode-notice"), async () => {
    const id = byId("decode-id").value.trim();
    const read = await api.decode(id, { [by.value]: byId(`decode-${by.value}`).value.trim() });
    fill(byId("decode-facts"), facts(factsOf(read)));
    const drawn = read.layout && read.number !== undefined;
    fill(byId("decode-bits"), drawn ? drawing.bits(split(read.number, fieldsOf(read.layout))) : []);
    result.hidden = false;
  });
}

function factsOf(read) {
  const number = (value) => value !== undefined && grouped(value);
  return [
    ["ID", el("code", {}, read.id)],
    ["Number", read.number !== undefined && read.number !== read.id && el("code", {}, read.number)],
    ["Time", read.time && when(read.time)],
    ["Tick", number(read.tick)],
    ["Worker", number(read.worker)],
    ["Worker parts", read.worker_parts && read.worker_parts.map(grouped).join(" and ")],
    ["Clock sequence", number(read.clock)],
    ["Sequence", number(read.sequence)],
    ["Period", read.period],
    ["UUID version", read.uuid_version],
    ["Layout", read.layout && el("code", {}, read.layout)],
  ];
}

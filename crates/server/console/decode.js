// The decoder: one or many IDs in any form, read by all layouts, by a source or by one layout.

import * as api from "./api.js";
import { attempt, byId, el, errorText, fill, onSubmit, table } from "./dom.js";
import { detailsOf, firstOf } from "./reading.js";
import { choices } from "./sources.js";
import { counted } from "./values.js";
import * as zones from "./zones.js";

/** Only the user changes this part. */
export const everyMs = 0;

/** Most IDs that the page sends at once, and calls at the same time. */
const IDS_MAX = 200;
const CALLS_MAX = 6;

const by = byId("decode-by");
const zone = byId("decode-zone");
const form = byId("decode-format");
/** An ID that another part offers for decoding: `{ id, source, format }`. */
let offered;
/** The decoded IDs: `{ id, read, error }`. */
let decoded = [];
let shown = 0;
/** Whether each ID was read by all layouts. */
let byAny = true;

export function begin() {
  const shows = () => {
    byId("decode-source-box").hidden = by.value !== "source";
    byId("decode-layout-box").hidden = by.value !== "layout";
    byId("decode-format-box").hidden = by.value === "any";
  };
  fill(
    form,
    el("option", { value: "" }, "the source’s own, or decimal"),
    formsOf(byId("mint-format")).map((name) => el("option", {}, name)),
  );
  by.addEventListener("change", shows);
  shows();
  fill(
    byId("decode-zones"),
    zones.names().map((name) => el("option", { value: name })),
  );
  zone.addEventListener("change", () => {
    if (!zones.isKnown(zone.value)) zone.value = "UTC";
    draw();
  });
  byId("decode-local").addEventListener("click", () => {
    zone.value = zones.local();
    draw();
  });
  onSubmit(byId("decode-form"), decode);
}

/** Returns the forms that the page offers for minting. */
const formsOf = (select) => [...select.options].map(({ value }) => value).filter(Boolean);

/** Shows this part, and decodes an ID of a source, which has this form if it has one. */
export function offer(wanted) {
  offered = wanted;
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
  form.value = wanted.format;
  byId("decode-id").value = wanted.id;
  await decode();
}

async function layouts() {
  const list = byId("decode-layouts");
  if (list.childElementCount > 0) return;
  const { layouts } = await api.layouts();
  fill(
    list,
    layouts.map(({ name, about }) => el("option", { value: name }, about)),
  );
}

async function decode() {
  byId("decode-result").hidden = true;
  await attempt(byId("decode-notice"), async () => {
    // IDs contain no spaces, commas or quotes: lists of other programs have them between IDs.
    const ids = byId("decode-id")
      .value.split(/[\s,;"'[\]]+/)
      .filter(Boolean);
    if (ids.length === 0) throw new Error("no ID was entered; enter one or more");
    if (ids.length > IDS_MAX) throw new Error(`${counted(ids.length, "ID")} exceed the limit of ${IDS_MAX}; enter fewer`);
    const query = by.value === "any" ? {} : { [by.value]: byId(`decode-${by.value}`).value.trim() };
    if (by.value !== "any" && form.value) query.format = form.value;
    decoded = await all(ids, query);
    byAny = by.value === "any";
    shown = 0;
    if (ids.length === 1 && decoded[0].error) throw decoded[0].error;
    draw();
    byId("decode-result").hidden = false;
  });
}

/** Decodes the IDs, some at the same time; keeps their order. An error of one does not stop the others. */
async function all(ids, query) {
  const results = new Array(ids.length);
  let next = 0;
  const work = async () => {
    while (next < ids.length) {
      const place = next;
      next += 1;
      try {
        results[place] = { id: ids[place], read: await api.decode(ids[place], query) };
      } catch (error) {
        results[place] = { id: ids[place], error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CALLS_MAX, ids.length) }, work));
  return results;
}

function draw() {
  const several = decoded.length > 1;
  fill(byId("decode-list"), several && list());
  const { id, read, error } = decoded[shown] ?? {};
  const details = read && detailsOf(read, zone.value);
  fill(
    byId("decode-details"),
    several && el("h3", {}, id),
    error && el("p", { class: "notice" }, errorText(error)),
    details,
  );
}

/** Creates the table of all IDs; the chosen one has its details below. */
function list() {
  const of = ({ read }) => read && firstOf(read, zone.value);
  const columns = [
    {
      title: "ID",
      cell: (row) =>
        el(
          "button",
          {
            type: "button",
            class: "link",
            id: `decoded-${decoded.indexOf(row)}`,
            "aria-pressed": String(decoded[shown] === row),
            onclick: () => {
              shown = decoded.indexOf(row);
              draw();
            },
          },
          row.id,
        ),
    },
    { title: "Reading", wrap: true, cell: (row) => (row.error ? errorText(row.error) : of(row).name) },
    { title: "Time", cell: (row) => of(row)?.time ?? "" },
    { title: "Worker", numeric: true, cell: (row) => of(row)?.worker ?? "" },
    { title: "Sequence", numeric: true, cell: (row) => of(row)?.sequence ?? "" },
  ];
  return table({
    caption: byAny ? "Decoded IDs, each by its most plausible reading" : "Decoded IDs",
    columns,
    rows: decoded,
    empty: "",
    marks: (row) => decoded[shown] === row && "open",
  });
}

// The list of sources, with the properties of each.

import * as api from "./api.js";
import { fieldsOf } from "./bits.js";
import { byId, day, el, fill, refill, table } from "./dom.js";
import * as drawing from "./drawing.js";
import { serialText } from "./plan.js";
import * as panel from "./source.js";
import { grouped, nextText, readable, span } from "./values.js";

export const everyMs = 20_000;

/** The properties of layouts by their text, which never change. */
const layouts = new Map();

/** Shows all sources, and the details of the one with this name; returns whether the list is there. */
export async function load(name) {
  const isFilled = await refill(byId("sources-notice"), async () => {
    const { sources, unreadable = [] } = await api.sources();
    const texts = new Set(sources.map(({ layout }) => layout).filter(Boolean));
    await Promise.all([...texts].map(learn));
    fill(byId("sources-table"), listed(sources, name), unreadable.map(unread));
  });
  await panel.load(name);
  return isFilled;
}

async function learn(text) {
  if (layouts.has(text)) return;
  layouts.set(text, await api.layout(text));
}

function listed(sources, open) {
  const of = ({ layout }) => layouts.get(layout);
  const columns = [
    {
      title: "Name",
      cell: ({ name }) =>
        el("a", { href: `#sources/${name}`, id: `open-${name}`, "aria-current": name === open && "true" }, name),
    },
    { title: "Kind", cell: ({ kind }) => kind },
    {
      title: "State",
      cell: ({ enabled }) =>
        el("span", { class: `pill ${enabled === false ? "gone" : "yes"}` }, enabled === false ? "disabled" : "enabled"),
    },
    { title: "Details", wrap: true, cell: (source) => shape(source, of(source)) },
    { title: "Lasts until", cell: (source) => of(source) && day(of(source).end) },
    { title: "IDs/s per worker", numeric: true, cell: (source) => of(source) && grouped(of(source).ids_per_second) },
    { title: "Next number", numeric: true, cell: ({ next, serial }) => nextText(next, serial, Date.now()) },
  ];
  return table({
    caption: "Sources of this namespace",
    columns,
    rows: sources,
    empty: "The namespace has no sources, or the token has a right over none of them.",
    marks: ({ name }) => name === open && "open",
  });
}

/** Returns a summary of a source: its bits, numbers or version. */
function shape(source, can) {
  const { kind, layout, step, offset, increment, serial, uuid, stores, mint } = source;
  if (kind === "snowflake") {
    const clock = `${span(can.unit_ms)} since ${readable(can.epoch)}`;
    const words = mint === "store" ? `${clock}, minted by the store` : clock;
    return [drawing.scale(fieldsOf(layout)), el("small", {}, words)];
  }
  if (kind === "uuid") return `version ${uuid?.version}`;
  if (kind === "counter") return "numbers counted per key";
  if (kind !== "segment") return "";
  const stripe = increment > 1 && `stripe ${offset} of ${increment}`;
  const parts = [
    serial && `serials: ${serialText(serial)}`,
    stripe,
    stores && `of stores ${stores}`,
    step && stepOf(step),
  ];
  return parts.filter(Boolean).join(", ");
}

/** Returns how many numbers a server takes from the store at once. */
function stepOf({ rule, min, max, size }) {
  if (rule === "leaf") return `steps of ${grouped(size)} to ${grouped(max)} (leaf)`;
  // The server omits `step.rule` if it is adaptive, the default.
  return rule === "fixed" ? `steps of ${grouped(size)}` : `steps of ${grouped(min)} to ${grouped(max)}`;
}

function unread({ name, why }) {
  return el("p", { class: "notice" }, `This server cannot read the source ${name}: ${why}`);
}

/**
 * Fills a select element with all sources, keeps the selection, and returns the sources by name. Without a selection it
 * begins with a source that needs nothing else: an enabled one without a key.
 */
export async function choices(select, wanted = select.value) {
  const { sources } = await api.sources();
  const label = ({ name, kind, enabled }) => `${name} (${kind}${enabled === false ? ", disabled" : ""})`;
  fill(
    select,
    sources.map((source) => el("option", { value: source.name }, label(source))),
  );
  const usable = sources.find(
    ({ kind, enabled, uuid }) => enabled !== false && kind !== "counter" && ![3, 5].includes(uuid?.version),
  );
  select.value = (sources.find(({ name }) => name === wanted) ?? usable ?? sources[0])?.name ?? "";
  return new Map(sources.map((source) => [source.name, source]));
}

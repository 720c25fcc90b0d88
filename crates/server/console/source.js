// One source: its definition, and the actions on it.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import * as counters from "./counters.js";
import { attempt, byId, el, facts, fill, onSubmit, table, showNotice } from "./dom.js";
import { changes, fromLines, keysOf, nested, toLines } from "./keys.js";
import { recentUse, serialText } from "./plan.js";
import { grouped, nextText } from "./values.js";

/** The name that was requested last: responses may arrive in another order. */
let requested;
/** The visible source, if any. */
let shown;
/** The source at the time when the user began to alter it: other callers may alter it meanwhile. */
let begun;
let again = () => {};

/** Sets up the panel, which calls `changed` after it has changed a source. */
export function begin(changed) {
  again = changed;
  byId("source-alter").addEventListener("click", beginAlter);
  byId("source-alter-cancel").addEventListener("click", endAlter);
  byId("source-switch").addEventListener("click", disableOrEnable);
  byId("source-delete").addEventListener("click", remove);
  onSubmit(byId("source-alter-form"), alter);
}

/** Shows the source with this name, or none. */
export async function load(name) {
  requested = name;
  const box = byId("source");
  box.hidden = !name;
  if (!name) {
    shown = undefined;
    return;
  }
  if (shown?.name !== name) {
    endAlter();
    // What became of a change of another source.
    for (const words of ["source-done", "change-notice"]) byId(words).hidden = true;
  }
  byId("source-title").textContent = `Source ${name}`;
  const source = await attempt(byId("source-notice"), () => api.source(name));
  if (requested !== name) return;
  byId("source-body").hidden = source === undefined;
  if (source === undefined) return;
  shown = source;
  const { version, next, store_status: status = [], enabled, kind, serial } = source;
  fill(
    byId("source-facts"),
    facts([
      ["Version", grouped(version)],
      ["Serials", serial && serialText(serial)],
      ["Next number", nextText(next, serial, Date.now())],
    ]),
  );
  fill(byId("source-stores"), status.length > 0 && stores(status));
  byId("source-keys").textContent = toLines(keysOf(source)).join("\n");
  byId("source-switch").textContent = enabled === false ? "Enable…" : "Disable…";
  byId("source-mint").href = `#mint/${name}`;
  counters.load(kind === "counter" ? name : undefined);
}

function stores(status) {
  const columns = [
    { title: "Store", cell: ({ store }) => store },
    {
      title: "Stripe",
      cell: ({ offset, increment }) => (offset === undefined ? "unknown" : `${offset} of ${increment}`),
    },
    { title: "Serving", cell: ({ serving }) => (serving ? "yes" : el("strong", {}, "no")) },
    { title: "Error", cell: ({ error }) => error ?? "" },
  ];
  return table({ caption: "Stores, as this server sees them", columns, rows: status, empty: "" });
}

function beginAlter() {
  const lines = byId("source-lines");
  begun = shown;
  lines.value = toLines(keysOf(begun)).join("\n");
  byId("source-alter-form").hidden = false;
  lines.focus();
}

function endAlter() {
  byId("source-alter-form").hidden = true;
}

async function alter() {
  await change(async () => {
    // The address may name another source when the user confirms.
    const { name, version } = begun;
    const different = changes(keysOf(begun), fromLines(byId("source-lines").value));
    if (different.length === 0) throw new Error("no key has changed; change a line first");
    const patch = nested(different.map(({ name, to }) => [name, to]));
    const sure = await confirm({
      title: `Alter ${name}?`,
      means: [
        "Every server of the namespace applies the change within about a second, and keeps minting meanwhile.",
        "The server rejects a change of the keys on which its IDs depend (kind, layout, epoch, stripe).",
      ],
      lines: different.map(({ name, from, to }) => `${name}: ${valueText(from)} → ${valueText(to)}`),
      action: "Alter",
    });
    if (!sure) return undefined;
    const altered = await api.alter(name, version, patch);
    endAlter();
    return `Altered: version ${grouped(altered.version)}.`;
  });
}

const valueText = (value) => (value === undefined ? "not set" : String(value));

async function disableOrEnable() {
  await change(async () => {
    const { name, version } = shown;
    const enables = shown.enabled === false;
    const sure = await confirm({
      title: enables ? `Enable ${name}?` : `Disable ${name}?`,
      means: enables
        ? ["Every server of the namespace mints from it again, above everything minted before."]
        : [
            "Every server of the namespace rejects requests for its IDs (409 disabled) until it is enabled again.",
            "Its definition and its numbers stay.",
            recentUse(name),
          ],
      lines: [`enabled: ${!enables} → ${enables}`],
      action: enables ? "Enable" : "Disable",
    });
    if (!sure) return undefined;
    await api.alter(name, version, { enabled: enables });
    return enables ? "Enabled." : "Disabled.";
  });
}

async function remove() {
  await change(async () => {
    const { name } = shown;
    const sure = await confirm({
      title: `Delete ${name}?`,
      means: [
        "Every server of the namespace returns 404 for this source.",
        "The name keeps its kind, layout and numbers: the same source, defined again, continues above them.",
        "The server rejects the name with another kind or layout.",
        recentUse(name),
      ],
      action: "Delete",
      name,
    });
    if (!sure) return undefined;
    await api.remove(name);
    location.hash = "#sources";
    return undefined;
  });
}

/** Makes a change, reports the result, and refreshes the page. */
async function change(work) {
  const done = byId("source-done");
  done.hidden = true;
  let words;
  let late = false;
  const before = shown;
  await attempt(byId("change-notice"), async () => {
    try {
      words = await work();
    } catch (error) {
      // Another caller has changed the source since the page showed it.
      late = error.code === "conflict";
      throw error;
    }
  });
  // The address names another source meanwhile, whose change did not fail.
  if (shown?.name !== before.name) byId("change-notice").hidden = true;
  if (words === undefined && !late) return;
  await again();
  if (words !== undefined && shown?.name === before.name) showNotice(done, words);
}

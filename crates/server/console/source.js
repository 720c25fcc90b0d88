// One source: its definition, and what can be done with it.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import * as counters from "./counters.js";
import { attempt, byId, el, facts, fill, onSubmit, table, tell } from "./dom.js";
import { changes, fromLines, keysOf, nested, toLines } from "./keys.js";
import { grouped } from "./values.js";

/** The name that was asked for last: answers may come in another order. */
let asked;
/** The source that is shown; none when none is. */
let shown;
/** The source as it was when its lines were put up for altering: others may alter it meanwhile. */
let begun;
let again = () => {};

/** `changed` is called when a source was changed here. */
export function begin(changed) {
  again = changed;
  byId("source-alter").addEventListener("click", beginAlter);
  byId("source-alter-cancel").addEventListener("click", endAlter);
  byId("source-switch").addEventListener("click", switchOnOrOff);
  byId("source-delete").addEventListener("click", remove);
  onSubmit(byId("source-alter-form"), alter);
}

export async function load(name) {
  asked = name;
  const box = byId("source");
  box.hidden = !name;
  if (!name) {
    shown = undefined;
    return;
  }
  if (shown?.name !== name) {
    endAlter();
    byId("source-done").hidden = true;
  }
  byId("source-title").textContent = `Source ${name}`;
  const source = await attempt(byId("source-notice"), () => api.source(name));
  if (asked !== name) return;
  byId("source-body").hidden = source === undefined;
  if (source === undefined) return;
  shown = source;
  const { version, next, shares = [], enabled, kind } = source;
  fill(byId("source-facts"), facts([["Version", grouped(version)], ["Next number that nobody was given", next && grouped(next)]]));
  fill(byId("source-shares"), shares.length > 0 && stores(shares));
  byId("source-keys").textContent = toLines(keysOf(source)).join("\n");
  byId("source-switch").textContent = enabled === false ? "Switch on…" : "Switch off…";
  byId("source-mint").href = `#mint/${name}`;
  counters.load(kind === "counter" ? name : undefined);
}

function stores(shares) {
  const columns = [
    { title: "Store", cell: ({ store }) => store },
    { title: "Stripe", cell: ({ offset, increment }) => (offset === undefined ? "not known" : `${offset} of ${increment}`) },
    { title: "Serves", cell: ({ serves }) => (serves ? "yes" : el("strong", {}, "no")) },
    { title: "Trouble", cell: ({ trouble }) => trouble ?? "" },
  ];
  return table({ caption: "Its stores, as this server finds them", columns, rows: shares, empty: "" });
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
    // The address may name another source by the time that it is confirmed.
    const { name, version } = begun;
    const different = changes(keysOf(begun), fromLines(byId("source-lines").value));
    if (different.length === 0) throw new Error("Nothing is different.");
    const patch = nested(different.map(({ name, to }) => [name, to]));
    const sure = await confirm({
      title: `Alter ${name}?`,
      means: [
        "Every server of the namespace follows within about a second, and goes on minting meanwhile.",
        "What its IDs depend on (kind, layout, epoch, stripe) cannot change: the server refuses it.",
      ],
      lines: different.map(({ name, from, to }) => `${name}: ${told(from)} → ${told(to)}`),
      action: "Alter",
    });
    if (!sure) return undefined;
    const altered = await api.alter(name, version, patch);
    endAlter();
    return `Altered: version ${grouped(altered.version)}.`;
  });
}

const told = (value) => (value === undefined ? "not said" : String(value));

async function switchOnOrOff() {
  await change(async () => {
    const { name, version } = shown;
    const on = shown.enabled === false;
    const sure = await confirm({
      title: on ? `Switch ${name} on?` : `Switch ${name} off?`,
      means: on
        ? ["Every server of the namespace mints from it again, above everything that it minted before."]
        : [
            "Every server of the namespace refuses to mint from it (409 disabled) until it is switched on again.",
            "Its definition and its numbers stay.",
          ],
      action: on ? "Switch on" : "Switch off",
    });
    if (!sure) return undefined;
    await api.alter(name, version, { enabled: on });
    return on ? "Switched on." : "Switched off.";
  });
}

async function remove() {
  await change(async () => {
    const { name } = shown;
    const sure = await confirm({
      title: `Delete ${name}?`,
      means: [
        "For every server of the namespace there is no such source any more (404).",
        "The name keeps its kind, its layout and its numbers: defined again, it goes on above them, and as anything else it is refused.",
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

/** Does it, says so, and looks at everything again. */
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
      // Others have changed it since it was shown.
      late = error.code === "conflict";
      throw error;
    }
  });
  if (words === undefined && !late) return;
  await again();
  if (words !== undefined && shown?.name === before.name) tell(done, words);
}

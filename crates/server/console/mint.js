// Minting a few IDs, and copying them.

import * as api from "./api.js";
import { attempt, byId, onSubmit, tell } from "./dom.js";
import * as decode from "./decode.js";
import { choices } from "./sources.js";
import { grouped } from "./values.js";

/** It changes by nobody but the person who looks. */
export const everyMs = 0;

const source = byId("mint-source");
let known = new Map();

export function begin() {
  source.addEventListener("change", keyOrNot);
  onSubmit(byId("mint-form"), mint);
  byId("mint-copy").addEventListener("click", copy);
  byId("mint-decode").addEventListener("click", () => {
    const [first] = byId("mint-ids").value.split("\n");
    decode.offer(first, byId("mint-result").dataset.source);
  });
}

/** With this source chosen, if there is one of that name. */
export async function load(name) {
  await attempt(byId("mint-notice"), async () => {
    known = await choices(source, name || undefined);
    keyOrNot();
  });
}

/** Counters need a key, and UUIDs made from names; others take none. */
function keyOrNot() {
  const { kind, uuid } = known.get(source.value) ?? {};
  const named = kind === "uuid" && [3, 5].includes(uuid?.version);
  byId("mint-key-box").hidden = kind !== "counter" && !named;
  byId("mint-key-label").textContent = named ? "Name" : "Key";
}

async function mint() {
  await attempt(byId("mint-notice"), async () => {
    const wish = { count: BigInt(byId("mint-count").value) };
    if (!byId("mint-key-box").hidden) wish.key = byId("mint-key").value;
    if (byId("mint-format").value) wish.format = byId("mint-format").value;
    const from = source.value;
    const { ids } = await api.mint(from, wish);
    byId("mint-ids").value = ids.join("\n");
    byId("mint-result").dataset.source = from;
    byId("mint-result").hidden = false;
    tell(byId("mint-done"), `${grouped(ids.length)} of ${from}, nobody else’s.`);
  });
}

async function copy() {
  const ids = byId("mint-ids");
  const done = byId("mint-done");
  try {
    await navigator.clipboard.writeText(ids.value);
    tell(done, "Copied.");
  } catch {
    // Browsers let pages copy by themselves on https and this machine only.
    ids.focus();
    ids.select();
    tell(done, "Selected: copy with Ctrl+C.");
  }
}

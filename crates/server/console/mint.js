// The form that mints a few IDs, to copy.

import * as api from "./api.js";
import { copyFrom } from "./copy.js";
import { attempt, byId, onSubmit, showNotice } from "./dom.js";
import * as decode from "./decode.js";
import { choices } from "./sources.js";
import { grouped } from "./values.js";

/** Only the user changes this part. */
export const everyMs = 0;

const source = byId("mint-source");
let known = new Map();

export function begin() {
  source.addEventListener("change", keyOrNot);
  onSubmit(byId("mint-form"), mint);
  byId("mint-copy").addEventListener("click", copy);
  byId("mint-decode").addEventListener("click", () => {
    const [first] = byId("mint-ids").value.split("\n");
    const { source: from, format } = byId("mint-result").dataset;
    decode.offer({ id: first, source: from, format });
  });
}

/** Loads the sources, and selects the one with this name if it exists. */
export async function load(name) {
  await attempt(byId("mint-notice"), async () => {
    known = await choices(source, name || undefined);
    keyOrNot();
  });
}

/** Shows the key field for counters and for UUIDs made from names; other sources take no key. */
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
    // If minting fails, the earlier IDs would look like new ones.
    byId("mint-result").hidden = true;
    const { ids } = await api.mint(from, wish);
    byId("mint-ids").value = ids.join("\n");
    Object.assign(byId("mint-result").dataset, { source: from, format: wish.format ?? "" });
    byId("mint-result").hidden = false;
    showNotice(byId("mint-done"), `Minted from ${from}: ${grouped(ids.length)}.`);
  });
}

function copy() {
  return copyFrom(byId("mint-ids"), byId("mint-done"));
}

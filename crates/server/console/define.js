// A new source.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import { attempt, byId, el, fill, onSubmit } from "./dom.js";
import { fromLines, nested, toLines } from "./keys.js";

const kind = byId("define-kind");

export function begin() {
  const shows = () => {
    byId("define-layout-box").hidden = kind.value !== "snowflake";
  };
  kind.addEventListener("change", shows);
  shows();
  onSubmit(byId("define-form"), define);
  byId("define-box").addEventListener("toggle", offerLayouts);
}

/** The names of layouts, once they are wanted. A server that does not tell them takes them all the same. */
async function offerLayouts() {
  const list = byId("layout-names");
  if (list.childElementCount > 0) return;
  try {
    const { layouts } = await api.layouts();
    fill(list, layouts.filter((layout) => layout.can_mint).map(({ name, about }) => el("option", { value: name }, about)));
  } catch {
    // Nothing to offer.
  }
}

async function define() {
  await attempt(byId("define-notice"), async () => {
    const name = byId("define-name").value.trim();
    const layout = kind.value === "snowflake" && byId("define-layout").value.trim();
    const above = new Map([["kind", kind.value], ...(layout ? [["layout", layout]] : [])]);
    const lines = fromLines(byId("define-keys").value);
    for (const key of lines.keys()) {
      if (above.has(key)) throw new Error(`${key} is said twice: above, and among the lines`);
    }
    const keys = new Map([...above, ...lines]);
    const sure = await confirm({
      title: `Define ${name}?`,
      means: [
        "Every server of the namespace mints from it.",
        "What its IDs depend on (kind, layout, epoch, stripe) can never change under this name, also after it was deleted.",
      ],
      lines: [`[sources.${name}]`, ...toLines(keys)],
      action: "Define",
    });
    if (!sure) return;
    await api.define({ ...nested(keys), name });
    byId("define-form").reset();
    kind.dispatchEvent(new Event("change"));
    byId("define-box").open = false;
    location.hash = `#sources/${name}`;
  });
}

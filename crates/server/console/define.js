// The form that defines a source.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import { attempt, byId, el, fill, onSubmit } from "./dom.js";
import { fromLines, nested, toLines } from "./keys.js";
import { layoutPlan } from "./plan.js";

/** Layout of a snowflake source that names none. */
const LAYOUT_DEFAULT = "time=41,worker=10,sequence=12";

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

/** Offers the names of layouts when the user opens the form. */
async function offerLayouts() {
  const list = byId("layout-names");
  if (list.childElementCount > 0) return;
  try {
    const { layouts } = await api.layouts();
    fill(
      list,
      layouts.filter((layout) => layout.can_mint).map(({ name, about }) => el("option", { value: name }, about)),
    );
  } catch {
    // Without the list, the user can still type a layout.
  }
}

/** Opens the form with this layout. */
export function offer(layout) {
  kind.value = "snowflake";
  kind.dispatchEvent(new Event("change"));
  byId("define-layout").value = layout;
  byId("define-box").open = true;
  location.hash = "#sources";
  // The part becomes visible only after the address has changed.
  setTimeout(() => byId("define-name").focus());
}

async function define() {
  await attempt(byId("define-notice"), async () => {
    const name = byId("define-name").value.trim();
    const layout = kind.value === "snowflake" && byId("define-layout").value.trim();
    const above = new Map([["kind", kind.value], ...(layout ? [["layout", layout]] : [])]);
    const lines = fromLines(byId("define-keys").value);
    for (const key of lines.keys()) {
      if (above.has(key)) throw new Error(`key "${key}" is set twice: in its own field and in a line; remove the line`);
    }
    const keys = new Map([...above, ...lines]);
    const plan = kind.value === "snowflake" && !keys.has("epoch") ? layoutPlan(layout || LAYOUT_DEFAULT) : "";
    const sure = await confirm({
      title: `Define ${name}?`,
      means: [
        plan,
        "Every server of the namespace mints from it.",
        "The keys on which the IDs depend (kind, layout, epoch) never change under this name, not even after a deletion.",
        "Only snowmint source restripe changes the stripe.",
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

// The dialog that explains a change before the user confirms it.

import { byId, el } from "./dom.js";

const dialog = byId("confirm");
const typed = byId("confirm-typed");
const yes = byId("confirm-yes");

let wanted = "";

typed.addEventListener("input", () => {
  yes.disabled = typed.value !== wanted;
});
yes.addEventListener("click", () => dialog.close("yes"));
byId("confirm-no").addEventListener("click", () => dialog.close("no"));

/** Closes the dialog without a confirmation, if it is open. */
export function dismiss() {
  if (dialog.open) dialog.close("no");
}

/**
 * Returns whether the user confirms a change. `means` are sentences that explain it, or promises of some, `lines` the
 * data to send. With `name`, for a change that cannot be undone, the user must type this name.
 */
export function confirm({ title, means, lines = [], action, name = "" }) {
  byId("confirm-title").textContent = title;
  byId("confirm-means").replaceChildren(...means.filter(Boolean).map(meaning));
  const shown = byId("confirm-lines");
  shown.hidden = lines.length === 0;
  shown.textContent = lines.join("\n");
  wanted = name;
  typed.value = "";
  byId("confirm-name").textContent = name;
  byId("confirm-typing").hidden = name === "";
  yes.textContent = action;
  yes.disabled = name !== "";
  dialog.returnValue = "";
  dialog.showModal();
  (name ? typed : byId("confirm-no")).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Creates the place of a sentence; of a promised one, it is empty until the server has responded. */
function meaning(sentence) {
  const place = el("div", {});
  const show = (texts) =>
    place.replaceChildren(
      ...[texts]
        .flat()
        .filter(Boolean)
        .map((text) => el("p", {}, text)),
    );
  if (sentence instanceof Promise) sentence.then(show, () => {});
  else show(sentence);
  return place;
}

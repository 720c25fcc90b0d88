// The bound of a counter by its key: shown, without taking a number, and raised.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import { attempt, byId, onSubmit, showNotice } from "./dom.js";
import { grouped } from "./values.js";

let source;

export function begin() {
  onSubmit(byId("counter-form"), showBound);
  onSubmit(byId("counter-raise-form"), raise);
}

/** Shows the forms for this counter source; hides them without one. */
export function load(name) {
  if (name === source) return;
  source = name;
  byId("counter").hidden = name === undefined;
  byId("counter-done").hidden = true;
  byId("counter-notice").hidden = true;
}

async function showBound() {
  await attempt(byId("counter-notice"), async () => {
    const key = byId("counter-key").value;
    const { bound } = await api.bound(source, key);
    showNotice(byId("counter-done"), `${key}: ${grouped(bound)} is the highest number that a caller may have received.`);
  });
}

async function raise() {
  await attempt(byId("counter-notice"), async () => {
    // The address may name another source when the user confirms.
    const of = source;
    const key = byId("counter-key").value;
    const bound = byId("counter-bound").value.trim();
    if (key === "") throw new Error("the key is empty; enter a key");
    const sure = await confirm({
      title: `Raise the bound of ${key}?`,
      means: [
        `Every later number of this key is greater than ${grouped(bound)}. No call lowers the bound again.`,
        "All keys of a section share one mark, so the numbers of the other keys may jump as well.",
      ],
      action: "Raise",
    });
    if (!sure) return;
    const raised = await api.raise(of, key, bound);
    showNotice(byId("counter-done"), `${key}: every later number is greater than ${grouped(raised.bound)}.`);
  });
}

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
  await about(async (of, key) => {
    const { bound } = await api.bound(of, key);
    const now = new Date().toLocaleTimeString("en-GB");
    return `${key}: at ${now}, ${grouped(bound)} was the highest number that a caller may have received.`;
  });
}

async function raise() {
  await about(async (of, key) => {
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
    if (!sure) return undefined;
    const raised = await api.raise(of, key, bound);
    return `${key}: every later number is greater than ${grouped(raised.bound)}.`;
  });
}

/** Does the work with the source and the key, and shows its sentence in place of the earlier one. */
async function about(work) {
  // The address may name another source when the user confirms, or the server responds.
  const of = source;
  const done = byId("counter-done");
  done.hidden = true;
  const words = await attempt(byId("counter-notice"), () => work(of, byId("counter-key").value));
  if (source !== of) byId("counter-notice").hidden = true;
  else if (words !== undefined) showNotice(done, words);
}

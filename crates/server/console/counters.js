// The bound of a counter by its key: looked at, which takes nothing, and raised.

import * as api from "./api.js";
import { confirm } from "./confirm.js";
import { attempt, byId, onSubmit, tell } from "./dom.js";
import { grouped } from "./values.js";

let source;

export function begin() {
  onSubmit(byId("counter-form"), look);
  onSubmit(byId("counter-raise-form"), raise);
}

/** Of this source, or of none. */
export function load(name) {
  if (name === source) return;
  source = name;
  byId("counter").hidden = name === undefined;
  byId("counter-done").hidden = true;
  byId("counter-notice").hidden = true;
}

async function look() {
  await attempt(byId("counter-notice"), async () => {
    const key = byId("counter-key").value;
    const { bound } = await api.bound(source, key);
    tell(byId("counter-done"), `${key}: ${grouped(bound)} is the highest number that anybody may have been answered.`);
  });
}

async function raise() {
  await attempt(byId("counter-notice"), async () => {
    // The address may name another source by the time that it is confirmed.
    const of = source;
    const key = byId("counter-key").value;
    const bound = byId("counter-bound").value.trim();
    if (key === "") throw new Error("Say the key first.");
    const sure = await confirm({
      title: `Raise the counter of ${key}?`,
      means: [
        `Every later number of this key is greater than ${grouped(bound)}. Nothing can be lowered again.`,
        "Keys share a mark with others of their section, whose numbers may jump as well.",
      ],
      action: "Raise",
    });
    if (!sure) return;
    const raised = await api.raise(of, key, bound);
    tell(byId("counter-done"), `${key}: every later number is greater than ${grouped(raised.bound)}.`);
  });
}

// The meaning of a change of a source, as far as calls of the server show it.

import * as api from "./api.js";
import { counted } from "./values.js";

const RECENT_MS = 60_000;

/** Returns the sentence on how much this server issued of a source in the last minute; empty if it does not say so. */
export async function recentUse(name) {
  try {
    const { times_ms: times, sources } = await api.history();
    const counts = sources[name] ?? [];
    const from = (times.at(-1) ?? 0) - RECENT_MS;
    const sum = counts.reduce((all, count, place) => (times[place] > from ? all + count : all), 0);
    return sum === 0
      ? "This server issued no ID of it in the last minute."
      : `This server alone issued ${counted(sum, "ID")} of it in the last minute.`;
  } catch {
    return "";
  }
}

/** Returns the sentences on a layout that a source gets for ever: its limits, and the server's warnings. */
export async function layoutPlan(text) {
  const { layout, end, workers, ids_per_second: rate, warnings = [] } = await api.layout(text);
  const [mint, each] = workers === 1 ? ["mints", ""] : ["mint", " each"];
  return [
    `${counted(workers, "worker")} ${mint} up to ${counted(rate, "ID")} a second${each}, until ${end.split("T")[0]}.`,
    `The layout in full: ${layout}`,
    ...warnings.map((warning) => `Warning: ${warning}.`),
  ];
}

/** Returns the form of serials in words, from the keys of the source. */
export function serialText({ prefix = "", date, width, reset, zone }) {
  const digits = width ? `at least ${counted(width, "digit")}` : "a number";
  const again = reset && reset !== "never" ? `, from 1 again each ${reset} (${zone})` : "";
  return [prefix && `“${prefix}”`, date && `the date as ${date}`, digits].filter(Boolean).join(", then ") + again;
}

// The few things that the console does to the page. What the server says goes in as text, never as markup.

import { distance, readable, span } from "./values.js";

/** What is left out: conditions that do not hold end in one of these. */
const NOTHING = [undefined, null, false, ""];

export const byId = (id) => document.getElementById(id);

/** An element with attributes (functions are listeners: `onclick`) and children; what is not there is left out. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (NOTHING.includes(value)) continue;
    if (attribute.startsWith("on")) node.addEventListener(attribute.slice(2), value);
    else node.setAttribute(attribute, value === true ? "" : value);
  }
  node.append(...there(children));
  return node;
}

const there = (children) => children.flat(2).filter((child) => !NOTHING.includes(child));

/** Other children for a node. Whoever had the keyboard's focus within it keeps it, if it has an id. */
export function fill(node, ...children) {
  const { activeElement } = document;
  const focused = node.contains(activeElement) ? activeElement.id : "";
  const scrolled = [...node.querySelectorAll(".scroll")].map(({ scrollLeft }) => scrollLeft);
  node.replaceChildren(...there(children));
  node.querySelectorAll(".scroll").forEach((part, index) => {
    part.scrollLeft = scrolled[index] ?? 0;
  });
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

/**
 * A table. A column is `{ title, cell(row), numeric }`; the first names its row. On a narrow screen it scrolls by
 * itself, also by keyboard.
 */
export function table({ caption, columns, rows, empty, marks }) {
  if (rows.length === 0) return el("p", { class: "empty" }, empty);
  const side = ({ numeric }) => (numeric ? "number" : undefined);
  const head = columns.map((column) => el("th", { scope: "col", class: side(column) }, column.title));
  const lines = rows.map((row) => {
    const cells = columns.map((column, index) =>
      index === 0
        ? el("th", { scope: "row", class: side(column) }, column.cell(row))
        : el("td", { class: side(column) }, column.cell(row)),
    );
    return el("tr", { class: marks?.(row) }, cells);
  });
  return el(
    "div",
    { class: "scroll", id: `table-${caption.replace(/\W+/g, "-")}`, role: "region", tabindex: "0", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, lines)),
  );
}

/** Names and what they stand for; those without a value are left out. */
export function facts(pairs) {
  const there = pairs.filter(([, value]) => !NOTHING.includes(value));
  return el("dl", {}, there.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A time, with how far it lies from now below it. */
export function when(time) {
  if (!time) return "";
  const far = distance(time, Date.now());
  return el("time", { datetime: time }, readable(time), far && el("small", {}, far));
}

/** How far a time lies from now, where that is what one wants to know; the time itself when pointed at. */
export function ago(time) {
  if (!time) return "";
  return el("time", { datetime: time, title: readable(time) }, distance(time, Date.now()) || readable(time));
}

/** The day of a time, with how far it lies from now below it; the time itself when pointed at. */
export function day(time) {
  const far = distance(time, Date.now());
  return el("time", { datetime: time, title: readable(time) }, time.split("T")[0], far && el("small", {}, far));
}

/** A refusal in the server's own words. */
export function said(error) {
  const { status, code, message, retryAfterMs } = error;
  const what = code ? `${status ? `${status} ` : ""}${code}: ` : "";
  const retry = retryAfterMs === null || retryAfterMs === undefined ? "" : ` Ask again in ${span(Number(retryAfterMs))}.`;
  return `${what}${message}${retry}`;
}

/** Does the work; when it fails, the notice says why. Answers what the work did, else undefined. */
export async function attempt(notice, work) {
  try {
    const done = await work();
    notice.hidden = true;
    notice.textContent = "";
    return done;
  } catch (error) {
    tell(notice, said(error));
    return undefined;
  }
}

/** Words in a notice. The same again is not read out again. */
export function tell(notice, words) {
  if (notice.textContent !== words) notice.textContent = words;
  notice.hidden = false;
}

/** What a form's sending does, once at a time. */
export function onSubmit(form, work) {
  let busy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    form.setAttribute("aria-busy", "true");
    try {
      await work();
    } finally {
      busy = false;
      form.removeAttribute("aria-busy");
    }
  });
}

// The changes that the console makes to the page. Texts of the server are inserted as text, never as markup.

import { distance, readable, span } from "./values.js";

/** Values that are skipped as children, attributes and facts: results of conditions that are false. */
const NOTHING = [undefined, null, false, ""];

export const byId = (id) => document.getElementById(id);

/** Creates an element with attributes (functions are listeners: `onclick`) and children, without those in NOTHING. */
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

/** Replaces the children of a node; keeps the focus of a child with an id, and the scroll positions of tables. */
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
 * Creates a table. A column is `{ title, cell(row), numeric, wrap }`; the first column names the row. On a narrow screen each
 * row is a block of lines, so that nothing is cut; the roles keep it a table for screen readers.
 */
export function table({ caption, columns, rows, empty, marks }) {
  if (rows.length === 0) return el("p", { class: "empty" }, empty);
  const side = ({ numeric, wrap }) => (numeric ? "number" : wrap && "wrap");
  // One node within the cell, so that a narrow screen can put all of it next to the title.
  const lined = (column, content) =>
    el(
      "td",
      { role: "cell", class: side(column), "data-title": content.length > 0 && column.title },
      content.length > 0 && el("div", {}, content),
    );
  const head = columns.map((column) =>
    el("th", { role: "columnheader", scope: "col", class: side(column) }, column.title),
  );
  const lines = rows.map((row) => {
    const cells = columns.map((column, index) =>
      index === 0
        ? el("th", { role: "rowheader", scope: "row", class: side(column) }, column.cell(row))
        : lined(column, there([column.cell(row)])),
    );
    return el("tr", { role: "row", class: marks?.(row) }, cells);
  });
  return el(
    "div",
    {
      class: "scroll",
      id: `table-${caption.replace(/\W+/g, "-")}`,
      role: "region",
      tabindex: "0",
      "aria-label": caption,
    },
    el(
      "table",
      { role: "table" },
      el("caption", {}, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
      el("tbody", { role: "rowgroup" }, lines),
    ),
  );
}

/** Creates a list of names and values, without the names that have no value. */
export function facts(pairs) {
  const there = pairs.filter(([, value]) => !NOTHING.includes(value));
  return el(
    "dl",
    {},
    there.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

/** Creates a time, with its distance from now. */
export function when(time) {
  if (!time) return "";
  const far = distance(time, Date.now());
  return el("time", { datetime: time }, readable(time), far && el("small", {}, far));
}

/** Creates the distance of a time from now, with the time as a tooltip. */
export function ago(time) {
  if (!time) return "";
  return el("time", { datetime: time, title: readable(time) }, distance(time, Date.now()) || readable(time));
}

/** Creates the day of a time, with its distance from now, and the time as a tooltip. */
export function day(time) {
  const far = distance(time, Date.now());
  return el("time", { datetime: time, title: readable(time) }, time.split("T")[0], far && el("small", {}, far));
}

/** Returns the text of an error, with the server's message unchanged. */
export function errorText(error) {
  const { status, code, message, retryAfterMs } = error;
  const what = code ? `${status ? `${status} ` : ""}${code}: ` : "";
  const retry =
    retryAfterMs === null || retryAfterMs === undefined ? "" : `; retry after ${span(Number(retryAfterMs))}`;
  return `${what}${message}${retry}`;
}

/** Does the work and returns its result; if the work fails, shows the error in the notice and returns undefined. */
export async function attempt(notice, work) {
  try {
    const done = await work();
    notice.hidden = true;
    notice.textContent = "";
    return done;
  } catch (error) {
    showNotice(notice, errorText(error));
    return undefined;
  }
}

/** Times at which parts of the page were filled last, by the notices of their errors. */
const filled = new Map();

const clockTime = () => new Date().toLocaleTimeString("en-GB");

/**
 * Fills a part of the page, and returns whether that succeeded. If it fails, the part keeps its content, and the notice
 * says from when that is.
 */
export async function refill(notice, work) {
  let isFilled = false;
  await attempt(notice, async () => {
    try {
      await work();
      isFilled = true;
      filled.set(notice, clockTime());
    } catch (error) {
      const since = filled.get(notice);
      if (since) error.message += `; what is shown below is of ${since}`;
      throw error;
    }
  });
  return isFilled;
}

/** Forgets that the parts of the page were filled: they are empty again. */
export const emptied = () => filled.clear();

/** Shows a text in a notice. A screen reader does not repeat an unchanged text. */
export function showNotice(notice, words) {
  if (notice.textContent !== words) notice.textContent = words;
  notice.hidden = false;
}

/** Runs the work when the user submits the form, one run at a time. */
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

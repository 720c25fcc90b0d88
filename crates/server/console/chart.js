// Charts over time, drawn by uPlot (the folder uplot), each with a text for screen readers.

import { el, fill } from "./dom.js";
import { HOUR_MS, legendOf, summaryOf } from "./timeline.js";

const HEIGHT = 180;
/** Charts on the page by their box. */
const charts = new Map();
const dark = matchMedia("(prefers-color-scheme: dark)");
// A server that is gone sends nothing that would draw them again.
dark.addEventListener("change", () => {
  for (const [box, { axes, shown }] of charts) draw(box, { ...axes, ...shown });
});

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Draws lines in a box, or updates them. `names` are those of the lines, `data` the times in seconds and a column for
 * each line, `everyMs` the distance of its samples, `format` a value as text. `log` draws powers of ten in equal
 * distances. `steps` are the distances that lines of the axis may have. `offsets` are values on both sides of zero, of
 * which the axis shows at least this many. `places` are those of the lines' colours. `newest` are the times of the lines'
 * newest samples, if the lines are of several servers.
 */
export function draw(box, { log = false, steps, ...shown }) {
  const { names, data, format, offsets, places } = shown;
  const known = charts.get(box);
  const key = [...names, places].join("\n");
  describe(box, shown);
  const range = () => [Date.now() / 1_000 - HOUR_MS / 1_000, Date.now() / 1_000];
  if (known?.key === key && known.dark === dark.matches) {
    known.shown = shown;
    known.plot.setData(data);
    return;
  }
  known?.plot.destroy();
  known?.watcher.disconnect();
  const [ink, line] = [style("--soft"), style("--line")];
  // Between powers of ten, a logarithmic axis has more lines than a reader needs.
  const isPower = (value) => !log || Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
  const powers = (_, splits) => splits.map((value) => (isPower(value) ? value : null));
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const upright = {
    ...axis,
    size: 72,
    incrs: steps,
    filter: powers,
    grid: { ...axis.grid, filter: powers },
    ticks: { ...axis.ticks, filter: powers },
  };
  const series = names.map((name, index) => ({ name, place: places?.[index] ?? index })).map(({ name, place }) => ({
    label: name,
    stroke: style(`--owner-${place % 8}`),
    width: 1.5,
    dash: place >= 8 ? [6, 3] : undefined,
    points: { show: false },
  }));
  const options = {
    width: Math.max(240, box.clientWidth),
    height: HEIGHT,
    cursor: { sync: { key: "console" }, points: { size: 6 } },
    scales: {
      x: { time: true, range },
      y: { distr: log ? 3 : 1, range: log ? undefined : (_, low, high) => rangeOf(low, high, offsets) },
    },
    axes: [
      { ...axis, size: 32, values: (_, seconds) => seconds.map((at) => timeOf(at).slice(0, 5)) },
      { ...upright, values: (_, values) => values.map((value) => (value === null ? "" : format(value))) },
    ],
    legend: { show: false },
    series: [{}, ...series],
    hooks: { setCursor: [({ cursor }) => describe(box, charts.get(box)?.shown ?? shown, cursor.idx)] },
  };
  const place = el("div", { class: "plot", "aria-hidden": "true" });
  box.querySelector(".plot")?.remove();
  box.append(place);
  const plot = new globalThis.uPlot(options, data, place);
  const watcher = new ResizeObserver(() => plot.setSize({ width: Math.max(240, box.clientWidth), height: HEIGHT }));
  watcher.observe(box);
  charts.set(box, { plot, key, watcher, shown, axes: { log, steps }, dark: dark.matches });
}

/** Returns the range of an axis, with zero, with `least` on both sides, and with some room. */
function rangeOf(low, high, least = 0) {
  const [from, to] = [Math.min(-least, low ?? 0), Math.max(least, high ?? 0)];
  // Smaller values would have the same text at each line of the axis.
  if (from === to) return [0, 1];
  const room = (to - from) * 0.08;
  return [from < 0 ? from - room : 0, to + room];
}

/** Says in the text of each chart from when its values are: the server sends no newer ones. */
export function outdate() {
  for (const [box, { shown }] of charts) {
    const newest = shown.data[0].at(-1);
    if (newest === undefined) continue;
    shown.asOf = timeOf(newest);
    describe(box, shown);
  }
}

/** Removes all charts. */
export function forget() {
  for (const [box, { plot, watcher }] of charts) {
    plot.destroy();
    watcher.disconnect();
    fill(box);
  }
  charts.clear();
}

const timeOf = (seconds) => new Date(seconds * 1_000).toLocaleTimeString("en-GB");

/**
 * Writes the newest and the highest value of each line, which are also the text of the chart; while the user points at
 * a time, the values there.
 */
function describe(box, { title, names, data, everyMs, format, offsets, places, newest, asOf }, place) {
  const [times, ...lines] = data;
  const at = place === null || place === undefined ? undefined : times[place];
  const text = (values, index) => {
    if (at !== undefined)
      return values[place] === null || values[place] === undefined ? "–" : el("b", {}, format(values[place]));
    const summary = summaryOf(times, values, everyMs, newest?.[index]);
    const [value, rest] = legendOf(summary, { format, offsets, asOf });
    return [el("b", {}, value), rest];
  };
  const items = names.map((name, index) => {
    const key = el("span", { class: `key owner-${(places?.[index] ?? index) % 8}` });
    return el("li", {}, key, `${name} `, text(lines[index], index));
  });
  if (at !== undefined) items.push(el("li", {}, `at ${timeOf(at)}`));
  const summary = el(
    "ul",
    { class: "legend", "aria-label": title },
    items.length > 0 ? items : el("li", {}, "no values yet"),
  );
  const old = box.querySelector(".legend");
  if (old) old.replaceWith(summary);
  else box.append(summary);
}

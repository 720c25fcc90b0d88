// A server's last hour: rates, errors, latency and runways; and the clocks of all servers.

import * as api from "./api.js";
import * as chart from "./chart.js";
import { byId, el, emptied, fill, refill } from "./dom.js";
import * as members from "./members.js";
import { RATE_STEPS, rates, scaled, withGaps } from "./timeline.js";
import { pace, span } from "./values.js";

export const everyMs = 5_000;

/** Value of the choice of the responding server; no member has this ID. */
const OWN = "own";
/** Offset of clocks that the axis shows at least: exact clocks need no line for each microsecond. */
const OFFSET_SHOWN_MS = 5;
const select = byId("time-server");
const CHARTS = ["time-protocols", "time-sources", "time-errors", "time-latency", "time-runway", "time-clocks"].map(
  byId,
);

export function begin() {
  select.addEventListener("change", () => {
    chart.forget();
    emptied();
    load();
  });
}

export function forget() {
  chart.forget();
  fill(select, el("option", { value: OWN }, "this server"));
}

export async function load() {
  const servers = await serversOf();
  const wanted = select.value;
  // The user has chosen another server meanwhile, whose charts these are not.
  const isLate = () => select.value !== wanted;
  const isFilled = await refill(byId("time-notice"), async () => {
    const history = await historyOf(wanted);
    if (isLate()) return;
    drawAll(history);
    const named = servers.find(({ member }) => member === wanted) ?? servers.find(({ own }) => own);
    await clocks(servers, named, history);
  });
  if (!isFilled) chart.outdate();
  return isFilled;
}

/** Returns the live servers, and offers them. A caller that may not list them sees the responding one. */
async function serversOf() {
  let servers = [];
  try {
    ({ servers } = await api.servers());
    members.learn(servers);
  } catch {
    // The chosen server's own history shows the error, if it has one.
  }
  const live = servers.filter(({ own, live: isLive, http }) => own || (isLive && http));
  const before = select.value;
  const options = live.map((server) => el("option", { value: server.own ? OWN : server.member }, labelOf(server)));
  fill(select, options.length > 0 ? options : el("option", { value: OWN }, "this server"));
  select.value = live.some(({ own, member }) => !own && member === before) ? before : OWN;
  return live;
}

const historyOf = (value) => api.history(value === OWN ? undefined : value);

const labelOf = ({ owner, http, member, own }) =>
  `${owner ?? member?.slice(0, 8) ?? ""} ${http?.replace(/^https?:../, "") ?? ""}${own ? " (this server)" : ""}`.trim();

const seconds = (value) => (value < 0 ? `−${span(-value * 1_000)}` : span(value * 1_000));
const millis = (value) => (value < 1 ? `${Math.round(value * 1_000)} µs` : span(value));

/** Returns an offset with its sign; none has no sign. */
function offset(value) {
  const far = Math.abs(value);
  const words = far < 1_000 ? `${Math.round(far)} ms` : span(far);
  return far < 0.5 ? words : `${value < 0 ? "−" : "+"}${words}`;
}

function drawAll(history) {
  const { times_ms: times, spans_ms: spans, every_ms: every } = history;
  const lines = (columns) => withGaps(times, columns, every);
  const perSecond = (table) => lines(Object.values(table).map((counts) => rates(counts, spans)));
  const used = (table) =>
    Object.fromEntries(Object.entries(table).filter(([, counts]) => counts.some((count) => count > 0)));
  const [protocols, sources, errors] = [used(history.ids), history.sources, used(history.errors)];
  const [byProtocol, bySource, byError, latency, runway] = CHARTS;
  const draw = (box, shown) => chart.draw(box, { everyMs: every, ...shown });
  draw(byProtocol, {
    title: "IDs a second by protocol",
    names: Object.keys(protocols),
    data: perSecond(protocols),
    format: pace,
    steps: RATE_STEPS,
  });
  draw(bySource, {
    title: "IDs a second by source",
    names: Object.keys(sources),
    data: perSecond(sources),
    format: pace,
    steps: RATE_STEPS,
  });
  draw(byError, {
    title: "Errors a second by protocol",
    names: Object.keys(errors),
    data: perSecond(errors),
    format: pace,
    steps: RATE_STEPS,
  });
  draw(latency, {
    title: "Time to the response",
    names: ["half of the requests", "99 of 100"],
    data: lines([scaled(history.request_p50_us, 1_000), scaled(history.request_p99_us, 1_000)]),
    format: millis,
    log: true,
  });
  draw(runway, {
    title: "Runway",
    names: ["windows", "prefetched numbers"],
    data: lines([scaled(history.window_runway_ms, 1_000), scaled(history.prefetch_runway_ms, 1_000)]),
    format: seconds,
  });
}

/** Draws the clock of each server. A server that does not respond has no line. */
async function clocks(servers, shown, shownHistory) {
  const one = async (server) => (server === shown ? shownHistory : historyOf(server.own ? OWN : server.member));
  const all = await Promise.allSettled(servers.map(one));
  const lines = all.flatMap(({ value }, place) => {
    if (!value?.clock_ahead_ms.some((ahead) => ahead !== null)) return [];
    const data = withGaps(value.times_ms, [value.clock_ahead_ms], value.every_ms);
    const of = { every: value.every_ms, newest: data[0].at(-1) };
    return [{ name: labelOf(servers[place]), place: members.placeOf(servers[place].member) ?? place, data, ...of }];
  });
  const data = lines.length > 0 ? globalThis.uPlot.join(lines.map((line) => line.data)) : [[]];
  chart.draw(CHARTS[5], {
    title: "Clock ahead of its reference",
    names: lines.map(({ name }) => name),
    data,
    everyMs: Math.max(0, ...lines.map(({ every }) => every)),
    // Each server's clock gives its own samples their times, so none is old because another clock is ahead.
    newest: lines.map(({ newest }) => newest),
    format: offset,
    offsets: OFFSET_SHOWN_MS,
    places: lines.map(({ place }) => place),
  });
  byId("time-clocks-empty").hidden = lines.length > 0;
}

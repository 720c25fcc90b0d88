// The server that answers: whether it can mint, what it is, and what it mints.

import * as api from "./api.js";
import { attempt, byId, el, facts, fill, table, when } from "./dom.js";
import { risesBy, samplesOf, single, sums } from "./metrics.js";
import * as token from "./token.js";
import { grouped, pace, span } from "./values.js";

export const everyMs = 10_000;

/** What was seen last. */
let about;
let ready;
let refusal;
let counted = { issued: new Map() };

/** The line above all parts, which says more with a token than without. */
export async function standing() {
  const line = byId("standing");
  const [readiness, server] = await Promise.allSettled([api.readiness(), api.server()]);
  ready = readiness.value;
  about = server.value;
  refusal = server.reason;
  token.known(about, refusal);
  const state = ready === undefined ? "unknown" : ready.ready ? "yes" : "no";
  const words = { unknown: "does not answer", yes: "ready", no: "not ready" }[state];
  const rest = [about?.namespace && `namespace ${about.namespace}`, about?.version].filter(Boolean);
  const text = [words, ...rest].join(" · ");
  // Read out when it changes, and not each time that somebody looks.
  if (line.textContent !== text) line.textContent = text;
  line.className = `ready-${state}`;
}

/** After `standing`, which has asked already. */
export async function load() {
  await attempt(byId("server-notice"), async () => {
    fill(byId("server-facts"), facts([...readinessFacts(), ...serverFacts()]));
    if (refusal) throw refusal;
  });
  // Whoever is nobody here would be told so a second time.
  byId("server-measured").hidden = refusal?.status === 401;
  if (refusal?.status === 401) return;
  await attempt(byId("metrics-notice"), async () => {
    const samples = samplesOf(await api.metrics());
    fill(byId("server-minted"), minted(samples), pools(samples));
    fill(byId("server-process"), facts(processFacts(samples)));
  });
}

function readinessFacts() {
  if (ready === undefined) return [["Ready", "does not answer"]];
  const { reasons, codes, without_store_until: until } = ready;
  // Without a right only the codes are told.
  const told = reasons.length > 0 ? reasons : codes;
  const why = told.length > 0 && el("ul", {}, told.map((reason) => el("li", {}, reason)));
  return [
    ["Ready", ready.ready ? "yes: it can mint, with margin" : ["no", why]],
    ["Without its store", until && ["in what is left of its window, at most until ", when(until)]],
  ];
}

function serverFacts() {
  if (about === undefined) return [];
  const { store, token: shown } = about;
  const yes = (is) => (is ? "yes" : "no");
  const clock = { store: "its own", caller: "that of whoever asks it" }[store.clock];
  const presence = { record: "a record that is renewed", session: "a session" }[store.presence];
  const list = (texts) => texts.length > 0 && el("ul", {}, texts.map((text) => el("li", {}, text)));
  return [
    ["Namespace", about.namespace],
    ["Version", about.version],
    ["Owner", about.owner],
    ["Host", about.host],
    ["Member", about.member ? el("code", {}, about.member) : "of no store now: it has not joined, or joins anew"],
    ["Store’s clock", clock],
    ["Durable when it answers", yes(store.durable_on_reply)],
    ["Safe over a failover", yes(store.safe_over_failover)],
    ["Members are seen by", presence],
    ["It must do without", list(store.cautions) || undefined],
    ["Tokens", about.asks_for_tokens ? "asked for" : "not asked for: whoever reaches it may do everything"],
    ["Your token", shown && (shown.certificate ? `${shown.name}, by your certificate ${shown.certificate}` : shown.name)],
    ["Its grants", shown && (list(shown.grants) || "none")],
    ["Its rates", shown && (list(shown.rates) || "no limit")],
  ];
}

/** What this server has minted of each source since it was started, and how long it can go on. */
function minted(samples) {
  const issued = sums(samples, "snowmint_ids_total", "source");
  const atMs = performance.now();
  const before = counted;
  counted = { issued, atMs };
  const by = (name) => sums(samples, name, "source");
  const [runway, lead, stock, lasts, lost] = [
    "snowmint_window_runway_seconds",
    "snowmint_lead_seconds",
    "snowmint_segment_stock",
    "snowmint_segment_runway_seconds",
    "snowmint_segment_lost_total",
  ].map(by);
  const seconds = (value) => (value === undefined ? "" : span(value * 1_000));
  const number = (value) => (value === undefined ? "" : grouped(value));
  const rate = (name) => risesBy(before.issued.get(name), issued.get(name), atMs - before.atMs);
  const columns = [
    { title: "Source", cell: (name) => el("a", { href: `#sources/${name}`, id: `minted-${name}` }, name) },
    { title: "IDs", numeric: true, cell: (name) => number(issued.get(name)) },
    { title: "a second", numeric: true, cell: (name) => (rate(name) === undefined ? "" : pace(rate(name))) },
    { title: "Window", numeric: true, cell: (name) => seconds(runway.get(name)) },
    { title: "Leads by", numeric: true, cell: (name) => (lead.get(name) ? seconds(lead.get(name)) : "") },
    { title: "In stock", numeric: true, cell: (name) => number(stock.get(name)) },
    { title: "Lasts", numeric: true, cell: (name) => seconds(lasts.get(name)) },
    { title: "Lost", numeric: true, cell: (name) => number(lost.get(name)) },
  ];
  return table({
    caption: "Minted here since the start, by source",
    columns,
    rows: [...issued.keys()].sort(),
    empty: "Nothing was asked for since the start.",
  });
}

function pools(samples) {
  const all = sums(samples, "snowmint_pool_workers", "pool");
  const left = sums(samples, "snowmint_pool_workers_left", "pool");
  const columns = [
    { title: "Pool", cell: (name) => name },
    { title: "Numbers", numeric: true, cell: (name) => grouped(all.get(name)) },
    { title: "Can be taken", numeric: true, cell: (name) => grouped(left.get(name) ?? "") },
  ];
  return table({
    caption: "Worker numbers",
    columns,
    rows: [...all.keys()].sort(),
    empty: "No source needs worker numbers.",
  });
}

function processFacts(samples) {
  const value = (name) => single(samples, name);
  const sum = (name) => [...sums(samples, name, "protocol").values()].reduce((a, b) => a + b, 0);
  const steps = [...sums(samples, "snowmint_clock_steps_total", "direction").values()];
  const offset = value("snowmint_clock_offset_seconds");
  const presence = value("snowmint_member_presence_seconds");
  const started = value("process_start_time_seconds");
  const memory = value("process_resident_memory_bytes");
  return [
    ["Started", started && when(new Date(started * 1_000).toISOString())],
    ["Memory", memory && `${grouped(Math.round(memory / 1_048_576))} MiB`],
    ["Connections", grouped(sum("snowmint_connections"))],
    ["Requests refused", grouped(sum("snowmint_refusals_total"))],
    ["Clock ahead of the store’s by", offset !== undefined && (offset < 0 ? `−${span(-offset * 1_000)}` : span(offset * 1_000))],
    ["Steps of the clock", grouped(steps.reduce((a, b) => a + b, 0))],
    ["Rights lost", grouped(value("snowmint_rights_lost_total") ?? 0)],
    ["Counts as there for", presence !== undefined && span(presence * 1_000)],
  ];
}

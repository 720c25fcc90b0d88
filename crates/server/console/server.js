// The responding server: its readiness, its settings, and its minting.

import * as api from "./api.js";
import { attempt, byId, el, facts, fill, refill, table, when } from "./dom.js";
import { administers } from "./grants.js";
import { risesBy, samplesOf, single, sums } from "./metrics.js";
import * as token from "./token.js";
import { grouped, pace, span } from "./values.js";

export const everyMs = 10_000;

/** Time between two counts from which on their rate is no longer that of now. */
const RATE_MAX_MS = 3 * everyMs;

/** The responses of the last refresh. */
let about;
let ready;
let loadError;
let counted = { issued: new Map() };

/**
 * Refreshes the status line above all parts; it has namespace and version if the server accepts the caller. Returns
 * whether it does.
 */
export async function loadStatus() {
  const line = byId("standing");
  const [readiness, server] = await Promise.allSettled([api.readiness(), api.server()]);
  ready = readiness.value;
  about = server.value;
  loadError = server.reason;
  token.known(about, loadError);
  const state = ready === undefined ? "unknown" : ready.ready ? "yes" : "no";
  const words = { unknown: "readiness unknown", yes: "ready", no: "not ready" }[state];
  const rest = [about?.namespace && `namespace ${about.namespace}`, about?.version].filter(Boolean);
  const text = [words, ...rest].join(" · ");
  // A screen reader reads each assignment aloud, also of the same text.
  if (line.textContent !== text) line.textContent = text;
  line.className = `ready-${state}`;
  return loadError?.status !== 401;
}

/** Returns whether the server responded at the last refresh. */
export const responds = () => ready !== undefined;

/** Returns whether the caller may see all servers; true where the server names no rights. */
export const mayAdminister = () => !about?.token || administers(about.token.grants, about.namespace);

/** Shows the responses that `loadStatus` has fetched, and the metrics; returns whether all is there. */
export async function load() {
  await attempt(byId("server-notice"), async () => {
    fill(byId("server-facts"), facts([...readinessFacts(), ...serverFacts()]));
    if (loadError) throw loadError;
  });
  // An anonymous caller would see the same error twice.
  byId("server-measured").hidden = loadError?.status === 401;
  if (loadError?.status === 401) return false;
  const isFilled = await refill(byId("metrics-notice"), async () => {
    const samples = samplesOf(await api.metrics());
    fill(byId("server-minted"), minted(samples), pools(samples));
    fill(byId("server-process"), facts(processFacts(samples)));
  });
  return isFilled && !loadError;
}

function readinessFacts() {
  if (ready === undefined) return [["Ready", "unknown"]];
  const { reasons, codes, not_minting: notMinting = [], without_store_until: until } = ready;
  // The server sends reasons only to callers with some right, and codes to all.
  const texts = reasons.length > 0 ? reasons : codes;
  const list =
    texts.length > 0 &&
    el(
      "ul",
      {},
      texts.map((reason) => el("li", {}, reason)),
    );
  return [
    ["Ready", ready.ready ? "yes: can mint, with margin" : ["no", list]],
    [
      "Other sources that cannot mint here",
      notMinting.length > 0 &&
        el(
          "ul",
          {},
          notMinting.map((text) => el("li", {}, text)),
        ),
    ],
    ["Minting offline", until && ["in the rest of the journal’s window, at most until ", when(until)]],
  ];
}

function serverFacts() {
  if (about === undefined) return [];
  const { store, token: shown } = about;
  const yes = (is) => (is ? "yes" : "no");
  const clock = { store: "its own", caller: "each caller’s" }[store.clock];
  const presence = { record: "renewed record", session: "session" }[store.presence];
  const list = (texts) =>
    texts.length > 0 &&
    el(
      "ul",
      {},
      texts.map((text) => el("li", {}, text)),
    );
  return [
    ["Namespace", about.namespace],
    ["Version", about.version],
    ["Owner", about.owner],
    ["Host", about.host],
    ["Member", about.member ? el("code", {}, about.member) : "none: the server has not joined yet, or rejoins"],
    ["Store clock", clock],
    ["Survives power loss", yes(store.durable_on_reply)],
    ["Survives failover", yes(store.safe_over_failover)],
    ["Presence by", presence],
    ["Warnings", list(store.warnings) || undefined],
    [
      "Tokens",
      about.tokens_required ? "required" : "not required: every client that reaches the server may do everything",
    ],
    [
      "Your token",
      shown && (shown.certificate ? `${shown.name}, from your certificate ${shown.certificate}` : shown.name),
    ],
    ["Token grants", shown && (list(shown.grants) || "none")],
    ["Token rate limits", shown && (list(shown.rates) || "no limit")],
  ];
}

/** Creates the table of sources: IDs minted here since the start, and the runways. */
function minted(samples) {
  const issued = sums(samples, "snowmint_ids_total", "source");
  const atMs = performance.now();
  const before = counted;
  counted = { issued, atMs };
  const by = (name) => sums(samples, name, "source");
  const [runway, lead, prefetched, lasts, lost] = [
    "snowmint_window_runway_seconds",
    "snowmint_lead_seconds",
    "snowmint_segment_prefetched",
    "snowmint_segment_runway_seconds",
    "snowmint_segment_lost_total",
  ].map(by);
  const seconds = (value) => (value === undefined ? "" : span(value * 1_000));
  const number = (value) => (value === undefined ? "" : grouped(value));
  const rate = (name) => risesBy(before.issued.get(name), issued.get(name), atMs - before.atMs, RATE_MAX_MS);
  const columns = [
    { title: "Source", cell: (name) => el("a", { href: `#sources/${name}`, id: `minted-${name}` }, name) },
    { title: "IDs", numeric: true, cell: (name) => number(issued.get(name)) },
    { title: "IDs/s", numeric: true, cell: (name) => (rate(name) === undefined ? "" : pace(rate(name))) },
    { title: "Window runway", numeric: true, cell: (name) => seconds(runway.get(name)) },
    { title: "Clock lead", numeric: true, cell: (name) => (lead.get(name) ? seconds(lead.get(name)) : "") },
    { title: "Prefetched", numeric: true, cell: (name) => number(prefetched.get(name)) },
    { title: "Prefetch runway", numeric: true, cell: (name) => seconds(lasts.get(name)) },
    { title: "Lost numbers", numeric: true, cell: (name) => number(lost.get(name)) },
  ];
  return table({
    caption: "Minted since start",
    columns,
    rows: [...issued.keys()].sort(),
    empty: "This server has minted nothing since its start.",
  });
}

function pools(samples) {
  const all = sums(samples, "snowmint_pool_workers", "pool");
  const left = sums(samples, "snowmint_pool_workers_left", "pool");
  const columns = [
    { title: "Pool", cell: (name) => name },
    { title: "Worker numbers", numeric: true, cell: (name) => grouped(all.get(name)) },
    { title: "Claimable", numeric: true, cell: (name) => grouped(left.get(name) ?? "") },
  ];
  return table({
    caption: "Worker pools",
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
    ["Request errors", grouped(sum("snowmint_request_errors_total"))],
    ["Clock ahead by", offset !== undefined && (offset < 0 ? `−${span(-offset * 1_000)}` : span(offset * 1_000))],
    ["Clock steps", grouped(steps.reduce((a, b) => a + b, 0))],
    ["Rejoins", grouped(value("snowmint_rejoins_total") ?? 0)],
    ["Presence expires in", presence !== undefined && span(presence * 1_000)],
  ];
}

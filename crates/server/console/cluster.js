// All servers of the namespace on one page: their readiness, their clocks and what each holds; a recovery; the pools of
// worker numbers; and the owners of the counter sections.

import * as api from "./api.js";
import { ago, attempt, byId, el, fill, table } from "./dom.js";
import { samplesOf, sums } from "./metrics.js";
import * as pools from "./pools.js";
import { COLOURS, ring } from "./ring.js";
import { heldBy, poolsOf } from "./slots.js";
import { grouped, span } from "./values.js";

export const everyMs = 3_000;

/** Members that left longer ago are only counted. */
const GONE_SHOWN_MS = 10 * 60_000;

let servers = { servers: [] };
/** The place of each member, which decides its colour; a member keeps it while the page is open. */
const places = new Map();

export async function load() {
  const [list, workers, metrics] = await Promise.allSettled([api.servers(), api.workers(), api.metrics()]);
  await attempt(byId("cluster-notice"), async () => {
    if (list.reason) throw list.reason;
    servers = list.value;
    for (const { member, http, own } of servers.servers)
      if ((http || own) && !places.has(member)) places.set(member, places.size);
    const rows = workers.value?.workers ?? [];
    fill(
      byId("cluster-servers"),
      summary(),
      members(rows),
      servers.store_error && el("p", { class: "notice" }, `The store did not list its members: ${servers.store_error}`),
    );
  });
  await attempt(byId("pools-notice"), async () => {
    if (workers.reason) throw workers.reason;
    const sizes = metrics.value ? sums(samplesOf(metrics.value), "snowmint_pool_workers", "pool") : new Map();
    pools.show(byId("cluster-pools"), poolsOf(workers.value.workers, sizes, Date.now()));
  });
  const { sections = [] } = servers;
  byId("cluster-sections-box").hidden = sections.length === 0;
  fill(
    byId("cluster-sections"),
    sections.length > 0 && ring(sections, nameOf, (member) => places.get(member) ?? COLOURS - 1),
  );
  await recovery();
}

export function forget() {
  servers = { servers: [] };
  places.clear();
  pools.forget();
}

const labelOf = ({ owner, host, http, member }) => owner || host || http || member?.slice(0, 8) || "this server";

/** Returns the name of a member, with its process where several have one label. */
function nameOf(id) {
  // The responding server has no ID while it has not joined.
  const found = servers.servers.find(({ member }) => member === id);
  if (!found) return id?.slice(0, 8) ?? "";
  const same = servers.servers.filter((other) => labelOf(other) === labelOf(found));
  return same.length > 1 ? `${labelOf(found)} (process ${found.process ?? "?"})` : labelOf(found);
}

/** Returns the state of a member: a word and a class. */
function stateOf({ live, http, own, report, error }) {
  if (report) return report.ready ? ["ready", "yes"] : ["not ready", "no"];
  if (error) return ["no response", "no"];
  if (!live) return ["gone", "gone"];
  return http || own ? ["no report", "no"] : ["live", "yes"];
}

/** Counts the servers; one that ended without leaving stays in the count until its row goes. */
function summary() {
  const rows = servers.servers.filter((row) => (row.http || row.own) && !isOld(row));
  const all = rows.filter(({ live, own }) => live || own);
  const ready = all.filter(({ report }) => report?.ready).length;
  const gone = rows.length - all.length;
  const rest = all.length - ready;
  const several =
    rest === 0 && gone === 0
      ? `All ${grouped(all.length)} servers are ready`
      : `${grouped(ready)} of ${grouped(all.length)} servers are ready`;
  const one = `The only server is ${rest === 0 ? "ready" : "not ready"}`;
  const words = `${rows.length === 1 ? one : several}${gone > 0 ? `, ${grouped(gone)} gone` : ""}.`;
  const isWell = rest === 0 && gone === 0;
  return el("p", { class: isWell ? "done" : "notice", role: "status", id: "cluster-summary" }, words);
}

/** Returns whether a member left so long ago that it is only counted below the table. */
const isOld = ({ live, own, last_renewed: renewed }) =>
  !live && !own && Date.now() - Date.parse(renewed) > GONE_SHOWN_MS;

function members(workers) {
  const rows = servers.servers.filter((server) => !isOld(server));
  const old = servers.servers.length - rows.length;
  const columns = [
    {
      title: "Server",
      cell: (row) => [
        el("span", { class: `key owner-${(places.get(row.member) ?? 0) % COLOURS}` }),
        nameOf(row.member),
        row.own && el("em", { class: "tag" }, "this server"),
        el("small", {}, row.http ?? (row.own ? "address not announced" : "mints itself, serves no requests")),
        row.resp && el("small", {}, `RESP ${row.resp}`),
      ],
    },
    {
      title: "State",
      wrap: true,
      cell: (row) => {
        const [word, kind] = stateOf(row);
        return [
          el("span", { class: `pill ${kind}` }, word),
          el("small", {}, row.error ?? row.report?.codes?.join(", ") ?? ""),
        ];
      },
    },
    {
      title: "Holds",
      cell: (row) =>
        heldBy(row, workers).map(({ pool, numbers }) =>
          el(
            "span",
            { class: "holds" },
            `${pool}: ${numbers.slice(0, 12).map(grouped).join(", ")}${numbers.length > 12 ? ` and ${numbers.length - 12} more` : ""}`,
          ),
        ),
    },
    { title: "Clock", cell: ({ report }) => (report ? clockOf(report) : "") },
    { title: "Sections", numeric: true, cell: ({ report }) => (report ? grouped(report.sections) : "") },
    { title: "IDs issued", numeric: true, cell: ({ report }) => (report ? grouped(report.issued) : "") },
    {
      title: "Renewed",
      cell: ({ last_renewed: renewed, joined, report }) => [
        renewed
          ? ago(renewed)
          : report && (report.presence_ms > 0 ? `present for ${span(report.presence_ms)}` : "not present"),
        joined && el("small", {}, "joined ", ago(joined)),
      ],
    },
    { title: "Version", cell: ({ report }) => report?.version ?? "" },
  ];
  return [
    table({
      caption: "Members of the namespace",
      columns,
      rows,
      empty: "The store lists no members.",
      marks: ({ own }) => own && "open",
    }),
    old > 0 && el("p", { class: "empty" }, `Not shown: ${grouped(old)} members that left more than 10 minutes ago.`),
  ];
}

function clockOf({ clock_ahead_ms: ahead }) {
  if (ahead === undefined) return el("span", { class: "hint" }, "no reference");
  const words = ahead === 0 ? "exact" : ahead > 0 ? `${span(ahead)} ahead` : `${span(-ahead)} behind`;
  return el("span", { class: Math.abs(ahead) >= 1_000 && "doubt" }, words);
}

/** Shows who has reported to a store in doubt. Asks only while some server is not ready. */
async function recovery() {
  const box = byId("cluster-recovery");
  const isCalm = servers.servers.every(({ live, http, own, report }) => (own || (http && live) ? report?.ready : true));
  if (isCalm) {
    box.hidden = true;
    return;
  }
  let known;
  try {
    known = await api.recovery();
  } catch {
    // The store does not respond: the servers' own reasons say so.
  }
  box.hidden = !known?.doubt;
  if (box.hidden) return;
  const { doubt, journals, unsaid } = known;
  const isMissing = ({ state }) => state.startsWith("MISSING");
  const reported = journals.filter((journal) => !isMissing(journal)).length;
  const columns = [
    { title: "Journal of", cell: ({ owner, host }) => [owner || "unnamed", el("small", {}, host)] },
    {
      title: "State",
      cell: (journal) =>
        el("span", { class: `pill ${isMissing(journal) ? "no" : "yes"}` }, journal.state.toLowerCase()),
    },
    { title: "Last seen", cell: ({ last_seen: seen }) => ago(seen) },
    { title: "Journal ID", cell: ({ id }) => el("code", {}, id) },
  ];
  fill(
    byId("cluster-recovery-body"),
    el("p", { class: "notice" }, `The store is in doubt: ${doubt}`),
    el(
      "p",
      {},
      el("progress", {
        max: String(journals.length || 1),
        value: String(reported),
        "aria-label": "Journals that have reported",
      }),
      ` ${grouped(reported)} of ${grouped(journals.length)} journals have reported.`,
    ),
    table({ caption: "Journals", columns, rows: journals, empty: "No journal is known." }),
    el(
      "p",
      { class: "hint" },
      unsaid ?? "All journals have reported: snowmint worker recover moves the store past everything that they know.",
    ),
  );
}

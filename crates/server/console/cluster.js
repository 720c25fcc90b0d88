// All servers of the namespace on one page: their readiness, their clocks and what each holds; a recovery; the pools of
// worker numbers; and the owners of the counter sections.

import * as api from "./api.js";
import { ago, byId, el, fill, refill, showNotice, table } from "./dom.js";
import * as members from "./members.js";
import { samplesOf, sums } from "./metrics.js";
import * as pools from "./pools.js";
import { COLOURS, ring } from "./ring.js";
import { heldBy, heldText, poolsOf } from "./slots.js";
import { grouped, span } from "./values.js";

export const everyMs = 3_000;

let servers = { servers: [] };

const nameOf = (id) => members.nameOf(id, servers.servers);

/** Shows all servers; returns whether all is there. */
export async function load() {
  const [list, workers, metrics] = await Promise.allSettled([api.servers(), api.workers(), api.metrics()]);
  // Each of the calls would show the same reason.
  const isDenied = list.reason?.status === 403;
  for (const part of document.querySelectorAll("#cluster > :not(h2, #cluster-notice)"))
    part.classList.toggle("denied", isDenied);
  if (isDenied) {
    forget();
    showNotice(byId("cluster-notice"), 'This page needs a token with "admin *".');
    return true;
  }
  const isListed = await refill(byId("cluster-notice"), async () => {
    if (list.reason) {
      // A sentence on how all servers are cannot stay: the page does not know it any more.
      document.querySelector("#cluster-summary")?.remove();
      throw list.reason;
    }
    servers = list.value;
    members.learn(servers.servers);
    fill(
      byId("cluster-servers"),
      summary(),
      rowsOf(workers.value?.workers),
      servers.store_error && el("p", { class: "notice" }, `The store did not list its members: ${servers.store_error}`),
    );
  });
  const isMapped = await refill(byId("pools-notice"), async () => {
    if (workers.reason) throw workers.reason;
    const sizes = metrics.value ? sums(samplesOf(metrics.value), "snowmint_pool_workers", "pool") : new Map();
    pools.show(byId("cluster-pools"), poolsOf(workers.value.workers, sizes, Date.now()));
  });
  const { sections = [] } = servers;
  byId("cluster-sections-box").hidden = sections.length === 0;
  fill(
    byId("cluster-sections"),
    sections.length > 0 && ring(sections, nameOf, (member) => members.placeOf(member) ?? COLOURS - 1),
  );
  await recovery();
  return isListed && isMapped;
}

export function forget() {
  servers = { servers: [] };
  members.forget();
  pools.forget();
}

function summary() {
  const { words, isWell } = members.summaryOf(servers.servers, Date.now());
  return el("p", { class: isWell ? "done" : "notice", role: "status", id: "cluster-summary" }, words);
}

function rowsOf(workers) {
  const rows = servers.servers.filter((server) => !members.isOld(server, Date.now()));
  const old = servers.servers.length - rows.length;
  const columns = [
    {
      title: "Server",
      cell: (row) => [
        el("span", { class: `key owner-${(members.placeOf(row.member) ?? 0) % COLOURS}` }),
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
        const [word, kind] = members.stateOf(row);
        return [
          el("span", { class: `pill ${kind}` }, word),
          el("small", {}, row.error ?? row.report?.codes?.join(", ") ?? ""),
        ];
      },
    },
    {
      title: "Holds",
      cell: (row) =>
        workers ? heldBy(row, workers).map(holding) : "unknown",
    },
    { title: "Clock", cell: ({ report }) => (report ? clockOf(report) : "") },
    { title: "Sections in use", numeric: true, cell: ({ report }) => (report ? grouped(report.sections) : "") },
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
    old > 0 && el("p", { class: "empty" }, members.leftText(old)),
  ];
}

/** Creates the line about a pool, which breaks before the pool's name, not within it. */
const holding = ({ pool, numbers }) =>
  el("span", { class: "holds" }, heldText(numbers), " of ", el("span", {}, pool));

function clockOf({ clock_ahead_ms: ahead }) {
  if (ahead === undefined) return el("span", { class: "hint" }, "no reference");
  return el("span", { class: members.isDoubted(ahead) && "doubt" }, members.clockText(ahead));
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
      ` Journals that have reported: ${grouped(reported)} of ${grouped(journals.length)}.`,
    ),
    table({ caption: "Journals", columns, rows: journals, empty: "No journal is known." }),
    el(
      "p",
      { class: "hint" },
      unsaid ?? "All journals have reported: snowmint worker recover moves the store past everything that they know.",
    ),
  );
}

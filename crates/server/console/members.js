// Members of the namespace as users see them: name, colour, state and clock; independent of the page.

import { counted, grouped, span } from "./values.js";

/** Members that left longer ago are only counted. */
const GONE_SHOWN_MS = 10 * 60_000;
/** Offset of a clock from which on an alert of Prometheus would fire. */
const CLOCK_DOUBT_MS = 1_000;
/** Members that a sentence names. */
const NAMED_MAX = 3;

/** The place of each member, which decides its colour; a member keeps it while the page is open. */
const places = new Map();

/** Gives each server a place. Every part of the page that draws members calls this first. */
export function learn(servers) {
  for (const { member, http, own } of servers)
    if ((http || own) && !places.has(member)) places.set(member, places.size);
}

export const placeOf = (member) => places.get(member);

export const forget = () => places.clear();

const labelOf = ({ owner, host, http, member }) => owner || host || http || member?.slice(0, 8) || "this server";

/** Returns the name of a member, with its process where several have one label. */
export function nameOf(id, servers) {
  // The responding server has no ID while it has not joined.
  const found = servers.find(({ member }) => member === id);
  if (!found) return id?.slice(0, 8) ?? "";
  const same = servers.filter((other) => labelOf(other) === labelOf(found));
  return same.length > 1 ? `${labelOf(found)} (process ${found.process ?? "?"})` : labelOf(found);
}

/** Returns the state of a member: a word and a class. */
export function stateOf({ live, http, own, report, error }) {
  if (report) return report.ready ? ["ready", "yes"] : ["not ready", "no"];
  if (error) return ["no response", "no"];
  if (!live) return ["gone", "gone"];
  return http || own ? ["no report", "no"] : ["live", "yes"];
}

/** Returns whether a member left so long ago that it is only counted below the table. */
export const isOld = ({ live, own, last_renewed: renewed }, nowMs) =>
  !live && !own && nowMs - Date.parse(renewed) > GONE_SHOWN_MS;

/** Returns the sentence on members that are only counted. */
export const leftText = (count) =>
  `Not shown: ${grouped(count)} ${count === 1 ? "member" : "members"} that left more than 10 minutes ago.`;

export const isDoubted = (aheadMs) => Math.abs(aheadMs ?? 0) >= CLOCK_DOUBT_MS;

/** Returns the offset of a clock in words. */
export const clockText = (aheadMs) =>
  aheadMs === 0 ? "exact" : aheadMs > 0 ? `${span(aheadMs)} ahead` : `${span(-aheadMs)} behind`;

const VERBS = { "not ready": "is not ready", "no response": "does not respond", "no report": "has no report" };

/**
 * Returns a sentence on the servers, and whether all is well. It names those that need a look: not ready, gone, or with
 * a clock that the table marks. A server that ended without leaving stays in the count until its row goes.
 */
export function summaryOf(servers, nowMs) {
  const rows = servers.filter((row) => (row.http || row.own) && !isOld(row, nowMs));
  const all = rows.filter(({ live, own }) => live || own);
  const ready = all.filter(({ report }) => report?.ready);
  const isReady = ready.length === all.length;
  const name = ({ member }) => nameOf(member, servers);
  const faults = [
    ...all.filter((row) => !ready.includes(row)).map((row) => `${name(row)} ${VERBS[stateOf(row)[0]]}`),
    ...rows
      .filter((row) => !all.includes(row))
      .map((row) => `${name(row)} has been gone for ${span(Math.max(0, nowMs - Date.parse(row.last_renewed)))}`),
    ...all
      .filter(({ report }) => isDoubted(report?.clock_ahead_ms))
      .map((row) => `the clock of ${name(row)} is ${clockText(row.report.clock_ahead_ms)}`),
  ];
  const several =
    isReady && rows.length === all.length
      ? `All ${counted(all.length, "server")} are ready`
      : `${grouped(ready.length)} of ${counted(all.length, "server")} ${ready.length === 1 ? "is" : "are"} ready`;
  const shown = faults.length > NAMED_MAX + 1 ? faults.slice(0, NAMED_MAX) : faults;
  const rest = faults.length - shown.length;
  const parts = [
    rows.length === 1 ? `The only server is ${isReady ? "ready" : "not ready"}` : several,
    // The sentence begins with the state of an only server.
    ...(rows.length === 1 && !isReady ? shown.slice(1) : shown),
    ...(rest > 0 ? [`${grouped(rest)} more need a look`] : []),
  ];
  return { words: `${parts.join("; ")}.`, isWell: faults.length === 0 };
}

// The visible part of the page, and its refreshes. The page refreshes by itself only while a user is probably watching,
// so that an open console does not prevent a server from being idle.

import * as cluster from "./cluster.js";
import { dismiss } from "./confirm.js";
import * as counters from "./counters.js";
import * as decode from "./decode.js";
import * as define from "./define.js";
import { byId, emptied } from "./dom.js";
import * as layouts from "./layouts.js";
import * as mint from "./mint.js";
import * as server from "./server.js";
import * as source from "./source.js";
import * as sources from "./sources.js";
import * as time from "./time.js";
import * as token from "./token.js";
import * as workers from "./workers.js";

/** Time without interaction after which the page stops refreshing. */
const PAUSE_AFTER_MS = 5 * 60_000;

/** Refresh period of the status line while a part without a period of its own is visible. */
const STATUS_EVERY_MS = 20_000;

const PARTS = { cluster, time, server, sources, workers, mint, decode, layouts };

let part = "cluster";
let about = "";
let turn = 0;
let timer;
/** Time at which each part was complete last. */
const seen = new Map();
/** Whether the visible part is as of that time only, since its last refresh failed. */
let isOld = false;
let seenMs = 0;
let touchedMs = performance.now();
let paused = false;
/** Whether the server accepts the caller; if not, only the sign-in is visible. */
let accepted = true;

/** Shows the part that the address names: `#sources/orders` is the source orders. An unknown name changes nothing. */
function read() {
  const [name, rest = ""] = location.hash.slice(1).split("/");
  if (Object.hasOwn(PARTS, name)) [part, about] = [name, rest];
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== part;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${part}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${byId(`${part}-title`).textContent} · Snowmint`;
}

/** Refreshes the page; `byItself` skips a part that changes only through the user. */
async function refresh({ byItself = false } = {}) {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const { load, everyMs } = PARTS[part];
  accepted = await server.loadStatus();
  // A change without a right to it could only fail.
  if (!accepted) dismiss();
  // A newer call has started meanwhile, for example after a change of the part.
  if (mine !== turn) return;
  // A page that needs more than the token has would be an error as the first thing to see.
  if (accepted && !location.hash && part === "cluster" && !server.mayAdminister()) {
    location.replace("#mint");
    return;
  }
  let isComplete = server.responds();
  if (accepted && (!byItself || everyMs > 0)) isComplete = (await load(about)) !== false && isComplete;
  if (mine !== turn) return;
  seenMs = performance.now();
  isOld = !isComplete;
  if (isComplete) seen.set(part, new Date().toLocaleTimeString("en-GB"));
  scheduleRefresh();
}

const period = () => (accepted && PARTS[part].everyMs) || STATUS_EVERY_MS;

function scheduleRefresh() {
  paused = performance.now() - touchedMs > PAUSE_AFTER_MS;
  const since = seen.get(part);
  const words = [since && `as of ${since}`, isOld && "not refreshed", paused && "paused until you interact"];
  byId("seen").textContent = words.filter(Boolean).join(", ");
  if (!paused && !document.hidden) timer = setTimeout(() => refresh({ byItself: true }), period());
}

function touched() {
  touchedMs = performance.now();
  if (paused) {
    paused = false;
    refresh({ byItself: true });
  }
}

function shownAgain() {
  clearTimeout(timer);
  if (document.hidden) return;
  touchedMs = performance.now();
  if (performance.now() - seenMs > period()) refresh({ byItself: true });
  else scheduleRefresh();
}

/** Clears data that the server returned for one token: the next token may lack the permission. */
function forget() {
  for (const node of document.querySelectorAll("[data-loaded]")) node.replaceChildren();
  emptied();
  seen.clear();
  cluster.forget();
  time.forget();
  for (const shown of ["source-body", "mint-result", "decode-result"]) byId(shown).hidden = true;
}

for (const module of [counters, decode, define, layouts, mint, time, workers]) module.begin();
source.begin(refresh);
token.begin(() => {
  forget();
  refresh();
});
byId("look").addEventListener("click", () => refresh());
document.addEventListener("visibilitychange", shownAgain);
for (const kind of ["pointerdown", "keydown", "wheel"]) document.addEventListener(kind, touched, { passive: true });
window.addEventListener("hashchange", async () => {
  // The dialog is about the page that the user leaves.
  dismiss();
  const before = part;
  read();
  // Keyboard and screen reader follow the link to its target.
  if (part !== before) byId(`${part}-title`).focus();
  await refresh();
  if (part === "sources" && about) byId("source-title").focus();
});
read();
refresh();

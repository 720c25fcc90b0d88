// Which part of the page is shown, and when it looks at the server again: by itself only while somebody may be
// looking, so that a console that was left open does not keep a resting server awake.

import * as counters from "./counters.js";
import * as decode from "./decode.js";
import * as define from "./define.js";
import { byId } from "./dom.js";
import * as layouts from "./layouts.js";
import * as mint from "./mint.js";
import * as server from "./server.js";
import * as source from "./source.js";
import * as sources from "./sources.js";
import * as token from "./token.js";
import * as workers from "./workers.js";

/** Whoever has not touched the page for so long does not look at it. */
const REST_AFTER_MS = 5 * 60_000;

/** How often the line above all parts is looked at where nothing else changes by itself. */
const STANDING_EVERY_MS = 20_000;

const PARTS = { server, sources, workers, mint, decode, layouts };

let part = "server";
let about = "";
let turn = 0;
let timer;
let seen = "";
let seenMs = 0;
let touchedMs = performance.now();
let resting = false;

/** What the address names: `#sources/orders` is the source orders. What it does not know changes nothing. */
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

/** Looks at the server; by itself only at what changes by itself. */
async function look({ byItself = false } = {}) {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const { load, everyMs } = PARTS[part];
  await server.standing();
  // Somebody who looks elsewhere meanwhile has begun anew.
  if (mine !== turn) return;
  if (!byItself || everyMs > 0) await load(about);
  if (mine !== turn) return;
  seenMs = performance.now();
  seen = `as of ${new Date().toLocaleTimeString()}`;
  lookAgain();
}

const period = () => PARTS[part].everyMs || STANDING_EVERY_MS;

function lookAgain() {
  resting = performance.now() - touchedMs > REST_AFTER_MS;
  byId("seen").textContent = resting ? `${seen}, resting until you are back` : seen;
  if (!resting && !document.hidden) timer = setTimeout(() => look({ byItself: true }), period());
}

function touched() {
  touchedMs = performance.now();
  if (resting) {
    resting = false;
    look({ byItself: true });
  }
}

function shownAgain() {
  clearTimeout(timer);
  if (document.hidden) return;
  touchedMs = performance.now();
  if (performance.now() - seenMs > period()) look({ byItself: true });
  else lookAgain();
}

/** What was told to one token is not the next one's. */
function forget() {
  for (const told of document.querySelectorAll("[data-told]")) told.replaceChildren();
  for (const shown of ["source-body", "mint-result", "decode-result"]) byId(shown).hidden = true;
}

for (const module of [counters, decode, define, layouts, mint, workers]) module.begin();
source.begin(look);
token.begin(() => {
  forget();
  look();
});
byId("look").addEventListener("click", () => look());
document.addEventListener("visibilitychange", shownAgain);
for (const kind of ["pointerdown", "keydown", "wheel"]) document.addEventListener(kind, touched, { passive: true });
window.addEventListener("hashchange", async () => {
  const before = part;
  read();
  // Whoever follows a link is taken to where it leads, with keyboard and reader, too.
  if (part !== before) byId(`${part}-title`).focus();
  await look();
  if (part === "sources" && about) byId("source-title").focus();
});
read();
look();

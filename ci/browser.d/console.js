// Opens every page of the console on real servers in Chromium: node console.js SNOWMINT PICTURES
//
// No page may log an error, break a rule of axe-core seriously or be wider than a screen of 360 px. Pictures of all
// pages stay in the folder PICTURES. Every wait is for a condition.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { actions } from "./actions.js";
import { MODES, check, checkAll, launch, open } from "./look.js";
import { overTime } from "./over_time.js";
import { paint } from "./paint.js";
import { call, end, killAll, ready, serve, until } from "./servers.js";

const [snowmint, pictures] = process.argv.slice(2);
const CONFIG = `
[sources.orders]
[sources.invoices]
kind = "segment"
[sources.messages]
kind = "counter"
[sources.tickets]
kind = "segment"
[sources.tickets.serial]
prefix = "T-"
width = 6
[sources.receipts]
kind = "segment"
[sources.receipts.serial]
prefix = "R-"
date = "yyyy-MM-dd"
zone = "Europe/Berlin"
[sources.tweets]
layout = "redis"
[sources.bulk]
layout = "baidu"
[counters]
lease = "4s"
`;
/** Pages, and the condition that shows real data. */
const PAGES = {
  cluster: () =>
    document.querySelectorAll("#cluster-servers tbody tr").length === 3 &&
    document.querySelector("#pool-workers-12 .own") &&
    document.querySelector(".ring path"),
  time: () =>
    document.querySelectorAll("#time .plot canvas").length === 6 &&
    /orders [\d.,]+ now/.test(document.querySelector("#time-sources").textContent),
  server: () => document.querySelector("#minted-orders"),
  // No receipt was minted yet: the next one is of no earlier day.
  sources: () =>
    document.querySelector("#open-orders") &&
    document.querySelector("#sources-table tr:has(#open-receipts)").textContent.endsWith("today’s first"),
  "sources/tickets": () => document.querySelector("#source-facts").textContent.includes("T-"),
  workers: () => document.querySelector("#workers-table tbody tr"),
  mint: () => document.querySelector("#mint-source").value !== "",
  decode: () => document.querySelector("#decode-source").value !== "",
  layouts: () =>
    document.querySelector("#design-one .figures") && document.querySelectorAll("#layouts-table tbody tr").length > 20,
};
const wrong = [];

async function pages(browser, server) {
  for (const mode of Object.keys(MODES)) {
    for (const [hash, holds] of Object.entries(PAGES)) {
      const view = await open(browser, mode, `${server.base}/#${hash}`);
      await view.page.waitForFunction(holds);
      wrong.push(...(await check(view, hash.replace("/", "-"), pictures)));
      await view.close();
    }
  }
}

/** Milliseconds within which a page should show that a server was killed. */
const SEEN_MS = 5_000;

/**
 * A killed server is named on the page of another: first it sends no response, and soon its presence ends. A page that
 * refreshes late shows only the second, so each wait accepts both. The time until then depends on how busy the machine
 * is. So this checks what it consists of: the first refresh that begins after the kill shows it, and the page refreshes
 * more often than the time allows. One refresh may be under way during the kill.
 */
async function kill(browser, [one, two]) {
  const view = await open(browser, "dark", `${one.base}/#cluster`);
  await view.page.waitForFunction(PAGES.cluster);
  const begun = Date.now();
  await view.page.evaluate(() => {
    globalThis.refreshes = 0;
    const seen = new MutationObserver(() => {
      globalThis.refreshes += 1;
      if (document.querySelector("#cluster-summary.done")) return;
      globalThis.seenAfter = globalThis.refreshes;
      seen.disconnect();
    });
    seen.observe(document.querySelector("#cluster-servers"), { childList: true });
  });
  await end(two, "SIGKILL");
  await view.page.evaluate(() => {
    globalThis.refreshes = 0;
  });
  await view.page.waitForFunction(() =>
    /^2 of (3 servers are ready; \w+ does not respond|2 servers are ready; \w+ has been gone for [\w. ]+)\.$/.test(
      document.querySelector("#cluster-summary").textContent,
    ),
  );
  const [refreshes, everyMs] = await view.page.evaluate(async () => [
    globalThis.seenAfter,
    (await import("/console/cluster.js")).everyMs,
  ]);
  console.log(`ci/browser: a kill was seen after ${Date.now() - begun} ms, by refresh ${refreshes}`);
  if (refreshes > 2) wrong.push(`a kill was seen only by refresh ${refreshes}`);
  if (everyMs >= SEEN_MS) wrong.push(`the cluster is refreshed each ${everyMs} ms, so a kill is seen too late`);
  await view.page.waitForFunction(
    (name) =>
      [...document.querySelectorAll("#cluster-servers tr")].some(
        (row) => row.textContent.includes(name) && /no response|gone/.test(row.textContent),
      ),
    two.name,
  );
  wrong.push(...(await check(view, "cluster-killed", pictures)));
  await view.close();
}

/** Without its server, a page says so, and from when its content is; it claims nothing about the present. */
async function alone(browser, server) {
  const gone = ["Failed to load resource: net::ERR_"];
  const views = new Map();
  for (const part of ["cluster", "time"]) {
    const view = await open(browser, "light", `${server.base}/#${part}`, gone);
    await view.page.waitForFunction(part === "time" ? PAGES.time : () => document.querySelector("#cluster-summary"));
    views.set(part, view);
  }
  await end(server, "SIGKILL");
  for (const [part, view] of views) {
    await view.page.waitForFunction(
      (id) =>
        /no complete response .*; what is shown below is of [\d:]{8}$/.test(document.querySelector(id).textContent) &&
        /^as of .*, not refreshed$/.test(document.querySelector("#seen").textContent),
      `#${part}-notice`,
    );
    const claims = await view.page.evaluate(() =>
      [...document.querySelectorAll("#cluster-summary, #time .legend li")]
        .map((node) => node.textContent)
        .filter((text) => / ready| now,/.test(text)),
    );
    wrong.push(...claims.map((text) => `${part}, without its server, claims: ${text}`));
    // The charts follow the colours of the system, though no new sample draws them.
    const plot = await view.page.$(".plot");
    await view.page.emulateMedia({ colorScheme: "dark" });
    if (part === "time") await view.page.waitForFunction((node) => !node.isConnected, plot);
    wrong.push(...(await checkAll(view, `${part}-alone`, pictures)));
    await view.close();
  }
}

/** A store that was rolled back: the page shows which journals have reported. */
async function recovery(browser, folder) {
  const names = ["first", "second"];
  const start = () => Promise.all(names.map((name) => serve(snowmint, folder, name, "", { store: "doubt.db" })));
  let servers = await start();
  await Promise.all(servers.map(ready));
  for (const server of servers) await end(server);
  copyFileSync(join(folder, "doubt.db"), join(folder, "old.db"));
  servers = await start();
  await Promise.all(servers.map(ready));
  await call(servers[0], "/v1/ids/numbers?count=1000");
  for (const server of servers) await end(server);
  for (const rest of ["-wal", "-shm"]) rmSync(join(folder, `doubt.db${rest}`), { force: true });
  copyFileSync(join(folder, "old.db"), join(folder, "doubt.db"));
  const [one] = await start();
  await until("the store is in doubt", async () => (await call(one, "/v1/recovery")).doubt);
  // Readiness has this status.
  const view = await open(browser, "light", `${one.base}/#cluster`, [503]);
  await view.page.waitForFunction(() => document.querySelectorAll("#cluster-recovery-body tbody tr").length === 2);
  wrong.push(...(await check(view, "cluster-recovery", pictures)));
  await view.close();
}

/** With tokens, the page is a sign-in until the server accepts one. */
async function signIn(browser, folder) {
  const newToken = () => execFileSync(snowmint, ["token", "new"], { encoding: "utf8" }).match(/(smt_\w+|sha256:\w+)/g);
  const [token, hash] = newToken();
  const [clerkToken, clerkHash] = newToken();
  writeFileSync(
    join(folder, "tokens.toml"),
    `[operator]\nhashes = ["${hash}"]\ngrants = ["admin,mint,decode,metrics *"]\n` +
      `[clerk]\nhashes = ["${clerkHash}"]\ngrants = ["mint,decode *"]\n`,
    { mode: 0o600 },
  );
  const server = await serve(snowmint, folder, "guarded", `[tokens]\nfile = "${join(folder, "tokens.toml")}"\n`);
  for (const mode of Object.keys(MODES)) {
    const view = await open(browser, mode, `${server.base}/`, [401]);
    const { page } = view;
    const enter = async (text) => {
      await page.fill("#token", text);
      await page.click("#token-form button[type=submit]");
    };
    await page.waitForSelector("#sign-in:not([hidden])");
    await enter("smt_wrong0123456789abcdef0123456789");
    await page.waitForSelector("#token-notice:not([hidden])");
    wrong.push(...(await check(view, "sign-in", pictures)));
    await enter(token);
    await page.waitForFunction(() => document.querySelector("#account").textContent.includes("Signed in as operator"));
    await page.waitForFunction(() => document.querySelectorAll("#cluster-servers tbody tr").length === 1);
    wrong.push(...(await check(view, "signed-in", pictures)));
    await view.close();
    await signInAsClerk(browser, mode, server, clerkToken);
  }
}

/** A token without a right over all sources begins with a page that it may use, and sees one reason on the others. */
async function signInAsClerk(browser, mode, server, token) {
  const view = await open(browser, mode, `${server.base}/`, [401, 403]);
  const { page } = view;
  await page.waitForSelector("#sign-in:not([hidden])");
  await page.fill("#token", token);
  await page.click("#token-form button[type=submit]");
  await page.waitForSelector("#mint:not([hidden])");
  await page.waitForFunction(() => document.querySelector("#mint-source").value !== "");
  wrong.push(...(await check(view, "signed-in-clerk", pictures)));
  await page.click('nav a[href="#cluster"]');
  await page.waitForSelector("#cluster-notice:not([hidden])");
  const shown = await page.locator("#cluster").innerText();
  if (shown.trim().split(/\n+/).join(" | ") !== 'Cluster | This page needs a token with "admin *".')
    wrong.push(`the cluster without admin: ${shown}`);
  wrong.push(...(await check(view, "cluster-clerk", pictures)));
  await view.close();
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), "snowmint-browser-"));
  mkdirSync(pictures, { recursive: true });
  const browser = await launch();
  try {
    const names = ["north", "east", "south"];
    const servers = await Promise.all(names.map((name) => serve(snowmint, folder, name, CONFIG, { store: "ids.db" })));
    await Promise.all(servers.map(ready));
    const mint = async () => {
      for (const path of ["orders?count=100", "invoices?count=10", "messages?key=alice", "tweets"])
        await call(servers[0], `/v1/ids/${path}`);
    };
    // The ring has its first sample after the second reading; IDs come between the two.
    await until("the history has IDs", async () => {
      await mint();
      return (await call(servers[0], "/v1/history")).sources.orders?.some((count) => count > 0);
    });
    await pages(browser, servers[0]);
    wrong.push(...(await paint(browser, servers[0])));
    wrong.push(...(await actions(browser, servers[0], pictures)));
    wrong.push(...(await overTime(browser, servers[0], pictures)));
    await kill(browser, servers);
    await alone(browser, servers[0]);
    await recovery(browser, folder);
    await signIn(browser, folder);
  } finally {
    await browser.close();
    killAll();
    rmSync(folder, { recursive: true, force: true });
  }
  if (wrong.length > 0) throw new Error("the console has the faults above");
  console.log(`ci/browser: all pages of the console work; pictures are in ${pictures}`);
}

main().catch((error) => {
  console.error(`ci/browser: ${[...wrong, error.stack ?? error].join("\n")}`);
  process.exit(1);
});

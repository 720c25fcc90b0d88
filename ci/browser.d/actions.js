// Acts of a user on the console's pages: designs a layout, decodes IDs, and changes a source.

import { checkAll, open } from "./look.js";
import { call } from "./servers.js";

const ID = "1541815603606036480";

/** Does everything once; returns what is wrong, as sentences. */
export async function actions(browser, server, pictures) {
  const wrong = [];
  // An invalid layout, an invalid ID, and a token that is no longer accepted.
  const expected = new Map([[design, [400]], [decode, [400]], [leave, [401]]]);
  for (const act of [design, decode, map, change, leave, mint]) {
    const view = await open(browser, "light", `${server.base}/`, expected.get(act));
    const look = async (name) => wrong.push(...(await checkAll(view, name, pictures)));
    await act(view.page, server, look);
    await look(`action-${act.name}`);
    await view.close();
  }
  return wrong;
}

const go = async (page, part) => {
  await page.click(`nav a[href="#${part}"]`);
  await page.waitForSelector(`#${part}:not([hidden])`);
};

/** The figures are those of the server for the text that the designer shows. */
async function design(page, server) {
  await go(page, "layouts");
  await page.waitForFunction(() => document.querySelectorAll("#design-one-preset option").length > 20);
  await page.selectOption("#design-one-preset", "js53");
  await page.waitForFunction(() => document.querySelector("#design-one .figures").textContent.includes("exact"));
  await page.fill("#design-one-worker", "7");
  await page.fill("#design-one-time", "34");
  const { layout, workers, sample } = await call(
    server,
    "/v1/layouts/time=34,worker=7,sequence=15,unit=1s,epoch=1970-01-01T00:00:00Z",
  );
  await page.waitForFunction((text) => document.querySelector("#design-one pre").textContent.includes(text), layout);
  await page.waitForFunction(
    ([text, forms]) =>
      document.querySelector("#design-one .figures").textContent.includes(text) &&
      document.querySelectorAll("#design-one tbody tr").length === forms,
    [String(workers), Object.keys(sample).length],
  );
  await page.fill("#design-one-time", "60");
  await page.waitForFunction(() => document.querySelector("#design-one .notice").textContent.includes("at most 64"));
  await page.fill("#design-one-time", "30");
  await page.check("#design-compare");
  await page.selectOption("#design-two-preset", "twitter");
  await page.waitForFunction(() => document.querySelectorAll("#design-comparison tbody tr.open").length > 3);
  // Next to a button, half of a page leaves a command no room.
  const wide = (part) => page.$eval(part, (node) => node.getBoundingClientRect().width);
  const [command, pane] = [await wide("#design-one .lines pre"), await wide("#design-one")];
  if (command < 0.8 * pane) throw new Error(`the command has ${command} of ${pane} px`);
}

/** Numbers have the server's readings in its order; other forms their kind; an error names its ID. */
async function decode(page, server) {
  await go(page, "decode");
  await page.fill("#decode-id", `${ID}, 9m4e2mr0ui3e8a215n4g\nnot!`);
  await page.fill("#decode-zone", "Asia/Shanghai");
  await page.click("#decode-form button[type=submit]");
  await page.waitForFunction(() => document.querySelectorAll("#decode-list tbody tr").length === 3);
  const { readings } = await call(server, `/v1/decode/${ID}`);
  const names = readings.filter(({ plausible }) => plausible).map(({ layout }) => layout);
  const shown = await page.$$eval(".reading strong", (nodes) => nodes.map((node) => node.textContent));
  if (JSON.stringify(shown) !== JSON.stringify(names)) throw new Error(`readings ${shown}, expected ${names}`);
  const text = await page.textContent("#decode-list");
  for (const part of ["xid", "invalid ID", "+08:00"])
    if (!text.includes(part)) throw new Error(`no ${part} in ${text}`);
  await page.click("#decoded-1");
  await page.waitForFunction(() => document.querySelector("#decode-details").textContent.includes("Machine"));
}

/** The map says by keyboard who holds a number, and until when. */
async function map(page) {
  // As after an import from another system, whose numbers it may still use.
  await page.route("**/v1/workers", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const excluded = { pool: "workers-10", number: 5, owner: "the old fleet", term: 1, live: false, excluded: true };
    body.workers.push({ ...excluded, mark: "+584556019-04-03T14:25:51.615Z" });
    await route.fulfill({ response, json: body });
  });
  await page.waitForSelector("#pool-workers-10 .own");
  await page.focus("#pool-workers-10");
  const own = await page.$eval("#pool-workers-10 .own", (node) => [...node.parentNode.children].indexOf(node));
  for (let step = 0; step < own; step += 1) await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() =>
    /held by north.*promised until/.test(document.querySelector("#pool-workers-10-note").textContent),
  );
  await page.keyboard.press("End");
  await page.waitForFunction(() =>
    document.querySelector("#pool-workers-10-note").textContent.startsWith("1023: free"),
  );
  await page.hover("#pool-workers-10-5");
  await page.waitForFunction(() =>
    document.querySelector("#pool-workers-10-note").textContent.startsWith("5: excluded for the old fleet;"),
  );
}

/** Defines, alters, disables, enables and deletes a source, each with its plan. */
async function change(page, server, look) {
  await go(page, "sources");
  const confirm = async (word, picture) => {
    await page.waitForSelector("#confirm[open]");
    await page.waitForFunction((text) => document.querySelector("#confirm-means").textContent.includes(text), word);
    if (picture) await look(`dialog-${picture}`);
    await page.click("#confirm-yes");
  };
  await page.click("#define-box summary");
  await page.fill("#define-name", "brief");
  await page.fill("#define-layout", "time=40,sequence=12,worker=11");
  await page.click("#define-form button[type=submit]");
  await page.waitForFunction(() => document.querySelector("#confirm-means").textContent.includes("Warning: id % N"));
  await confirm("2,048 workers", "define");
  await page.waitForFunction(() => document.querySelector("#source-title").textContent === "Source brief");
  await page.click("#source-alter");
  const lines = await page.inputValue("#source-lines");
  await page.fill("#source-lines", lines.replace(/lead_max = .*/, 'lead_max = "7s"'));
  await page.click("#source-alter-form button[type=submit]");
  await confirm("applies the change", "alter");
  await page.waitForFunction(() => document.querySelector("#source-done").textContent.startsWith("Altered"));
  await page.click("#source-switch");
  await confirm("last minute", "disable");
  await page.waitForFunction(() => document.querySelector("#source-done").textContent === "Disabled.");
  if ((await call(server, "/v1/sources/brief")).enabled !== false) throw new Error("brief is not disabled");
  await page.click("#source-switch");
  await confirm("mints from it again");
  await page.waitForFunction(() => document.querySelector("#source-done").textContent === "Enabled.");
  await page.click("#source-delete");
  await page.fill("#confirm-typed", "brief");
  await confirm("returns 404", "delete");
  await page.waitForFunction(() => location.hash === "#sources" && !document.querySelector("#open-brief"));
}

/** A dialog closes when the user leaves its page, and when the server no longer accepts the user; nothing changes. */
async function leave(page, server) {
  const ask = async () => {
    await page.waitForFunction(() => document.querySelector("#source-title").textContent === "Source orders");
    await page.click("#source-switch");
    await page.waitForSelector("#confirm[open]");
  };
  const closed = () => page.waitForSelector("#confirm:not([open])", { state: "attached" });
  await go(page, "sources");
  await page.click("#open-orders");
  await ask();
  await page.goBack();
  await closed();
  await page.goForward();
  await ask();
  await page.route("**/v1/server", (route) =>
    route.fulfill({ status: 401, json: { error: { code: "unauthenticated", message: "the token has ended" } } }),
  );
  await page.evaluate(() => document.querySelector("#look").click());
  await page.waitForSelector("#sign-in:not([hidden])");
  await closed();
  if ((await call(server, "/v1/sources/orders")).enabled === false) throw new Error("orders was disabled");
}

/** The form begins with a source that mints without a key; serials are shown as they are. */
async function mint(page) {
  await go(page, "mint");
  await page.waitForFunction(() => document.querySelector("#mint-source").value !== "");
  await page.click("#mint-form button[type=submit]");
  await page.waitForFunction(() => /^\d+$/.test(document.querySelector("#mint-ids").value));
  await page.selectOption("#mint-source", "tickets");
  await page.click("#mint-form button[type=submit]");
  await page.waitForFunction(() => /^T-\d{6}$/.test(document.querySelector("#mint-ids").value));
}

// A page of the console as a reader sees it: checked in light, dark and narrow, with a picture of each.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { LONG_MS } from "./servers.js";

const AXE = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

export const MODES = {
  light: { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  narrow: { viewport: { width: 360, height: 740 }, colorScheme: "light" },
};

export const launch = () =>
  chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

/**
 * Opens a page, and keeps the errors of its console in `errors`. The browser itself reports each response with an error;
 * `expected` has the statuses that the test causes, and beginnings of other reports, such as of a server that is gone.
 */
export async function open(browser, mode, url, expected = []) {
  const context = await browser.newContext(MODES[mode]);
  context.setDefaultTimeout(LONG_MS);
  const page = await context.newPage();
  const errors = [];
  const isExpected = (text) =>
    expected.some((what) =>
      text.startsWith(
        typeof what === "number" ? `Failed to load resource: the server responded with a status of ${what} ` : what,
      ),
    );
  page.on(
    "console",
    (message) => message.type() === "error" && !isExpected(message.text()) && errors.push(message.text()),
  );
  page.on("pageerror", (error) => errors.push(error.stack ?? error.message));
  await page.goto(url);
  const close = async () => {
    // A route of the test may still wait for the server.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
  };
  return { page, errors, mode, close };
}

/** Checks what a reader sees, and keeps a picture of it. Returns what is wrong, as sentences. */
export async function check({ page, errors, mode }, name, pictures) {
  const wrong = errors.splice(0).map((text) => `console: ${text}`);
  // A dialog covers the screen, not the whole page.
  const fullPage = (await page.locator("dialog[open]").count()) === 0;
  await page.screenshot({ path: join(pictures, `${name}-${mode}.png`), fullPage });
  const cut = await page.evaluate(() => {
    const wide = (node) => node.scrollWidth > node.clientWidth + 1;
    const tables = [...document.querySelectorAll(".scroll, dialog")].filter((node) => node.offsetParent && wide(node));
    return [...(wide(document.documentElement) ? ["the page"] : []), ...tables.map((node) => `the table ${node.id}`)];
  });
  wrong.push(...cut.map((what) => `${what} is wider than the screen`));
  wrong.push(...(await axe(page)));
  return wrong.map((text) => `${name}, ${mode}: ${text}`);
}

/** Checks an open page in all modes: for what only an act shows, such as a dialog. */
export async function checkAll(view, name, pictures) {
  const wrong = [];
  const show = async (mode) => {
    const { viewport, colorScheme } = MODES[mode];
    await view.page.setViewportSize(viewport);
    await view.page.emulateMedia({ colorScheme });
  };
  for (const mode of Object.keys(MODES)) {
    await show(mode);
    wrong.push(...(await check({ ...view, mode }, name, pictures)));
  }
  await show(view.mode);
  return wrong;
}

/** Runs axe-core by the debugger, since the page's policy permits no other scripts. */
async function axe(page) {
  const session = await page.context().newCDPSession(page);
  const run = `${AXE}; axe.run().then((found) => JSON.stringify(found.violations))`;
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression: run,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  if (exceptionDetails) throw new Error(`axe-core failed: ${JSON.stringify(exceptionDetails)}`);
  const serious = JSON.parse(result.value).filter(({ impact }) => ["serious", "critical"].includes(impact));
  return serious.map(
    ({ id, impact, nodes }) =>
      `axe: ${impact} ${id} at ${nodes
        .map(({ html }) => html.slice(0, 120))
        .slice(0, 3)
        .join(" | ")}`,
  );
}

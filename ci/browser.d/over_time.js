// The charts of an hour that the test has written: full lines, and lines that end before now.

import { checkAll, open } from "./look.js";

const EVERY_MS = 5_000;
const SAMPLES = 720;
/** How far the clock of the second server is ahead, which gives its samples later times. */
const AHEAD_MS = 60_000;

/** Returns an hour. Its last `missing` samples have no time reference, and no request. */
function hour(nowMs, missing) {
  const each = (value) => Array.from({ length: SAMPLES }, (_, place) => value(place));
  const known = (value) => each((place) => (place < SAMPLES - missing ? value(place) : null));
  const wave = (place) => Math.round(4_000 + 1_500 * Math.sin(place / 40) + (place % 7) * 40);
  return {
    every_ms: EVERY_MS,
    times_ms: each((place) => nowMs - (SAMPLES - 1 - place) * EVERY_MS),
    spans_ms: each(() => EVERY_MS),
    ready: each(() => true),
    ids: { http: each(wave), resp: each((place) => 3 * wave(place + 60)) },
    sources: { orders: each((place) => 3 * wave(place)), invoices: each(wave) },
    errors: { http: each((place) => (place % 90 === 0 ? 5 : 0)) },
    request_p50_us: known((place) => 200 + 70 * Math.sin(place / 50)),
    request_p99_us: known((place) => 4_000 + 3_000 * Math.sin(place / 70)),
    window_runway_ms: each((place) => Math.round(21_000 + 5_000 * Math.sin(place / 25))),
    prefetch_runway_ms: known(() => 40_000),
    clock_ahead_ms: known((place) => Math.round(4 * Math.sin(place / 60))),
  };
}

/** A value is shown as that of now only while it is; returns what is wrong, as sentences. */
export async function overTime(browser, server, pictures) {
  const wrong = [];
  const view = await open(browser, "light", "about:blank");
  const { page } = view;
  const others = [];
  await page.route("**/v1/history*", (route) => {
    const member = new URL(route.request().url()).searchParams.get("member");
    if (member && !others.includes(member)) others.push(member);
    const aheadMs = others.indexOf(member) === 0 ? AHEAD_MS : 0;
    return route.fulfill({ json: hour(Date.now() + aheadMs, member ? 0 : 120) });
  });
  await page.goto(`${server.base}/#time`);
  await page.waitForFunction(() => document.querySelectorAll("#time .plot canvas").length === 6);
  await page.waitForFunction(() => document.querySelectorAll("#time-clocks .legend li").length === 3);
  const texts = async (id) => page.$$eval(`#${id} .legend li`, (items) => items.map((item) => item.textContent));
  const expected = {
    "time-sources": [/^orders [\d,]+ now, at most [\d,]+$/, /^invoices [\d,]+ now, at most [\d,]+$/],
    "time-latency": [/none now, at most \d+ µs$/, /none now, at most \d ms$/],
    "time-runway": [/^windows \d+ s now, at most \d+ s$/, /^prefetched numbers none now, at most 40 s$/],
    // The third line ends before the second, whose server's clock is ahead; its value is that of now all the same.
    "time-clocks": [/none now, farthest [−+]\d ms$/, / [−+]?\d ms now, /, / [−+]?\d ms now, /],
  };
  for (const [id, patterns] of Object.entries(expected)) {
    const shown = await texts(id);
    if (shown.length !== patterns.length || !patterns.every((pattern, place) => pattern.test(shown[place])))
      wrong.push(`${id} says ${JSON.stringify(shown)}`);
  }
  const below = await page.$$eval("#time .plot", (plots) =>
    plots.map(
      (plot) => plot.getBoundingClientRect().bottom - plot.querySelector(".u-over").getBoundingClientRect().bottom,
    ),
  );
  if (below.some((px) => px > 40)) wrong.push(`below the lines of the charts are ${below} px`);
  wrong.push(...(await checkAll(view, "time-hour", pictures)));
  await view.close();
  return wrong;
}

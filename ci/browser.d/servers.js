// Servers of the test, each a process of the real binary on free ports.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Milliseconds until a condition must hold, however busy the machine is. */
export const LONG_MS = 120_000;

const running = new Set();

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits until `holds` returns a value that is true, and returns it. */
export async function until(what, holds) {
  const end = Date.now() + LONG_MS;
  let last;
  while (Date.now() < end) {
    try {
      last = await holds();
      if (last) return last;
    } catch (error) {
      last = error.message;
    }
    await pause(50);
  }
  throw new Error(`${what}: not within ${LONG_MS} ms; last: ${JSON.stringify(last)}`);
}

/** Starts a server in this folder, and returns it when it listens: `{ base, process, name }`. */
export async function serve(snowmint, folder, name, config, { store } = {}) {
  const data = join(folder, name);
  mkdirSync(data, { recursive: true });
  const file = join(data, "config.toml");
  writeFileSync(file, config);
  const args = [
    "serve",
    "--config",
    file,
    "--data-dir",
    data,
    "--owner",
    name,
    "--http",
    "127.0.0.1:0",
    "--resp",
    "127.0.0.1:0",
  ];
  if (store) args.push("--store", `sqlite:${join(folder, store)}`);
  const child = spawn(snowmint, args, { stdio: ["ignore", "pipe", "ignore"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  const port = await until(`${name} listens`, () => /http=127\.0\.0\.1:(\d+)/.exec(output)?.[1]);
  return { name, process: child, base: `http://127.0.0.1:${port}` };
}

/** Ends a server by this signal, and waits until it has ended. */
export async function end({ process: child }, signal = "SIGTERM") {
  const ended = new Promise((done) => child.once("exit", done));
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await ended;
}

/** Kills all servers that still run. */
export function killAll() {
  for (const child of running) child.kill("SIGKILL");
}

/** Makes a call that must succeed, and returns its JSON. */
export async function call({ base }, path, { method = "GET", body } = {}) {
  const headers = body ? { "content-type": "application/json" } : {};
  const response = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok && path !== "/readyz") throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

export const ready = (server) => until(`${server.name} is ready`, async () => (await call(server, "/readyz")).ready);

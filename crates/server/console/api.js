// The server's public HTTP interface, one function for each call. No other file sends anything.

import { parse, write } from "./values.js";

/** Longer than the server takes for any answer. */
const PATIENCE_MS = 40_000;

let token = "";

/** From now on, this token is shown; none if it is empty. */
export function show(secret) {
  token = secret;
}

/** What the server says instead of an answer, or that it said nothing. */
export class Refusal extends Error {
  constructor(status, code, message, retryAfterMs) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * One call. `path` is as the server's description has it; what stands in braces is taken from `parts`. Answers the
 * body as text.
 */
async function call(method, path, { parts = {}, query = {}, body, taken = [] } = {}) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parts[name]));
  const asked = new URLSearchParams(query).toString();
  const headers = { accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  // Relative: the console may lie behind a proxy that puts a path before it.
  const url = filled.slice(1) + (asked && `?${asked}`);
  const signal = AbortSignal.timeout(PATIENCE_MS);
  let response;
  let text;
  try {
    response = await fetch(url, { method, headers, body, signal, cache: "no-store" });
    text = await response.text();
  } catch (error) {
    throw new Refusal(0, "no_answer", `The server does not answer: ${error.message}`);
  }
  if (!response.ok && !taken.includes(response.status)) throw refusal(response, text);
  return text;
}

function refusal(response, text) {
  try {
    const { code, message, retry_after_ms: retryAfterMs } = parse(text).error;
    return new Refusal(response.status, code, message, retryAfterMs);
  } catch {
    // Something between us and the server, such as a proxy, speaks otherwise.
    return new Refusal(response.status, response.statusText, text.slice(0, 500));
  }
}

/** Whether the server can mint; one that cannot says so with 503, which is an answer. */
export const readiness = async () => parse(await call("GET", "/readyz", { taken: [503] }));
export const server = async () => parse(await call("GET", "/v1/server"));
export const metrics = () => call("GET", "/metrics");
export const sources = async () => parse(await call("GET", "/v1/sources"));
export const source = async (name) =>
  parse(await call("GET", "/v1/sources/{name}", { parts: { name } }));
export const define = async (definition) =>
  parse(await call("POST", "/v1/sources", { body: write(definition) }));
/** Only if the source still has this version. */
export const alter = async (name, version, changes) =>
  parse(await call("PATCH", "/v1/sources/{name}", { parts: { name }, body: write({ version, ...changes }) }));
export const remove = (name) => call("DELETE", "/v1/sources/{name}", { parts: { name } });
export const workers = async () => parse(await call("GET", "/v1/workers"));
export const layouts = async () => parse(await call("GET", "/v1/layouts"));
export const layout = async (layout) =>
  parse(await call("GET", "/v1/layouts/{layout}", { parts: { layout } }));
/** A POST, so that no key stands in an address, and nothing mints again when a page is loaded again. */
export const mint = async (source, wish) =>
  parse(await call("POST", "/v1/ids/{source}", { parts: { source }, body: write(wish) }));
/** `by` is either a `source` or a `layout`. */
export const decode = async (id, by) =>
  parse(await call("GET", "/v1/decode/{id}", { parts: { id }, query: by }));
export const bound = async (source, key) =>
  parse(await call("GET", "/v1/counters/{source}/{key}", { parts: { source, key } }));
export const raise = async (source, key, bound) =>
  parse(await call("PUT", "/v1/counters/{source}/{key}", { parts: { source, key }, body: write({ bound }) }));

// The server's public HTTP interface, one function for each call. No other file sends requests.

import { parse, write } from "./values.js";

/** Time limit of a call, longer than the server takes for any response. */
const TIMEOUT_MS = 40_000;

let token = "";

/** Sets the token of all later calls; an empty one means none. */
export function show(secret) {
  token = secret;
}

/** An error from the server, or a call without a response (`status` 0). */
export class ApiError extends Error {
  constructor(status, code, message, retryAfterMs) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Makes a call and returns the body as text. `path` is the path in the OpenAPI description; `parts` has the values for
 * names in braces. A status in `accepted` is a result, not an error.
 */
async function call(method, path, { parts = {}, query = {}, body, accepted = [] } = {}) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parts[name]));
  const queryText = new URLSearchParams(query).toString();
  const headers = { accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  // A relative URL, since a proxy may add a path prefix.
  const url = filled.slice(1) + (queryText && `?${queryText}`);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  let text;
  try {
    response = await fetch(url, { method, headers, body, signal, cache: "no-store" });
    text = await response.text();
  } catch (error) {
    throw new ApiError(0, "no_answer", `no complete response from the server: ${error.message}`);
  }
  if (!response.ok && !accepted.includes(response.status)) throw errorFrom(response, text);
  return text;
}

function errorFrom(response, text) {
  try {
    const { code, message, retry_after_ms: retryAfterMs } = parse(text).error;
    return new ApiError(response.status, code, message, retryAfterMs);
  } catch {
    // A proxy between the page and the server may send an error in another format.
    return new ApiError(response.status, response.statusText, text.slice(0, 500));
  }
}

/** Readiness; a server that cannot mint returns it with 503. */
export const readiness = async () => parse(await call("GET", "/readyz", { accepted: [503] }));
export const server = async () => parse(await call("GET", "/v1/server"));
/** All members of the namespace, with the report of each server. */
export const servers = async () => parse(await call("GET", "/v1/servers"));
/** The last hour of the server with this member ID; of the responding one without it. */
export const history = async (member) => parse(await call("GET", "/v1/history", { query: member ? { member } : {} }));
/** The reports on a store in doubt; changes nothing. */
export const recovery = async () => parse(await call("GET", "/v1/recovery"));
export const metrics = () => call("GET", "/metrics");
export const sources = async () => parse(await call("GET", "/v1/sources"));
export const source = async (name) => parse(await call("GET", "/v1/sources/{name}", { parts: { name } }));
export const define = async (definition) => parse(await call("POST", "/v1/sources", { body: write(definition) }));
/** Alters the source only if it still has this version. */
export const alter = async (name, version, changes) =>
  parse(await call("PATCH", "/v1/sources/{name}", { parts: { name }, body: write({ version, ...changes }) }));
export const remove = (name) => call("DELETE", "/v1/sources/{name}", { parts: { name } });
export const workers = async () => parse(await call("GET", "/v1/workers"));
export const layouts = async () => parse(await call("GET", "/v1/layouts"));
export const layout = async (layout) => parse(await call("GET", "/v1/layouts/{layout}", { parts: { layout } }));
/** Mints with a POST, so that a URL contains no key, and a page reload mints nothing. */
export const mint = async (source, wish) =>
  parse(await call("POST", "/v1/ids/{source}", { parts: { source }, body: write(wish) }));
/**
 * `by` has either a `source` or a `layout`, and a `format` unless it is the source's own or decimal; without both, the
 * server reads the ID by all that it knows.
 */
export const decode = async (id, by) => parse(await call("GET", "/v1/decode/{id}", { parts: { id }, query: by }));
export const bound = async (source, key) =>
  parse(await call("GET", "/v1/counters/{source}/{key}", { parts: { source, key } }));
export const raise = async (source, key, bound) =>
  parse(await call("PUT", "/v1/counters/{source}/{key}", { parts: { source, key }, body: write({ bound }) }));

// Node clients of ci/clients. ../README.md describes the arguments and the output.

import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [CLIENT, SERVERS, SOURCE, OPS, OUT, STOP] = process.argv.slice(2);
const { CLIENTS_CA: CA, CLIENTS_NAME: NAME, CLIENTS_TOKEN: TOKEN } = process.env;
const KEYS = 32;
const ca = CA && readFileSync(CA);
const [PACKAGE, MODE] = CLIENT.split("/");
const IS_CLUSTER = CLIENT.includes("cluster");
const addresses = SERVERS.split(",").map((it) => {
  const [host, port] = it.split(":");
  return { host, port: Number(port) };
});
const log = (what, error) => console.error(Date.now(), what, String(error).replaceAll("\n", " ").slice(0, 300));

async function ioredis(servers) {
  const { Cluster, Redis } = await import("ioredis");
  const options = { stringNumbers: true, username: NAME, password: TOKEN };
  if (ca) options.tls = { ca };
  const client = IS_CLUSTER
    ? new Cluster(servers, { redisOptions: options })
    : new Redis({ ...servers[0], ...options });
  client.on("error", (error) => log("connection", error));
  const results = (replies) =>
    replies.map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
  return {
    incr: (key) => client.incr(key),
    mint: (key, count) => client.call("MINT", key, count),
    multi: async (key) => results(await client.multi().incr(key).incr(key).exec()),
  };
}

async function nodeRedis(servers) {
  const { RESP_TYPES, createClient, createCluster } = await import("redis");
  const node = ({ host, port }) => ({ socket: { host, port, ...(ca && { tls: true, ca }) } });
  const login = TOKEN ? { username: NAME, password: TOKEN } : {};
  const base = IS_CLUSTER
    ? createCluster({ rootNodes: servers.map(node), defaults: { ...node(servers[0]), ...login } })
    : createClient({ ...node(servers[0]), ...login });
  base.on("error", (error) => log("connection", error));
  await base.connect();
  const client = base.withTypeMapping({ [RESP_TYPES.NUMBER]: String });
  return {
    incr: (key) => client.incr(key),
    mint: (key, count) => {
      const command = ["MINT", key, String(count)];
      return IS_CLUSTER ? client.sendCommand(key, false, command) : client.sendCommand(command);
    },
    multi: (key) => client.multi().incr(key).incr(key).exec(),
  };
}

async function glide(servers) {
  const { Batch, ClusterBatch, GlideClient, GlideClusterClient } = await import("@valkey/valkey-glide");
  const options = { addresses: servers };
  if (TOKEN) options.credentials = { username: NAME, password: TOKEN };
  if (ca) {
    options.useTLS = true;
    options.advancedConfiguration = { tlsAdvancedConfiguration: { rootCertificates: ca } };
  }
  const client = await (IS_CLUSTER ? GlideClusterClient : GlideClient).createClient(options);
  return {
    incr: (key) => client.incr(key),
    mint: (key, count) => client.customCommand(["MINT", key, String(count)]),
    multi: (key) => client.exec(new (IS_CLUSTER ? ClusterBatch : Batch)(true).incr(key).incr(key), true),
  };
}

const connect = { ioredis, "node-redis": nodeRedis, "valkey-glide (Node)": glide }[PACKAGE];
if (!connect) throw new Error(`unknown client ${CLIENT}`);
const name = { "node-redis": "redis", "valkey-glide (Node)": "@valkey/valkey-glide" }[PACKAGE] ?? PACKAGE;
process.on("unhandledRejection", (error) => log("unhandled", error));

const out = openSync(OUT, "w");
const write = (...words) => writeSync(out, `${words.join(" ")}\n`);
const manifest = new URL(`node_modules/${name}/package.json`, import.meta.url);
write("version", createRequire(import.meta.url)(manifest.pathname).version);
const orders = IS_CLUSTER ? [addresses] : addresses.map((it) => [it]);
const clients = new Map();
const at = Object.fromEntries(OPS.split(",").map((op) => [op, 0]));
for (let rounds = 0; !existsSync(STOP); rounds += 1) {
  for (const op of Object.keys(at)) {
    try {
      const place = at[op] % orders.length;
      if (!clients.has(place)) clients.set(place, await connect(orders[place]));
      const client = clients.get(place);
      let key = SOURCE;
      if (op === "counter") key = "counters:{shared}";
      if (op.endsWith("keys")) key = `counters:${CLIENT.replaceAll(" ", "")}.${op}.${rounds % KEYS}`;
      const multi = () => client.multi(key);
      const calls = { batch: () => client.mint(key, 100), multi, "multi-keys": multi };
      const ids = [await (calls[op] ?? (() => client.incr(key)))()].flat();
      if (!ids.every((it) => /^[0-9]+$/.test(it))) throw new Error(`reply ${ids} is no list of integers`);
      write(Date.now(), op, key, ...ids);
    } catch (error) {
      log(op, error);
      at[op] += 1;
      await sleep(50);
    }
  }
  await sleep(100);
}
closeSync(out);
process.exit(0);

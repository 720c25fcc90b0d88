// IDs from Snowmint with any Redis client: a server is a Redis that knows INCR and MINT.
//
//     node by_redis.js HOST:PORT,HOST:PORT SOURCE COUNT
//
// Prints COUNT IDs of SOURCE, one a line, and goes to the next server when one is gone. Asking again is
// safe: a lost reply is a gap, never a duplicate.

import { Redis } from "ioredis";

const WITHIN_MS = 30_000;
const [servers, source, count] = process.argv.slice(2);

const clients = servers.split(",").map((server) => {
  const [host, port] = server.split(":");
  const client = new Redis({
    host,
    port: Number(port),
    connectTimeout: 1_000,
    commandTimeout: 2_000,
    maxRetriesPerRequest: 0,
    // IDs have up to 63 bits, and a JavaScript number 53: without this, different IDs become the same.
    stringNumbers: true,
  });
  // Each failed call reports its own error.
  client.on("error", () => {});
  return client;
});

// Reply of the first server that can give one.
async function ask(command, ...rest) {
  const until = Date.now() + WITHIN_MS;
  for (;;) {
    try {
      return await clients[0].call(command, source, ...rest);
    } catch (error) {
      if (Date.now() > until || /^(ERR|NOAUTH|NOPERM)/.test(error.message)) throw error;
      clients.push(clients.shift());
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

for (let printed = 0; printed < Number(count); printed += 10) {
  const ids = await ask("MINT", "10");
  console.log(ids.join("\n"));
}
clients.forEach((client) => client.disconnect());

// IDs from Snowmint over gRPC, with a client made from its committed proto.
//
//     node by_grpc.js PROTO_DIR HOST:PORT,HOST:PORT SOURCE COUNT [KEY]
//
// Prints COUNT IDs of SOURCE, one a line; with KEY, numbers of that counter. gRPC itself goes to the next
// server when one is gone, and asks again: a lost response is a gap, never a duplicate.

import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const [protos, servers, source, count, key] = process.argv.slice(2);
const askAgain = {
  loadBalancingConfig: [{ round_robin: {} }],
  methodConfig: [
    {
      name: [{ service: "snowmint.v1.Mint" }],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.05s",
        maxBackoff: "1s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
};

// IDs have up to 63 bits, and a JavaScript number 53: they come as text.
const definition = loadSync("snowmint/v1/mint.proto", { includeDirs: [protos], longs: String });
const { Mint } = grpc.loadPackageDefinition(definition).snowmint.v1;
const mint = new Mint(`ipv4:${servers}`, grpc.credentials.createInsecure(), {
  "grpc.service_config": JSON.stringify(askAgain),
});

function ask(request) {
  const metadata = new grpc.Metadata({ waitForReady: true });
  return new Promise((done, fail) => {
    const deadline = Date.now() + 30_000;
    mint.mint(request, metadata, { deadline }, (error, response) => (error ? fail(error) : done(response)));
  });
}

for (let printed = 0; printed < Number(count); printed += 10) {
  const { ids } = await ask({ source, count: 10, ...(key && { key }) });
  console.log(ids.join("\n"));
}
mint.close();

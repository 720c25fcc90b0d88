"""IDs from Snowmint over gRPC, with a client generated from its committed proto:

    python -m grpc_tools.protoc -I crates/wire/proto --python_out=. --grpc_python_out=. snowmint/v1/mint.proto
    python by_grpc.py HOST:PORT,HOST:PORT SOURCE COUNT [KEY]

Prints COUNT IDs of SOURCE, one a line; with KEY, numbers of that counter. gRPC itself goes to the next
server when one is gone, and asks again: a lost response is a gap, never a duplicate.
"""

import json
import sys

import grpc
from snowmint.v1 import mint_pb2, mint_pb2_grpc

ASK_AGAIN = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{"service": "snowmint.v1.Mint"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}


def main():
    servers, source, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    key = sys.argv[4] if len(sys.argv) > 4 else None
    options = [
        ("grpc.service_config", json.dumps(ASK_AGAIN)),
        # Of several addresses gRPC would make a name that no server accepts. Without tokens a server accepts
        # addresses, localhost and its own names (http.hosts).
        ("grpc.default_authority", "localhost"),
    ]
    with grpc.insecure_channel(f"ipv4:{servers}", options=options) as channel:
        mint = mint_pb2_grpc.MintStub(channel)
        for _ in range(count // 10):
            request = mint_pb2.MintRequest(source=source, count=10, key=key)
            # Waits for a server that can be reached, within the deadline.
            response = mint.Mint(request, timeout=30, wait_for_ready=True)
            for number in response.ids:
                print(number, flush=True)


main()

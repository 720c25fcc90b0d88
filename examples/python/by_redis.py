"""IDs from Snowmint with any Redis client: a server is a Redis that knows INCR and MINT.

    python by_redis.py HOST:PORT,HOST:PORT SOURCE COUNT

Prints COUNT IDs of SOURCE, one a line, and goes to the next server when one is gone. Asking again is
safe: a lost reply is a gap, never a duplicate.
"""

import sys
import time

import redis

WITHIN_SECONDS = 30


class Ids:
    def __init__(self, servers):
        self.clients = []
        for server in servers:
            host, port = server.rsplit(":", 1)
            client = redis.Redis(
                host=host, port=int(port), socket_connect_timeout=1, socket_timeout=2
            )
            self.clients.append(client)

    def ask(self, call):
        """Returns the reply of the first server that can give one."""
        until = time.monotonic() + WITHIN_SECONDS
        while True:
            try:
                return call(self.clients[0])
            except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.TryAgainError):
                if time.monotonic() > until:
                    raise
                self.clients.append(self.clients.pop(0))
                time.sleep(0.05)

    def one(self, source):
        return self.ask(lambda client: client.incr(source))

    def many(self, source, count):
        return self.ask(lambda client: client.execute_command("MINT", source, count))


def main():
    servers, source, count = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
    ids = Ids(servers)
    printed = 0
    while printed < count:
        batch = [ids.one(source)] + ids.many(source, 9)
        for number in batch:
            print(number, flush=True)
        printed += len(batch)


main()

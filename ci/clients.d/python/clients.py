"""Python clients of ci/clients. ../README.md describes the arguments and the output."""

import asyncio
import importlib.metadata
import inspect
import os
import sys
import time

CLIENT, SERVERS, SOURCE, OPS, OUT, STOP = sys.argv[1:]
CA, NAME, TOKEN = (os.environ.get(f"CLIENTS_{it}") for it in ("CA", "NAME", "TOKEN"))
KEYS = 32

SERVERS = [(host, int(port)) for host, port in (it.rsplit(":", 1) for it in SERVERS.split(","))]
REDIS_PY = dict(username=NAME, password=TOKEN)
if CA:
    REDIS_PY.update(ssl=True, ssl_ca_certs=CA)


class RedisPy:
    """A client with the interface of redis-py. Its calls return values, or in asyncio awaitables."""

    def __init__(self, client):
        self.client = client

    def incr(self, key):
        return self.client.incr(key)

    def mint(self, key, count):
        return self.client.execute_command("MINT", key, count)

    def multi(self, key):
        pipeline = self.client.pipeline(transaction=True)
        pipeline.incr(key)
        pipeline.incr(key)
        return pipeline.execute()


class Glide:
    def __init__(self, client):
        self.client = client

    def incr(self, key):
        return self.client.incr(key)

    def mint(self, key, count):
        return self.client.custom_command(["MINT", key, str(count)])

    def multi(self, key):
        import glide

        kind = glide.ClusterBatch if isinstance(self.client, glide.GlideClusterClient) else glide.Batch
        batch = kind(is_atomic=True)
        batch.incr(key)
        batch.incr(key)
        return self.client.exec(batch, raise_on_error=True)


async def glide(is_cluster, servers):
    import glide

    options = dict(addresses=[glide.NodeAddress(*it) for it in servers])
    if TOKEN:
        options["credentials"] = glide.ServerCredentials(password=TOKEN, username=NAME)
    advanced = (
        glide.AdvancedGlideClusterClientConfiguration
        if is_cluster
        else glide.AdvancedGlideClientConfiguration
    )
    if CA:
        tls = glide.TlsAdvancedConfiguration(root_pem_cacerts=open(CA, "rb").read())
        options.update(use_tls=True, advanced_config=advanced(tls_config=tls))
    if is_cluster:
        config = glide.GlideClusterClientConfiguration(**options)
        return Glide(await glide.GlideClusterClient.create(config))
    return Glide(await glide.GlideClient.create(glide.GlideClientConfiguration(**options)))


async def connect(servers):
    """Returns a client of one server, or of a cluster by some of its servers."""
    package, _, mode = CLIENT.partition("/")
    host, port = servers[0]
    if package == "redis-py":
        import redis
        import redis.asyncio
        import redis.asyncio.cluster
        import redis.cluster

        if mode == "sync":
            return RedisPy(redis.Redis(host=host, port=port, **REDIS_PY))
        if mode == "RESP3":
            return RedisPy(redis.Redis(host=host, port=port, protocol=3, **REDIS_PY))
        if mode == "asyncio":
            return RedisPy(redis.asyncio.Redis(host=host, port=port, **REDIS_PY))
        if mode == "cluster, replicas":
            nodes = [redis.cluster.ClusterNode(*it) for it in servers]
            client = redis.cluster.RedisCluster(
                startup_nodes=nodes, read_from_replicas=True, **REDIS_PY
            )
            return RedisPy(client)
        if mode == "asyncio cluster":
            nodes = [redis.asyncio.cluster.ClusterNode(*it) for it in servers]
            return RedisPy(redis.asyncio.cluster.RedisCluster(startup_nodes=nodes, **REDIS_PY))
    if package == "valkey-py":
        import valkey

        return RedisPy(valkey.Valkey(host=host, port=port, **REDIS_PY))
    if package == "valkey-glide (Python)":
        return await glide(mode == "cluster", servers)
    sys.exit(f"unknown client {CLIENT}")


def is_cluster():
    return "cluster" in CLIENT


def report(what, error):
    text = f"{type(error).__name__}: {error}".replace("\n", " ")
    print(int(time.time() * 1000), what, text[:300], file=sys.stderr, flush=True)


async def main():
    package = CLIENT.partition("/")[0].partition(" ")[0]
    package = {"redis-py": "redis", "valkey-py": "valkey"}.get(package, package)
    out = open(OUT, "w", encoding="ascii")
    print("version", importlib.metadata.version(package), file=out, flush=True)
    orders = [SERVERS] if is_cluster() else [[it] for it in SERVERS]
    clients, at, rounds = {}, dict.fromkeys(OPS.split(","), 0), 0
    while not os.path.exists(STOP):
        rounds += 1
        for op in at:
            try:
                place = at[op] % len(orders)
                if place not in clients:
                    clients[place] = await connect(orders[place])
                key = SOURCE
                if op == "counter":
                    key = "counters:{shared}"
                elif op == "keys":
                    key = f"counters:{CLIENT.replace(' ', '')}.{rounds % KEYS}"
                client = clients[place]
                call = {"batch": lambda: client.mint(key, 100), "multi": lambda: client.multi(key)}
                ids = call.get(op, lambda: client.incr(key))()
                if inspect.isawaitable(ids):
                    ids = await ids
                ids = ids if isinstance(ids, (list, tuple)) else [ids]
                if not all(isinstance(it, int) for it in ids):
                    raise ValueError(f"reply {ids} is no list of integers")
                print(int(time.time() * 1000), op, key, *ids, file=out, flush=True)
            except Exception as error:
                report(op, error)
                at[op] += 1
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)


asyncio.run(main())

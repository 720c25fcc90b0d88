<?php
// PHP clients of ci/clients. ../README.md describes the arguments and the output.

[, $client, $servers, $source, $ops, $path, $stop] = $argv;
[$ca, $name, $token] = array_map(fn($it) => getenv("CLIENTS_$it") ?: null, ['CA', 'NAME', 'TOKEN']);
const KEYS = 32;
$servers = explode(',', $servers);
$isCluster = str_contains($client, 'cluster');

class PhpRedis
{
    public function __construct(private Redis $redis)
    {
    }

    public function incr($key)
    {
        return $this->checked($this->redis->incr($key));
    }

    public function mint($key, $count)
    {
        return $this->checked($this->redis->rawCommand('MINT', $key, $count));
    }

    public function multi($key)
    {
        return $this->checked($this->redis->multi()->incr($key)->incr($key)->exec());
    }

    // The extension returns false for an error reply.
    private function checked($reply)
    {
        if ($reply === false) {
            throw new Exception($this->redis->getLastError() ?? 'false');
        }
        return $reply;
    }
}

class PhpRedisCluster
{
    public function __construct(private RedisCluster $redis)
    {
    }

    public function incr($key)
    {
        return $this->checked($this->redis->incr($key));
    }

    public function mint($key, $count)
    {
        return $this->checked($this->redis->rawCommand($key, 'MINT', $key, $count));
    }

    public function multi($key)
    {
        return $this->checked($this->redis->multi()->incr($key)->incr($key)->exec());
    }

    private function checked($reply)
    {
        if ($reply === false) {
            throw new Exception($this->redis->getLastError() ?? 'false');
        }
        return $reply;
    }
}

class Predis
{
    public function __construct(private Predis\Client $redis)
    {
    }

    public function incr($key)
    {
        return $this->redis->incr($key);
    }

    public function mint($key, $count)
    {
        return $this->redis->executeRaw(['MINT', $key, $count]);
    }

    public function multi($key)
    {
        return $this->redis->transaction(function ($transaction) use ($key) {
            $transaction->incr($key);
            $transaction->incr($key);
        });
    }
}

$connect = function (array $servers) use ($client, $ca, $name, $token) {
    [$host, $port] = explode(':', $servers[0]);
    $ssl = ['cafile' => $ca, 'verify_peer_name' => true];
    switch ($client) {
        case 'phpredis/single':
            $redis = new Redis();
            $redis->connect(($ca ? 'tls://' : '') . $host, (int) $port, 0, null, 0, 0, $ca ? ['stream' => $ssl] : []);
            if ($token) {
                $redis->auth([$name, $token]);
            }
            return new PhpRedis($redis);
        case 'phpredis/cluster':
            return new PhpRedisCluster(
                new RedisCluster(null, $servers, 1.5, 1.5, false, $token ? [$name, $token] : null, $ca ? $ssl : null)
            );
        case 'predis/single':
        case 'predis/cluster':
            require_once '/usr/share/php/Predis/Autoloader.php';
            Predis\Autoloader::register();
            $parameters = array_map(function ($server) use ($ca, $name, $token) {
                [$host, $port] = explode(':', $server);
                $scheme = $ca ? ['scheme' => 'tls', 'ssl' => ['cafile' => $ca]] : [];
                return ['host' => $host, 'port' => (int) $port] + $scheme + ($token ? ['password' => $token] : []);
            }, $servers);
            return new Predis(
                $client === 'predis/cluster'
                    ? new Predis\Client($parameters, ['cluster' => 'redis', 'parameters' => array_diff_key($parameters[0], ['host' => 1, 'port' => 1])])
                    : new Predis\Client($parameters[0])
            );
    }
    throw new Error("unknown client $client");
};

$now = fn() => (int) (microtime(true) * 1000);
// A program that is started again continues its file.
$out = fopen($path, 'a');
if (str_starts_with($client, 'predis')) {
    require_once '/usr/share/php/Predis/Autoloader.php';
    Predis\Autoloader::register();
}
fwrite($out, 'version ' . (str_starts_with($client, 'predis') ? Predis\Client::VERSION : phpversion('redis')) . "\n");
$orders = $isCluster ? [$servers] : array_map(fn($it) => [$it], $servers);
$clients = [];
$at = array_fill_keys(explode(',', $ops), 0);
for ($rounds = 0; !file_exists($stop); $rounds++) {
    clearstatcache();
    foreach (array_keys($at) as $op) {
        $place = $at[$op] % count($orders);
        try {
            $clients[$place] ??= $connect($orders[$place]);
            $key = match ($op) {
                'counter' => 'counters:{shared}',
                'keys' => 'counters:' . $client . '.' . $rounds % KEYS,
                default => $source,
            };
            $ids = match ($op) {
                'batch' => $clients[$place]->mint($key, 100),
                'multi' => $clients[$place]->multi($key),
                default => [$clients[$place]->incr($key)],
            };
            if (!is_array($ids) || array_filter($ids, fn($it) => !is_int($it))) {
                throw new Exception('reply is no list of integers: ' . json_encode($ids));
            }
            fwrite($out, $now() . " $op $key " . implode(' ', $ids) . "\n");
        } catch (Throwable $error) {
            fwrite(STDERR, $now() . " $op " . get_class($error) . ': ' . $error->getMessage() . "\n");
            // Programs in PHP open new connections for each request of a page.
            unset($clients[$place]);
            $at[$op]++;
            usleep(50000);
        }
    }
    usleep(100000);
}

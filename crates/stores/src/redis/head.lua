-- The head of a step: count of changes, store, namespace, the server's time and, if requested, the server's run.
local server = ARGV[1] == 'run' and run() or ''
local root = redis.call('HMGET', KEYS[1], 'writes', 'store', 'namespace')
local now = redis.call('TIME')
return {root[1] or '0', root[2] or '', root[3] or '', now[1], now[2], server}

-- The head of a step: count of changes, store, namespace, the server's time, the server and more fields. The server is
-- its run, if requested by ARGV[1] (empty where INFO does not say it); otherwise 'replica' if it follows another. From
-- the second on, each key has a field to read in the argument of the same place.
local server = ''
if ARGV[1] == 'run' then
  server = run() or ''
elseif string.find(redis.call('INFO', 'replication'), 'role:slave', 1, true) then
  server = 'replica'
end
local root = redis.call('HMGET', KEYS[1], 'writes', 'store', 'namespace')
local now = redis.call('TIME')
local fields = {}
for at = 2, #KEYS do fields[at - 1] = redis.call('HGET', KEYS[at], ARGV[at]) end
return {root[1] or '0', root[2] or '', root[3] or '', now[1], now[2], server, fields}

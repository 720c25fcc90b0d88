-- The head of a step: count of changes, store, namespace, the server's time and the server. The server is its run, if
-- requested (empty where INFO does not say it); otherwise 'replica' if it follows another.
local server = ''
if ARGV[1] == 'run' then
  server = run() or ''
elseif string.find(redis.call('INFO', 'replication'), 'role:slave', 1, true) then
  server = 'replica'
end
local root = redis.call('HMGET', KEYS[1], 'writes', 'store', 'namespace')
local now = redis.call('TIME')
return {root[1] or '0', root[2] or '', root[3] or '', now[1], now[2], server}

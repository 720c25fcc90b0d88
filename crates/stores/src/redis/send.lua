-- Executes a batch. KEYS[1] has the count of changes. ARGV[1] is the earliest time for the batch, in Unix milliseconds;
-- ARGV[2] the server's run, if each run is another store; ARGV[3] the store's record, if known; ARGV[4] the lowest count
-- of changes; ARGV[5] the number of expected fields.
-- Each expected field is three arguments: number of its key, field, version ('0': no such field).
-- The changes follow, four arguments each: number of its key, field, '=' or '-', value.
-- Returns the count of changes, or -1 when a field has another version, the time is too early, the count too low, or the
-- run or the store is another.
if ARGV[1] ~= '0' then
  local now = redis.call('TIME')
  if tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) < tonumber(ARGV[1]) then return -1 end
end
if ARGV[2] ~= '' and run() ~= ARGV[2] then return -1 end
if ARGV[3] ~= '' then
  local store = redis.call('HGET', KEYS[1], 'store')
  if not store or string.match(store, '^%d+ (.*)$') ~= ARGV[3] then return -1 end
end
if tonumber(redis.call('HGET', KEYS[1], 'writes') or '0') < tonumber(ARGV[4]) then return -1 end
local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local value = redis.call('HGET', KEYS[tonumber(ARGV[at])], ARGV[at + 1])
  local version = value and string.match(value, '^%d+') or '0'
  if version ~= ARGV[at + 2] then return -1 end
  at = at + 3
end
if at > #ARGV then return tonumber(redis.call('HGET', KEYS[1], 'writes') or '0') end
local writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)
local version = string.format('%.0f ', writes)
while at <= #ARGV do
  local key, field = KEYS[tonumber(ARGV[at])], ARGV[at + 1]
  if ARGV[at + 2] == '=' then
    redis.call('HSET', key, field, version .. ARGV[at + 3])
  else
    redis.call('HDEL', key, field)
  end
  at = at + 4
end
return writes

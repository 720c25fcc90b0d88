-- Takes numbers of a source in one step, if only the source's mark has changed since the caller read the rows.
-- KEYS: root hash, hash of the sources.
-- ARGV: 1 the store's record, 2 the server's run (empty unless each run is another store), 3 the lowest possible count
-- of changes, 4 the source, 5 the text before its mark, 6 the count of numbers.
-- Then nothing; or 'range', first, end; or 'now', epoch and unit in milliseconds, numbers a tick, last tick, lag and
-- lead in ticks.
-- Returns the values found: mark, floor, version, time (seconds, microseconds), namespace; and if there were numbers,
-- the count of changes, first number and end. Returns an empty list where the caller must stand back. Returns false
-- where the caller must read the rows, or a number exceeds Lua's exact range.
local EXACT = 9007199254740991
local root = redis.call('HMGET', KEYS[1], 'store', 'namespace', 'writes', 'way')
if root[1] ~= ARGV[1] or tonumber(root[3] or '0') < tonumber(ARGV[3]) then return false end
if ARGV[2] ~= '' and run() ~= ARGV[2] then return false end
local value = redis.call('HGET', KEYS[2], ARGV[4]) or ''
local before, mark, floor, version =
  string.match(value, '^%d+ (.*"mark":)(%d+),"floor":(%d+),"segment_version":(%d+)}$')
if not before or string.sub(before, -#ARGV[5]) ~= ARGV[5] then return false end
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local rest = tonumber(root[4] or '0') - ms
-- After the clock was set back, no caller stands back for longer.
if rest > 0 and rest <= 50 then return {} end
local first, length = tonumber(mark), tonumber(ARGV[6])
local stop = first + length
if ARGV[7] == 'range' then
  first = math.max(first, tonumber(ARGV[8]))
  stop = math.min(first + length, tonumber(ARGV[9]))
elseif ARGV[7] == 'now' then
  local epoch, unit, size = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
  local last, lag, lead = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
  local tick = math.floor((ms - epoch) / unit)
  if tick < 0 or tick > last then return false end
  -- Numbers lead only a clock that is behind issued numbers.
  local latest = math.floor((first - 1) / size) > tick and math.min(tick + lead, last) or tick
  first = math.max(first, math.max(tick - lag, 0) * size)
  stop = math.min(first + length, (latest + 1) * size)
end
if length < 1 or math.max(first, stop, length) > EXACT then return false end
local found = {mark, floor, version, now[1], now[2], root[2] or ''}
if first >= stop then return found end
local writes = redis.call('HINCRBY', KEYS[1], 'writes', 1)
local after = string.format('%.0f,"floor":%.0f,"segment_version":%.0f}', stop, first, version + 1)
redis.call('HSET', KEYS[2], ARGV[4], string.format('%.0f ', writes) .. before .. after)
for _, number in ipairs({writes, first, stop}) do
  found[#found + 1] = string.format('%.0f', number)
end
return found

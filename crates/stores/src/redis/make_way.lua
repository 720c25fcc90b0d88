-- Makes all callers of reserve.lua stand back for 50 ms: the field holds the end of that time, by the server's clock.
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
redis.call('HSET', KEYS[1], 'way', string.format('%.0f', ms + 50))

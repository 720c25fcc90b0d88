-- Has those who count by reserve.lua stand back for 50 ms: the field says until when, by the server's clock.
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
redis.call('HSET', KEYS[1], 'way', string.format('%.0f', ms + 50))

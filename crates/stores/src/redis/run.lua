-- Which run of the server this is, and which history of writes it goes on with: one that was promoted, or follows
-- another and was promoted again, goes on with a history of its own.
local function run()
  local id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') or ''
  return id .. '/' .. history
end

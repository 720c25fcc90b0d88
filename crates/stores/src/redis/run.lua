-- Returns the server's run, and the history of writes that the server continues. After a promotion a server continues a
-- history of its own, also if it follows another server in between and is promoted again.
local function run()
  local id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') or ''
  return id .. '/' .. history
end

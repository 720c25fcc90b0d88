-- Returns the server's run, and the history of writes that the server continues. After a promotion a server continues a
-- history of its own, also if it follows another server in between and is promoted again. Returns nothing where INFO
-- lacks one of them: the next run could not be distinguished from this one.
local function run()
  local id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  return id and history and id .. '/' .. history
end

# Ruby clients of ci/clients. ../README.md describes the arguments and the output.

require "redis"

KEYS = 32
CLIENT, SERVERS, SOURCE, OPS, OUT, STOP = ARGV
CA, NAME, TOKEN = %w[CA NAME TOKEN].map { |it| ENV["CLIENTS_#{it}"] }

def connect(servers)
  login = { username: NAME, password: TOKEN }.compact
  login[:ssl_params] = { ca_file: CA } if CA
  scheme = CA ? "rediss" : "redis"
  urls = servers.map { |it| "#{scheme}://#{it}" }
  CLIENT.include?("cluster") ? Redis.new(cluster: urls, **login) : Redis.new(url: urls[0], **login)
end

def call(redis, op, key)
  case op
  when "batch" then redis.call(["MINT", key, 100])
  when "multi"
    redis.multi do |transaction|
      transaction.incr(key)
      transaction.incr(key)
    end
  else [redis.incr(key)]
  end
end

now = -> { (Time.now.to_f * 1000).to_i }
servers = SERVERS.split(",")
orders = CLIENT.include?("cluster") ? [servers] : servers.map { |it| [it] }
clients = {}
at = OPS.split(",").to_h { |op| [op, 0] }
rounds = 0
File.open(OUT, "w") do |out|
  out.sync = true
  out.puts "version #{Redis::VERSION}"
  until File.exist?(STOP)
    rounds += 1
    at.each_key do |op|
      place = at[op] % orders.size
      clients[place] ||= connect(orders[place])
      key = { "counter" => "counters:{shared}", "keys" => "counters:#{CLIENT}.#{rounds % KEYS}" }.fetch(op, SOURCE)
      ids = call(clients[place], op, key)
      raise "reply #{ids} is no list of integers" unless ids.is_a?(Array) && ids.all?(Integer)

      out.puts "#{now.call} #{op} #{key} #{ids.join(' ')}"
    rescue StandardError => error
      warn "#{now.call} #{op} #{error.class}: #{error.message.tr("\n", ' ')}"
      at[op] += 1
      sleep 0.05
    end
    sleep 0.1
  end
end

// Go clients of ci/clients. ../README.md describes the arguments and the output.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

const keys = 32

var ctx = context.Background()

// client mints by one library, from one server or a cluster.
type client interface {
	incr(key string) ([]int64, error)
	mint(key string, count int) ([]int64, error)
	multi(key string) ([]int64, error)
}

func one(id int64, err error) ([]int64, error) { return []int64{id}, err }

type goRedis struct{ goredis.UniversalClient }

func (c goRedis) incr(key string) ([]int64, error) { return one(c.Incr(ctx, key).Result()) }

func (c goRedis) mint(key string, count int) ([]int64, error) {
	return c.Do(ctx, "MINT", key, count).Int64Slice()
}

func (c goRedis) multi(key string) ([]int64, error) {
	var replies [2]*goredis.IntCmd
	_, err := c.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		replies = [2]*goredis.IntCmd{pipe.Incr(ctx, key), pipe.Incr(ctx, key)}
		return nil
	})
	return []int64{replies[0].Val(), replies[1].Val()}, err
}

type rueidisClient struct{ rueidis.Client }

func (c rueidisClient) incr(key string) ([]int64, error) {
	return one(c.Do(ctx, c.B().Incr().Key(key).Build()).AsInt64())
}

func (c rueidisClient) mint(key string, count int) ([]int64, error) {
	return c.Do(ctx, c.B().Arbitrary("MINT").Keys(key).Args(fmt.Sprint(count)).Build()).AsIntSlice()
}

func (c rueidisClient) multi(key string) (ids []int64, err error) {
	err = c.Dedicated(func(own rueidis.DedicatedClient) error {
		replies := own.DoMulti(ctx, own.B().Multi().Build(), own.B().Incr().Key(key).Build(),
			own.B().Incr().Key(key).Build(), own.B().Exec().Build())
		ids, err = replies[len(replies)-1].AsIntSlice()
		return err
	})
	return ids, err
}

type redigo struct{ pool *redis.Pool }

func (c redigo) incr(key string) ([]int64, error) {
	connection := c.pool.Get()
	defer connection.Close()
	return one(redis.Int64(connection.Do("INCR", key)))
}

func (c redigo) mint(key string, count int) ([]int64, error) {
	connection := c.pool.Get()
	defer connection.Close()
	return redis.Int64s(connection.Do("MINT", key, count))
}

func (c redigo) multi(key string) ([]int64, error) {
	connection := c.pool.Get()
	defer connection.Close()
	connection.Send("MULTI")
	connection.Send("INCR", key)
	connection.Send("INCR", key)
	return redis.Int64s(connection.Do("EXEC"))
}

func config() *tls.Config {
	path := os.Getenv("CLIENTS_CA")
	if path == "" {
		return nil
	}
	authority, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: pool}
}

func connect(name string, servers []string) (client, error) {
	user, token := os.Getenv("CLIENTS_NAME"), os.Getenv("CLIENTS_TOKEN")
	switch name {
	case "go-redis/single":
		options := &goredis.Options{Addr: servers[0], Username: user, Password: token, TLSConfig: config()}
		return goRedis{goredis.NewClient(options)}, nil
	case "go-redis/cluster", "go-redis/cluster, ReadOnly":
		readOnly := strings.HasSuffix(name, "ReadOnly")
		options := &goredis.ClusterOptions{Addrs: servers, Username: user, Password: token, TLSConfig: config(), ReadOnly: readOnly}
		return goRedis{goredis.NewClusterClient(options)}, nil
	case "rueidis/cluster", "rueidis/single":
		single := name == "rueidis/single"
		options := rueidis.ClientOption{InitAddress: servers, Username: user, Password: token, TLSConfig: config(), ForceSingleClient: single}
		made, err := rueidis.NewClient(options)
		return rueidisClient{made}, err
	case "redigo/pool":
		options := []redis.DialOption{redis.DialUsername(user), redis.DialPassword(token)}
		if secure := config(); secure != nil {
			options = append(options, redis.DialUseTLS(true), redis.DialTLSConfig(secure))
		}
		dial := func() (redis.Conn, error) { return redis.Dial("tcp", servers[0], options...) }
		return redigo{&redis.Pool{MaxIdle: 2, Dial: dial}}, nil
	case "grpc-go/channel":
		return newGrpc(servers[0])
	}
	panic("unknown client " + name)
}

func version(name string) string {
	module := map[string]string{
		"go-redis": "github.com/redis/go-redis/v9",
		"rueidis":  "github.com/redis/rueidis",
		"redigo":   "github.com/gomodule/redigo",
		"grpc-go":  "google.golang.org/grpc",
	}[strings.Split(name, "/")[0]]
	build, _ := debug.ReadBuildInfo()
	for _, used := range build.Deps {
		if used.Path == module {
			return strings.TrimPrefix(used.Version, "v")
		}
	}
	return "unknown"
}

func main() {
	name, servers, source, ops := os.Args[1], strings.Split(os.Args[2], ","), os.Args[3], strings.Split(os.Args[4], ",")
	out, err := os.Create(os.Args[5])
	if err != nil {
		panic(err)
	}
	stop := os.Args[6]
	fmt.Fprintln(out, "version", version(name))
	orders := [][]string{servers}
	if !strings.Contains(name, "cluster") {
		orders = nil
		for _, server := range servers {
			orders = append(orders, []string{server})
		}
	}
	clients, at := make([]client, len(orders)), make([]int, len(ops))
	for rounds := 0; ; rounds++ {
		if _, err := os.Stat(stop); err == nil {
			return
		}
		for nth, op := range ops {
			ids, key, err := mint(name, source, op, rounds, orders, clients, at[nth]%len(orders))
			if err != nil {
				text := strings.ReplaceAll(err.Error(), "\n", " ")
				fmt.Fprintln(os.Stderr, time.Now().UnixMilli(), op, text)
				at[nth]++
				time.Sleep(50 * time.Millisecond)
				continue
			}
			fmt.Fprintln(out, time.Now().UnixMilli(), op, key, strings.Trim(fmt.Sprint(ids), "[]"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func mint(name, source, op string, rounds int, orders [][]string, clients []client, place int) (ids []int64, key string, err error) {
	if clients[place] == nil {
		made, err := connect(name, orders[place])
		if err != nil {
			return nil, "", err
		}
		clients[place] = made
	}
	switch op {
	case "batch":
		ids, err = clients[place].mint(source, 100)
		return ids, source, err
	case "multi":
		ids, err = clients[place].multi(source)
		return ids, source, err
	case "metadata":
		ids, err = clients[place].(grpcClient).metadata(source)
		return ids, source, err
	case "counter":
		key = "counters:{shared}"
	case "keys":
		key = fmt.Sprintf("counters:%s.%d", strings.ReplaceAll(name, " ", ""), rounds%keys)
	default:
		key = source
	}
	ids, err = clients[place].incr(key)
	return ids, key, err
}

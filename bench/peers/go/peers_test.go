// Package peers measures ID generators of Go; `bench/peers/run` runs it.
package peers

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"
)

var checked = flag.Int("checked", 0, "IDs that each of two threads mints for the check of uniqueness")

// starts has a function for each generator; threads share what it returns.
var starts = map[string]func() func() int64{
	"FLOOR": func() func() int64 {
		var counter atomic.Int64
		return func() int64 { return counter.Add(1) }
	},
	"BWMARRIN": func() func() int64 {
		snowflake.NodeBits, snowflake.StepBits = 1, 21
		node, err := snowflake.NewNode(0)
		if err != nil {
			panic(err)
		}
		return func() int64 { return node.Generate().Int64() }
	},
	"BWMARRIN_TWITTER": func() func() int64 {
		snowflake.NodeBits, snowflake.StepBits = 10, 12
		node, err := snowflake.NewNode(0)
		if err != nil {
			panic(err)
		}
		return func() int64 { return node.Generate().Int64() }
	},
	"SONYFLAKE": func() func() int64 {
		flake, err := sonyflake.New(sonyflake.Settings{
			BitsSequence:  21,
			BitsMachineID: 1,
			TimeUnit:      time.Millisecond,
			MachineID:     func() (int, error) { return 0, nil },
		})
		if err != nil {
			panic(err)
		}
		return func() int64 {
			id, err := flake.NextID()
			if err != nil {
				panic(err)
			}
			return id
		}
	},
}

func BenchmarkMint(b *testing.B) {
	for name, start := range starts {
		b.Run(name, func(b *testing.B) {
			next := start()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					next()
				}
			})
		})
	}
}

func TestUnique(t *testing.T) {
	for name, start := range starts {
		next, ids := start(), make([]int64, 2**checked)
		var threads sync.WaitGroup
		for half := range 2 {
			threads.Add(1)
			go func() {
				defer threads.Done()
				for at := half * *checked; at < (half+1)**checked; at++ {
					ids[at] = next()
				}
			}()
		}
		threads.Wait()
		slices.Sort(ids)
		fmt.Println(name, len(ids), len(ids)-len(slices.Compact(slices.Clone(ids))))
	}
}

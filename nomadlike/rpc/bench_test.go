package rpc

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
)

// BenchmarkIdleConnections reports what one idle connection with one open
// stream costs in memory, both ends together: a server with n nodes pays
// about half of it n times.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 200
	w := newCluster(b)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{ConnsPerPeerMax: connections + 1}, declareEchoes)
	credentials := w.credentials(auth.RoleClient, "n1")
	used := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse + m.StackInuse)
	}
	for b.Loop() {
		before, goroutines := used(), runtime.NumGoroutine()
		var pools []*Pool
		for i := range connections {
			pool := NewPool(Dialer{Identity: NewIdentity(credentials)})
			pools = append(pools, pool)
			conn, err := pool.Conn(Target{Addr: server.addr})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			stream, err := OpenStream[echo, echo](ctx, conn, "Echo.Stream")
			if err != nil {
				b.Fatal(err)
			}
			defer stream.Close()
			if err := stream.Send(&echo{Text: fmt.Sprint(i)}); err != nil {
				b.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((used()-before)/connections, "B/conn")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/connections, "goroutines/conn")
		for _, pool := range pools {
			pool.Close()
		}
	}
}

package wire

import (
	"fmt"
	"sync"
	"testing"

	"nomadlike/nomadlike/structs"
)

// BenchmarkNewGoroutine decodes what a node says in a goroutine whose stack is
// new, as after a garbage collection.
func BenchmarkNewGoroutine(b *testing.B) {
	hello := &structs.NodeRegister{Node: structs.Node{
		ID: "0123456789abcdef0123456789abcdef", Name: "node-1", Addr: "10.0.0.1",
		Drivers: []string{"exec"}, Topology: []string{"rack-1"}, Capacity: structs.Capacity{CPU: 64, Memory: 1 << 40},
	}}
	for i := range 8 {
		hello.Node.Devices = append(hello.Node.Devices, structs.Device{
			ID: fmt.Sprintf("GPU-%d", i), Kind: "nvidia/gpu",
			Model: "NVIDIA A800-SXM4-80GB", Memory: 80 << 30, Healthy: true, LinkGroup: "0",
		})
	}
	for name, up := range map[string]*structs.SessionUp{
		"hello":     {Hello: hello},
		"heartbeat": {Heartbeat: &structs.Heartbeat{Seq: 1, SentAt: 1 << 50}},
	} {
		data, err := Marshal(up)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			var one sync.WaitGroup
			for range b.N {
				one.Go(func() {
					var decoded structs.SessionUp
					if err := Unmarshal(data, &decoded); err != nil {
						b.Error(err)
					}
				})
				one.Wait()
			}
		})
	}
}

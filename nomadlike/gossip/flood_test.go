package gossip

import (
	"encoding/binary"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
)

// onLoopback is a member on the real network.
func onLoopback(t *testing.T, name string, seeds ...string) *Gossip {
	t.Helper()
	g, err := Open(Config{
		Name: name, Key: testKey(1), Logger: slog.New(slog.DiscardHandler), BindAddr: "127.0.0.1", Port: -1, AdvertiseAddr: "127.0.0.1", Seeds: seeds,
		Meta: Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: "127.0.0.1:1"}, Scale: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// TestStreamsWithoutKey: strangers open many streams and promise, and send,
// as much as memberlist would take of each before it looks for the key.
func TestStreamsWithoutKey(t *testing.T) {
	const streams, promised, sent = 100, 19 << 20, 4 << 20
	g := onLoopback(t, "s1")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	head := append([]byte{244, byte(len(DefaultLabel))}, DefaultLabel...) // the label, an encrypted message, its length
	head = binary.BigEndian.AppendUint32(append(head, 10), promised)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	var sending sync.WaitGroup
	stop := make(chan struct{})
	var highest struct {
		sync.Mutex
		heap, bytes, open int64
	}
	for range streams {
		conn, err := dialer.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		sending.Go(func() {
			defer conn.Close()
			if _, err := conn.Write(head); err != nil {
				return
			}
			block := make([]byte, 64<<10)
			for total := 0; total < sent; total += len(block) {
				if _, err := conn.Write(block); err != nil {
					return
				}
			}
			<-stop
		})
	}
	look := func() {
		g.door.mu.Lock()
		bytes, open := g.door.mu.bytes, g.door.mu.open
		g.door.mu.Unlock()
		runtime.ReadMemStats(&after)
		highest.Lock()
		defer highest.Unlock()
		highest.heap, highest.bytes, highest.open = max(highest.heap, int64(after.HeapAlloc)-int64(before.HeapAlloc)), max(highest.bytes, bytes), max(highest.open, int64(open))
	}
	eventually.Within(t, time.Minute, "streams are refused", func() bool {
		look()
		return g.Counts().Refused >= streams-streamsPerAddress-1
	})
	other := onLoopback(t, "s2", g.Addr()) // from 127.0.0.1
	eventually.Within(t, time.Minute, "another member joins meanwhile", func() bool {
		look()
		return other.View("s1").State == StateAlive && g.View("s2").State == StateAlive
	})
	close(stop)
	sending.Wait()
	t.Log("highest: heap " + strconv.FormatInt(highest.heap>>20, 10) + " MiB, read " + strconv.FormatInt(highest.bytes>>20, 10) + " MiB, streams " + strconv.FormatInt(highest.open, 10))
	// A read in flight may go over by what it reads; buffers double as they grow.
	if slack := int64(streamsPerAddress * 64 << 10); highest.bytes > addressBytesMax+slack || highest.open > streamsPerAddress+8 {
		t.Errorf("%d bytes of %d streams were let in", highest.bytes, highest.open)
	}
	if highest.heap > 150<<20 {
		t.Errorf("the heap grew by %d MiB", highest.heap>>20)
	}
	eventually.Within(t, time.Minute, "all of it is given back", func() bool {
		g.door.mu.Lock()
		defer g.door.mu.Unlock()
		for from := range g.door.mu.byAddr {
			if from.Addr().String() == "127.0.0.2" {
				return false
			}
		}
		return true
	})
}

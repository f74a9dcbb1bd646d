package gossip

import (
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
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
			if from.Addr().String() == "127.0.0.2" && g.door.mu.byAddr[from].open > 0 {
				return false
			}
		}
		return true
	})
}

// talker is a stream from an address that sends without end.
type talker struct {
	net.Conn
	from net.Addr
}

func (t talker) RemoteAddr() net.Addr       { return t.from }
func (t talker) Read(p []byte) (int, error) { return len(p), nil }
func (talker) Close() error                 { return nil }

// TestWhoSendsTooMuchWaits: an address that went over its bytes opens no stream
// for a while, so that it cannot make garbage without end; others do.
func TestWhoSendsTooMuchWaits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	d := &door{now: func() time.Time { return now }}
	d.mu.byAddr = make(map[netip.Prefix]*visitors)
	from := func(ip string) net.Conn { return talker{from: &net.TCPAddr{IP: net.ParseIP(ip), Port: 7}} }
	bad := d.admit(from("10.0.0.7"))
	var err error
	for block := make([]byte, 1<<20); err == nil; {
		_, err = bad.Read(block)
	}
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	if d.admit(from("10.0.0.7")) != nil {
		t.Error("it opens another stream at once")
	}
	if d.admit(from("10.0.0.8")) == nil {
		t.Error("another address is shut out with it")
	}
	now = now.Add(shutFor)
	if again := d.admit(from("10.0.0.7")); again == nil {
		t.Error("it is shut out for ever")
	} else if err := again.Close(); err != nil || d.mu.byAddr[again.from] != nil {
		t.Errorf("%+v is remembered, %v", d.mu.byAddr[again.from], err)
	}
}

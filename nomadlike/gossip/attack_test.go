package gossip

import (
	"bytes"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// rawMember is a member of memberlist without our checks: what an attacker
// would write. Key nil means no encryption.
func rawMember(t *testing.T, w *cluster, number int, name, label string, key, meta []byte) *memberlist.Memberlist {
	t.Helper()
	transport, err := w.network.Transport(hostNamed(number) + ":4648")
	if err != nil {
		t.Fatal(err)
	}
	config := memberlist.DefaultLANConfig()
	config.Name, config.Label, config.SecretKey = name, label, key
	config.Transport = transport
	config.Logger = log.New(io.Discard, "", 0)
	config.TCPTimeout = time.Second
	config.Delegate = rawMeta(meta)
	list, err := memberlist.Create(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Shutdown() })
	return list
}

type rawMeta []byte

func (m rawMeta) NodeMeta(int) []byte           { return m }
func (rawMeta) NotifyMsg([]byte)                {}
func (rawMeta) GetBroadcasts(_, _ int) [][]byte { return nil }
func (rawMeta) LocalState(bool) []byte          { return nil }
func (rawMeta) MergeRemoteState([]byte, bool)   {}

func goodMeta(t *testing.T, cluster string) []byte {
	t.Helper()
	data, err := Meta{Cluster: cluster, Role: roleServer, RPCAddr: "10.6.6.6:4646"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStrangersAreNotHeard(t *testing.T) {
	cases := []struct {
		name, member, label string
		key                 []byte
		meta                func(*testing.T) []byte
	}{
		{"no encryption", "evil", DefaultLabel, nil, func(t *testing.T) []byte { return goodMeta(t, testClusterID) }},
		{"wrong key", "evil", DefaultLabel, testKey(9), func(t *testing.T) []byte { return goodMeta(t, testClusterID) }},
		{"wrong label", "evil", "other", testKey(1), func(t *testing.T) []byte { return goodMeta(t, testClusterID) }},
		{"no label", "evil", "", testKey(1), func(t *testing.T) []byte { return goodMeta(t, testClusterID) }},
		{"another cluster with the same key", "evil", DefaultLabel, testKey(1), func(t *testing.T) []byte { return goodMeta(t, "beef") }},
		{"no metadata", "evil", DefaultLabel, testKey(1), func(*testing.T) []byte { return nil }},
		{"large metadata", "evil", DefaultLabel, testKey(1), func(*testing.T) []byte { return bytes.Repeat([]byte{0x40}, 512) }},
		{"random metadata", "evil", DefaultLabel, testKey(1), func(*testing.T) []byte { return []byte{0xff, 0, 0x1b} }},
		{"hostile name", "evil\x1b]0;owned\a", DefaultLabel, testKey(1), func(t *testing.T) []byte { return goodMeta(t, testClusterID) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t)
				w.cluster(2, 0)
				w.within(2*time.Second, "they see each other", w.allSee("s1 alive", "s2 alive"))
				stranger := rawMember(t, w, 66, c.member, c.label, c.key, c.meta(t))
				for range 5 {
					_, _ = stranger.Join([]string{"10.0.0.1:4648"})
					to := &memberlist.Node{Name: "s1", Addr: net.ParseIP("10.0.0.1"), Port: 4648}
					_ = stranger.SendBestEffort(to, []byte("hello"))
					time.Sleep(time.Second)
				}
				if !w.allSee("s1 alive", "s2 alive")() {
					t.Errorf("s1 sees %q", states(w.members["s1"]))
				}
				if counts := w.members["s1"].Counts(); counts.Refused == 0 {
					t.Error("nothing was counted")
				}
			})
		})
	}
}

// TestReplayAndNoise sends recorded packets again, in any order and changed,
// to a cluster in which one member has died and one has come back since.
func TestReplayAndNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		type packet struct {
			from, to string
			data     []byte
		}
		var recorded []packet
		w.network.Watch(func(from, to string, data []byte) {
			if len(recorded) < 3000 {
				recorded = append(recorded, packet{from, to, bytes.Clone(data)})
			}
		})
		w.cluster(3, 2)
		w.within(2*time.Second, "all see all", func() bool { return len(w.members["n5"].Members()) == 5 })
		time.Sleep(2 * time.Second)
		w.crash("n4") // its death is recorded
		w.within(3*time.Second, "n4 is dead", func() bool { return w.members["s1"].View("n4").State == StateDead })
		time.Sleep(2 * time.Second)
		w.network.Watch(nil)
		w.open(w.config(4, roleClient))
		everybody := w.allSee("n4 alive", "n5 alive", "s1 alive", "s2 alive", "s3 alive")
		w.within(5*time.Second, "n4 is back", everybody)
		time.Sleep(time.Second)

		random := rand.New(rand.NewPCG(1, 2))
		for i := range 2000 {
			p := recorded[random.IntN(len(recorded))]
			data := bytes.Clone(p.data)
			if i%2 == 1 { // a changed byte is noise: GCM refuses it
				data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
			}
			w.network.Inject(p.from, p.to, data)
			if i%20 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			for name, g := range w.members {
				if state := g.View("n4").State; state == StateDead || state == StateLeft {
					t.Fatalf("after %d packets %s sees n4 %s", i, name, state)
				}
			}
		}
		w.within(5*time.Second, "all see all", everybody)
		refused := uint64(0)
		for _, g := range w.members {
			refused += g.Counts().Refused
		}
		if refused < 500 {
			t.Errorf("%d packets were counted as refused", refused)
		}
	})
}

func TestRubbish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		w.cluster(2, 0)
		w.within(2*time.Second, "they see each other", w.allSee("s1 alive", "s2 alive"))
		random := rand.New(rand.NewPCG(3, 4))
		transport, err := w.network.Transport("10.0.0.66:4648")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = transport.Shutdown() }()
		for i := range 500 {
			data := make([]byte, random.IntN(1500))
			for j := range data {
				data[j] = byte(random.Uint32())
			}
			if len(data) > 0 && i%3 == 0 {
				data[0] = byte(i % 256) // message types, and the label's marker
			}
			w.network.Inject("10.0.0.66:4648", "10.0.0.1:4648", data)
			if i%10 == 0 {
				conn, err := transport.DialTimeout("10.0.0.1:4648", time.Second)
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				_, _ = conn.Write(data)
				_ = conn.Close()
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(10 * time.Second)
		if !w.allSee("s1 alive", "s2 alive")() || w.members["s1"].Counts().Refused < 400 {
			t.Errorf("s1 sees %v, counts %+v", states(w.members["s1"]), w.members["s1"].Counts())
		}
	})
}

func FuzzDecodeMeta(f *testing.F) {
	good, err := Meta{Cluster: testClusterID, Role: roleServer, RPCAddr: "10.0.0.1:4646", Protocol: 1, Version: "0.1"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0xa1, 0x01, 0x61, 'c'})
	f.Fuzz(func(t *testing.T, data []byte) {
		meta, err := decodeMeta(data)
		if err != nil {
			return
		}
		again, err := meta.encode()
		if err != nil {
			return // unknown fields made room for more than fits
		}
		if second, err := decodeMeta(again); err != nil || second != meta {
			t.Fatalf("%+v came back as %+v, %v", meta, second, err)
		}
	})
}

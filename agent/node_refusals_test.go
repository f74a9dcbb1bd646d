package agent

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// What a node's agent refuses at its own door is in the record, as that node's word, and
// what a server refuses of what came through a node says which and from where; no node
// can say anything else there.
func TestRefusalsAtNodesAreRecorded(t *testing.T) {
	c := startCluster(t, 1, 1)
	server, node := c.servers[0], c.clients[0]
	at := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities(t, server.CA())}}}
	ask := func(path string, change func(*http.Request)) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+node.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		change(request)
		answer, err := at.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(body)
	}
	foreign, body := ask("/v1/jobs", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
	if foreign.StatusCode != http.StatusForbidden || !strings.Contains(body, "agent.foreign_origin") {
		t.Fatalf("a page of somebody else: %s %s", foreign.Status, body)
	}
	rebound, body := ask("/v1/jobs", func(r *http.Request) { r.Host = "evil.example" })
	if rebound.StatusCode != http.StatusMisdirectedRequest {
		t.Fatalf("another name: %s %s", rebound.Status, body)
	}
	wrong, body := ask("/v1/jobs", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer not-a-token")
		r.Header.Set("X-Nomadlike-For", "203.0.113.9") // whoever asks may not say it
	})
	if wrong.StatusCode != http.StatusUnauthorized {
		t.Fatalf("a wrong token: %s %s", wrong.Status, body)
	}
	if ids := wrong.Header.Values(api.HeaderRequestID); len(ids) != 1 {
		t.Errorf("the answer has the ids %q", ids)
	}
	var door, token []audit.Record
	waitFor(t, "the node's word", func() bool { door = recordsOf(t, server, audit.ActionDoor); return len(door) == 2 })
	token = recordsOf(t, server, "jobs.list")
	want := map[string]string{"agent.foreign_origin": foreign.Header.Get(api.HeaderRequestID), "agent.misdirected": rebound.Header.Get(api.HeaderRequestID)}
	for _, r := range door {
		if r.Node != node.ID() || r.Said != "127.0.0.1" || r.Outcome != audit.Refused || want[r.Reason] == "" || r.Request != want[r.Reason] || r.Object.ID != node.ID() {
			t.Errorf("recorded %+v", r)
		}
		delete(want, r.Reason)
	}
	if len(token) != 1 || token[0].Outcome != audit.Refused || token[0].Node != node.ID() || token[0].Said != "127.0.0.1" || token[0].Forwarded != 1 {
		t.Errorf("of the wrong token %+v", token)
	}

	// A hostile node: whatever it says, the lines are its own, and few.
	_, err := tellRefusals(t, node, server, structs.NodeRefusals{Refusals: make([]structs.NodeRefusal, structs.NodeRefusalsMax+1)})
	if structs.CodeOf(err) != structs.CodeTooLarge {
		t.Errorf("too many at a time: %v", err)
	}
	hostile := structs.NodeRefusals{}
	for range structs.NodeRefusalsMax {
		hostile.Refusals = append(hostile.Refusals, structs.NodeRefusal{
			Request: "x\n{\"seq\":1}", Address: strings.Repeat("a", 1000), Reason: "auth.forbidden <b>", Count: -5, Ago: -structs.Duration(time.Hour),
		})
	}
	for range 4 {
		if _, err := tellRefusals(t, node, server, hostile); err != nil {
			t.Fatal(err)
		}
	}
	door = recordsOf(t, server, audit.ActionDoor)
	if len(door) != refusalsSingle {
		t.Errorf("258 of a node within a minute have %d lines", len(door))
	}
	if r := door[0]; r.Node != node.ID() || r.Request != "" || r.Reason != "" || len(r.Said) > 256 || r.Count != 0 || r.Took != 0 || r.Outcome != audit.Refused || r.Actor != (audit.Actor{}) {
		t.Errorf("recorded %+v", r)
	}
}

func tellRefusals(t *testing.T, node, server *Agent, told structs.NodeRefusals) (*structs.NodeRefusalsKept, error) {
	t.Helper()
	conn, err := node.pool.Conn(rpc.Target{Addr: server.Addr(), Expect: auth.Expect{Role: auth.RoleServer}})
	if err != nil {
		t.Fatal(err)
	}
	return rpc.Call[structs.NodeRefusals, structs.NodeRefusalsKept](t.Context(), conn, structs.MethodServerRefusals, &told)
}

// While no server answers a node keeps a bounded number of them, and counts the rest.
func TestNodeRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodeRefusals(nil, func() []string { return nil }, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.run(ctx) }()
		for range refusalsHeld + 10 {
			if err := n.Append(audit.Record{Address: "192.0.2.7", Reason: "agent.misdirected"}); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Hour)
		n.mu.Lock()
		held, lost := len(n.mu.held), n.mu.lost
		n.mu.Unlock()
		if held != refusalsHeld || lost != 10 {
			t.Errorf("it holds %d and counts %d", held, lost)
		}
		cancel()
		<-done
	})
}

// What one node says too often is counted, and does not keep another's from the record.
func TestRefusalsOfANodeAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept kept
		taker := newRefusalTaker(&kept, time.Now)
		loud := make([]structs.NodeRefusal, structs.NodeRefusalsMax)
		for range 10 {
			taker.take("loud", "192.0.2.1", loud)
		}
		taker.take("quiet", "192.0.2.2", loud[:1])
		<-time.After(refusalsPer)
		taker.sweep(false)
		if len(kept) != refusalsSingle+2 {
			t.Fatalf("%d lines", len(kept))
		}
		if quiet, rest := kept[refusalsSingle], kept[refusalsSingle+1]; quiet.Node != "quiet" || rest.Node != "loud" || rest.Count != 640-refusalsSingle {
			t.Errorf("recorded %+v, %+v", quiet, rest)
		}
	})
}

// kept is a recorder in memory.
type kept []audit.Record

func (k *kept) Append(r audit.Record) error {
	*k = append(*k, r)
	return nil
}

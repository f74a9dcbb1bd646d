package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// badNode answers for one file as a node does, and has faults.
type badNode struct {
	data  []byte
	cut   int  // bytes of a body after which it breaks off; 0: never
	flips int  // answers of which a byte is changed on the way
	old   bool // it knows no digests
	away  int  // questions that are not answered
	sent  int  // bytes of bodies
}

func (n *badNode) RoundTrip(request *http.Request) (*http.Response, error) {
	if n.away > 0 {
		n.away--
		return nil, errors.New("connection refused")
	}
	query := request.URL.Query()
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: request}
	if strings.HasSuffix(request.URL.Path, "/files") {
		var offset, limit int
		fmt.Sscan(query.Get("offset"), &offset)
		fmt.Sscan(query.Get("limit"), &limit)
		text := fmt.Sprintf(`{"entry": {"size": %d}`, len(n.data))
		if !n.old {
			text += fmt.Sprintf(`, "sha256": %q`, sumOf(n.data[min(offset, len(n.data)):min(offset+limit, len(n.data))]))
		}
		answer.Body = io.NopCloser(strings.NewReader(text + "}"))
		return answer, nil
	}
	var from, to int
	fmt.Sscanf(request.Header.Get("Range"), "bytes=%d-%d", &from, &to)
	if from >= len(n.data) {
		answer.StatusCode = http.StatusRequestedRangeNotSatisfiable
		answer.Body = io.NopCloser(strings.NewReader(`{"code": "invalid", "id": "agent.range"}`))
		return answer, nil
	}
	part := bytes.Clone(n.data[from:min(to+1, len(n.data))])
	answer.StatusCode, answer.ContentLength = http.StatusPartialContent, int64(len(part))
	if !n.old {
		answer.Header.Set("Content-Digest", api.ContentDigest(sumOf(part)))
	}
	if n.flips > 0 {
		n.flips--
		part[len(part)/2] ^= 1
	}
	if n.cut > 0 && len(part) > n.cut {
		part = part[:n.cut]
	}
	n.sent += len(part)
	answer.Body = io.NopCloser(bytes.NewReader(part))
	return answer, nil
}

func (n *badNode) file(t *testing.T) *remoteFile {
	t.Helper()
	client, err := api.New(api.Config{HTTPClient: &http.Client{Transport: n}, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &remoteFile{client: client, job: "j", path: "outputs/x", size: int64(len(n.data))}
}

func some(bytes int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, bytes)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestPart gets a part of a file from nodes with faults: what comes is what the node has,
// or the error says why not.
func TestPart(t *testing.T) {
	data := some(100_000)
	for name, test := range map[string]struct {
		node     badNode
		verified bool
		fails    string
		most     int // bytes that are sent
	}{
		"good":                     {node: badNode{}, verified: true, most: 100_000},
		"breaks off":               {node: badNode{cut: 30_000}, verified: true, most: 100_000},
		"away for a while":         {node: badNode{away: 4}, verified: true, most: 100_000},
		"away":                     {node: badNode{away: 1000}, fails: "api.unreachable"},
		"changed on the way once":  {node: badNode{flips: 1}, verified: true, most: 200_000},
		"and in pieces":            {node: badNode{flips: 2, cut: 60_000}, verified: true, most: 200_000},
		"changed always":           {node: badNode{flips: 100}, fails: "cli.files.wrong_bytes"},
		"old":                      {node: badNode{old: true}, most: 100_000},
		"old, and changed unheard": {node: badNode{old: true, cut: 10_000}, most: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := test.node
				node.data = data
				got, verified, err := node.file(t).part(t.Context(), 0, int64(len(data)))
				var refused *structs.Error
				switch {
				case test.fails != "":
					if !errors.As(err, &refused) || refused.ID != test.fails {
						t.Errorf("%v, not %s", err, test.fails)
					}
				case err != nil || !bytes.Equal(got, data) || verified != test.verified || node.sent > test.most:
					t.Errorf("%d bytes, verified %t, %d sent: %v", len(got), verified, node.sent, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		node := badNode{data: data}
		file := node.file(t)
		node.data = data[:50_000] // shorter now
		var refused *structs.Error
		if _, _, err := file.part(t.Context(), 0, int64(len(data))); !errors.As(err, &refused) || refused.ID != "cli.files.changed" {
			t.Error(err)
		}
	})
}

// TestAgrees compares what lies here without a byte being sent.
func TestAgrees(t *testing.T) {
	data := some(5000)
	node := &badNode{data: data}
	name := filepath.Join(t.TempDir(), "x")
	for _, test := range []struct {
		here        []byte
		want        int64
		known, aged bool
	}{
		{here: data, want: 5000, known: true},
		{here: data[:1234], want: 1234, known: true},
		{here: append(bytes.Clone(data[:10]), "other"...), want: 0, known: true},
		{here: nil, known: true},
		{here: data, aged: true},
	} {
		if err := os.WriteFile(name, test.here, 0o600); err != nil {
			t.Fatal(err)
		}
		node.old = test.aged
		same, known, err := node.file(t).agrees(t.Context(), name, int64(len(test.here)))
		if same != test.want || known != test.known || err != nil {
			t.Errorf("%d bytes here: %d agree, known %t, %v", len(test.here), same, known, err)
		}
	}
	if node.sent > 0 {
		t.Errorf("%d bytes were sent", node.sent)
	}
}

// TestFetchAll gets parts in their order, several at a time, and leaves nobody behind.
func TestFetchAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy, most atomic.Int64
		stream := fetchAll(t.Context(), func(yield func(fetchTask) bool) {
			for i := range 50 {
				if !yield(func(ctx context.Context) fetched {
					most.Store(max(most.Load(), busy.Add(1)))
					pause(ctx, fetchWait*time.Duration(i%3+1))
					busy.Add(-1)
					return fetched{offset: int64(i)}
				}) {
					return
				}
			}
		})
		for i := range 20 {
			if part, more := stream.next(); !more || part.offset != int64(i) {
				t.Fatalf("part %d is %d, %t", i, part.offset, more)
			}
		}
		stream.close() // synctest fails when something still runs
		if n := most.Load(); n < 2 || n > fetchAhead+2 {
			t.Errorf("%d at a time", n)
		}
	})
}

package agent

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/structs"
)

// farFiles is a dataset of a file that is copied in four parts, and of small
// ones.
func farFiles() map[string][]byte {
	source := rand.NewChaCha8([32]byte{9})
	files := map[string][]byte{"large": make([]byte, 3*16<<20+17)}
	for i := range 6 {
		files[fmt.Sprintf("small/%d", i)] = make([]byte, 1000+i)
	}
	for _, text := range files {
		_, _ = source.Read(text)
	}
	return files
}

// slowServer serves the contents of the first files, or parts of files, whole,
// and of all others the first bytes: those answers stand still until the agent
// is gone.
type slowServer struct {
	mu struct {
		sync.Mutex
		callers map[string]bool           // addresses of all connections so far
		killed  map[string]bool           // those of the agent that was killed
		asked   map[string]map[string]int // by file and range, of a caller's address
		served  int
		quick   bool
	}
}

// accepted notes whom the server has accepted.
func (s *slowServer) accepted(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.callers[conn.RemoteAddr().String()] = true
	}
}

// gone is called when the first agent has been killed. What it asked for last may
// still lie in a connection that nobody has accepted; one of our own, made after
// them, is accepted after them.
func (s *slowServer) gone(t *testing.T, url string) {
	t.Helper()
	own := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := own.Head(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.killed, s.mu.quick = maps.Clone(s.mu.callers), true
}

// requests returns how often each part was asked for by the agent that was killed,
// and by the one after it.
func (s *slowServer) requests() (before, after map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after = make(map[string]int), make(map[string]int)
	for caller, parts := range s.mu.asked {
		asked := after
		if s.mu.killed[caller] {
			asked = before
		}
		for part, times := range parts {
			asked[part] += times
		}
	}
	return before, after
}

func (s *slowServer) faults(whole int) *remote.Faults {
	s.mu.asked, s.mu.callers = make(map[string]map[string]int), make(map[string]bool)
	return &remote.Faults{Stall: func(r *http.Request) bool {
		part := r.Header.Get("Range")
		if r.Method != http.MethodGet || part == "bytes=0-0" || strings.HasSuffix(r.URL.Path, remote.ListDefault) || r.URL.Query().Has("list-type") {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mu.asked[r.RemoteAddr] == nil {
			s.mu.asked[r.RemoteAddr] = make(map[string]int)
		}
		s.mu.asked[r.RemoteAddr][r.URL.Path+" "+part]++
		s.mu.served++
		return !s.mu.quick && s.mu.served > whole
	}}
}

// TestKilledAgentGoesOnWithACopy kills an agent in the middle of its copy of a
// dataset on a web server, and on an object store. The next one asks for what is
// missing and not for what is there; the job reads every byte as it must be, and
// until all is there nothing is called a copy.
func TestKilledAgentGoesOnWithACopy(t *testing.T) {
	const whole = 2 // requests that are answered before the kill
	files := farFiles()
	bucket := &remote.FakeStore{Bucket: "datasets", AccessKey: "who", SecretKey: "what", Page: 3}
	site, sources := t.TempDir(), t.TempDir()
	put := func(name string, text []byte) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := ""
	for name, text := range files {
		bucket.Put("words/"+name, text)
		put(filepath.Join(site, "words", name), text)
		list += "-  " + name + "\n"
	}
	put(filepath.Join(site, "words", remote.ListDefault), []byte(list))
	keys := filepath.Join(sources, "keys")
	put(keys, []byte("[default]\naws_access_key_id = who\naws_secret_access_key = what\n"))

	for name, far := range map[string]struct {
		server  http.Handler
		storage func(url string) config.StorageBlock
	}{
		"http": {http.FileServer(http.Dir(site)), func(url string) config.StorageBlock {
			return config.StorageBlock{Name: "far", HTTP: &config.StorageHTTPBlock{URL: url}}
		}},
		"s3": {bucket, func(url string) config.StorageBlock {
			return config.StorageBlock{Name: "far", S3: &config.StorageS3Block{URL: url, Bucket: "datasets", CredentialsFile: &keys}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			slow := &slowServer{}
			server := httptest.NewUnstartedServer(slow.faults(whole).Around(far.server))
			server.Config.ConnState = slow.accepted
			server.Start()
			defer server.Close()
			dir, nas, free := t.TempDir(), t.TempDir(), 0.001
			httpPort, gossip := freePort(t), freePort(t)
			told := processSettings{Dir: dir, HTTP: httpPort, Gossip: gossip, Data: &config.DataBlock{FreeMin: &free}, Storages: []config.StorageBlock{{Name: "nas", Path: nas, Serves: []string{structs.StorageOutput}}, far.storage(server.URL)}}
			p := startProcess(t, told)
			client := setUp(t, dir, httpPort)
			job := runJob(t, client, `job "far" {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "cp -r /workspace/dataset/private/words /workspace/outputs"
  }
  dataset "words" { storage = "far" }
  output "copies" { storage = "nas" }
}`, structs.JobStarting)
			// A journal has a header of 32 bytes, and the first record is written at once.
			eventually.Within(t, time.Minute, "a part is copied, and others have begun", func() bool {
				journals, _ := filepath.Glob(filepath.Join(dir, "client/data/parts/*/journal"))
				if len(journals) != 1 {
					return false
				}
				info, err := os.Stat(journals[0])
				slow.mu.Lock()
				defer slow.mu.Unlock()
				return err == nil && info.Size() > 32 && slow.mu.served > whole
			})
			p.end(syscall.SIGKILL)
			if sets, _ := filepath.Glob(filepath.Join(dir, "client/data/sets/*")); len(sets) != 0 {
				t.Errorf("half a copy is called one: %q", sets)
			}
			slow.gone(t, server.URL)

			startProcess(t, told)
			awaitJob(t, client, job.Job.ID, structs.JobSucceeded)
			for name, want := range files {
				if got, err := os.ReadFile(filepath.Join(nas, "copies/words", name)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("the job read %d bytes of %s, not the %d that it has: %v", len(got), name, len(want), err)
				}
			}
			before, after := slow.requests()
			spared := 0
			for request := range before {
				if after[request] == 0 {
					spared++
				}
			}
			for request, times := range after {
				if times > 1 {
					t.Errorf("%s was asked for %d times", request, times)
				}
			}
			t.Logf("%d requests before the kill, %d after it, %d spared", len(before), len(after), spared)
			if spared == 0 || spared > whole {
				t.Errorf("%d requests of %d were answered before the kill, and %d are not repeated", whole, len(before), spared)
			}
		})
	}
}

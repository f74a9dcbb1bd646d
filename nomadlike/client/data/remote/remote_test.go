package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/client/data"
)

// contents makes a dataset: a file that is copied in several pieces, small ones
// in directories, names that need care, and an empty file.
func contents(seed uint64) map[string][]byte {
	source := rand.NewChaCha8([32]byte{byte(seed)})
	files := map[string][]byte{"empty": {}, "deep/er/one": nil, "deep/two words & more%41?#+": nil, "数据/三": nil}
	for name, size := range map[string]int{"large": 17<<20 + 17, "deep/er/one": 1, "deep/two words & more%41?#+": 70_000, "数据/三": 3000} {
		text := make([]byte, size)
		_, _ = source.Read(text)
		files[name] = text
	}
	return files
}

func sums(files map[string][]byte) []byte {
	var list bytes.Buffer
	for name, text := range files {
		fmt.Fprintf(&list, "%x  ./%s\n", sha256.Sum256(text), name)
	}
	return list.Bytes()
}

// site is a web server of datasets: real files, as every web server serves them.
type site struct {
	dir    string
	faults Faults
	url    string
}

func openSite(t *testing.T, files map[string][]byte) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	for name, text := range files {
		s.put(t, "p/digits/"+name, text)
	}
	s.put(t, "p/digits/SHA256SUMS", sums(files))
	server := httptest.NewServer(s.faults.Around(tagged(s.dir)))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// tagged returns files with strong tags.
func tagged(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join(dir, filepath.FromSlash(r.URL.Path))
		if info, err := os.Stat(name); err == nil {
			w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
		}
		http.ServeFile(w, r, name)
	})
}

func (s *site) put(t *testing.T, name string, text []byte) {
	t.Helper()
	full := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func atOnce(int) time.Duration { return 0 }

func (s *site) server() Server { return Server{URL: s.url, Wait: atOnce, StallMax: 5 * time.Second} }

func openStore(t *testing.T, dir string) *data.Store {
	t.Helper()
	store, err := data.Open(data.Config{Dir: dir, BootID: "b", FreeMin: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func fetch(t *testing.T, store *data.Store, server Server, dataset Dataset) (data.Copy, error) {
	t.Helper()
	return fetchIn(t.Context(), t, store, server, dataset, func(int64, int64) {})
}

func fetchIn(ctx context.Context, t *testing.T, store *data.Store, server Server, dataset Dataset, progress data.Progress) (data.Copy, error) {
	t.Helper()
	source, err := Open(server, dataset)
	if err != nil {
		return data.Copy{}, err
	}
	defer source.Close()
	return store.Fetch(ctx, source, "a", progress)
}

// holds compares a copy with what it must be.
func holds(t *testing.T, made data.Copy, want map[string][]byte) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(made.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		n++
		below, _ := filepath.Rel(made.Dir, name)
		got, err := os.ReadFile(name)
		if text, ok := want[below]; !ok || !bytes.Equal(text, got) {
			t.Errorf("%s: %d bytes, not the %d that it must have", below, len(got), len(text))
		}
		return err
	})
	if err != nil || n != len(want) {
		t.Errorf("%d files, want %d: %v", n, len(want), err)
	}
}

func TestWeb(t *testing.T) {
	want := contents(1)
	s, store := openSite(t, want), openStore(t, t.TempDir())
	var asked atomic.Int64
	s.faults.Every = func(r *http.Request) {
		if r.Header.Get("Range") != "bytes=0-0" && !strings.HasSuffix(r.URL.Path, "SHA256SUMS") {
			asked.Add(1)
		}
	}
	made, err := fetch(t, store, s.server(), Dataset{Path: "p/digits"})
	if err != nil || made.Copied != made.Bytes {
		t.Fatalf("%+v, %v", made, err)
	}
	holds(t, made, want)
	// Two parts of the large file, two small ones; nothing of the empty one, and
	// that of one byte looks like a question for its size.
	if n := asked.Swap(0); n != 4 {
		t.Errorf("%d requests", n)
	}
	again, err := fetch(t, store, s.server(), Dataset{Path: "p/digits"})
	if err != nil || again.Copied != 0 || again.Digest != made.Digest || asked.Load() != 0 {
		t.Fatalf("the second time: %+v, %v, %d requests", again, err, asked.Load())
	}
	single := Dataset{Path: "p/digits/large", Single: true}
	made, err = fetch(t, store, s.server(), single)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, made, map[string][]byte{"large": want["large"]})
	sum := sha256.Sum256(want["large"])
	single.SHA256 = sum[:]
	if _, err := fetch(t, store, s.server(), single); err != nil {
		t.Errorf("with its digest: %v", err)
	}
	single.SHA256 = make([]byte, sha256.Size)
	if _, err := fetch(t, store, s.server(), single); !errors.Is(err, data.ErrCorrupt) {
		t.Errorf("with another digest: %v", err)
	}
}

// TestWebCuts: connections break, servers stall and are busy, and one that
// knows no ranges is asked from the beginning. The copy is right in the end.
func TestWebCuts(t *testing.T) {
	want := contents(2)
	for name, arrange := range map[string]func(*Faults, func() int){
		"cuts": func(f *Faults, next func() int) {
			f.Cut = func(*http.Request) int { return []int{-1, 5_000_000, 0, 30_000}[next()%4] }
		},
		"busy": func(f *Faults, next func() int) {
			f.Status = func(*http.Request) int {
				return []int{0, http.StatusServiceUnavailable, http.StatusTooManyRequests}[next()%3]
			}
		},
		"no ranges, cuts": func(f *Faults, next func() int) {
			f.Every = func(r *http.Request) { r.Header.Del("Range") }
			f.Cut = func(*http.Request) int { return []int{-1, 5_000_000, -1}[next()%3] }
		},
		"stalls": func(f *Faults, next func() int) {
			f.Stall = func(r *http.Request) bool { return next()%5 == 3 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, want)
			var mu sync.Mutex
			counts := make(map[string]int) // every range by itself: no order of workers makes one fail for ever
			s.faults.Every, s.faults.Cut, s.faults.Status, s.faults.Stall = nil, nil, nil, nil
			key := ""
			next := func() int { counts[key]++; return counts[key] }
			var f Faults
			arrange(&f, next)
			guard := func(r *http.Request, act func()) {
				mu.Lock()
				defer mu.Unlock()
				key = r.URL.Path + r.Header.Get("Range")
				act()
			}
			s.faults.Every = f.Every
			if f.Cut != nil {
				s.faults.Cut = func(r *http.Request) (n int) { guard(r, func() { n = f.Cut(r) }); return n }
			}
			if f.Status != nil {
				s.faults.Status = func(r *http.Request) (n int) { guard(r, func() { n = f.Status(r) }); return n }
			}
			if f.Stall != nil {
				s.faults.Stall = func(r *http.Request) (b bool) { guard(r, func() { b = f.Stall(r) }); return b }
			}
			server := s.server()
			if f.Stall != nil {
				server.StallMax = 500 * time.Millisecond
			}
			made, err := fetch(t, openStore(t, t.TempDir()), server, Dataset{Path: "p/digits"})
			if err != nil {
				t.Fatal(err)
			}
			holds(t, made, want)
		})
	}
}

// TestWebGivesUp: what a repetition does not cure is an error, soon.
func TestWebGivesUp(t *testing.T) {
	files := map[string][]byte{"a": []byte("letters"), "b": []byte("more")}
	for name, c := range map[string]struct {
		arrange func(*testing.T, *site)
		is      error
		says    string
		most    int64 // requests
	}{
		"forbidden": {func(_ *testing.T, s *site) {
			s.faults.Status = func(*http.Request) int { return http.StatusForbidden }
		}, nil, "403", 1},
		"no list": {func(t *testing.T, s *site) {
			if err := os.Remove(filepath.Join(s.dir, "p/digits/SHA256SUMS")); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist, "404", 1},
		"a file of the list is missing": {func(t *testing.T, s *site) {
			if err := os.Remove(filepath.Join(s.dir, "p/digits/b")); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist, "404", 3},
		"always down": {func(_ *testing.T, s *site) {
			s.faults.Status = func(*http.Request) int { return http.StatusBadGateway }
		}, nil, "502", attempts},
		"another content": {func(t *testing.T, s *site) { s.put(t, "p/digits/a", []byte("lettres")) }, data.ErrCorrupt, "", 10},
		"outside": {func(t *testing.T, s *site) {
			s.put(t, "p/digits/SHA256SUMS", []byte("-  ../secret\n"))
			s.put(t, "p/secret", nil)
		}, nil, "no path", 10},
		"a list that is none": {func(t *testing.T, s *site) { s.put(t, "p/digits/SHA256SUMS", []byte("<html>\n")) }, nil, "line 1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t, files)
			var asked atomic.Int64
			s.faults.Every = func(*http.Request) { asked.Add(1) }
			c.arrange(t, s)
			_, err := fetch(t, openStore(t, t.TempDir()), s.server(), Dataset{Path: "p/digits"})
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			if asked.Load() > c.most {
				t.Errorf("%d requests", asked.Load())
			}
		})
	}
}

// TestWebChanges: what changes while it is copied is noticed, and nothing of
// two versions is kept.
func TestWebChanges(t *testing.T) {
	want := contents(3)
	s, store := openSite(t, want), openStore(t, t.TempDir())
	var once sync.Once
	change := bytes.Repeat([]byte("new"), len(want["large"])/3+1)[:len(want["large"])]
	_, err := fetchIn(t.Context(), t, store, s.server(), Dataset{Path: "p/digits/large", Single: true}, func(done, _ int64) {
		if done > 1<<20 {
			once.Do(func() { s.put(t, "p/digits/large", change) })
		}
	})
	// The parts that were under way may all have come before the change.
	if err != nil && !errors.Is(err, data.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	made, err := fetch(t, store, s.server(), Dataset{Path: "p/digits/large", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, made, map[string][]byte{"large": change})
}

// TestChangedBetweenParts changes a file exactly between two parts of it.
func TestChangedBetweenParts(t *testing.T) {
	want := contents(4)
	s := openSite(t, want)
	source, err := Open(s.server(), Dataset{Path: "p/digits/large", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	listing, err := source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "p/digits/large", bytes.ToUpper(want["large"]))
	part, err := source.Open(t.Context(), firstOf(t, listing), 100, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if _, err := part.Read(make([]byte, 100)); !errors.Is(err, data.ErrChanged) {
		t.Errorf("error %v", err)
	}
}

// TestResumesAfterDeath: what an agent that died has copied is not asked for
// again.
func TestResumesAfterDeath(t *testing.T) {
	want := contents(5)
	s, dir := openSite(t, want), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := fetchIn(ctx, t, openStore(t, dir), s.server(), Dataset{Path: "p/digits"}, func(done, total int64) {
		if done > total*3/4 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	made, err := fetch(t, openStore(t, dir), s.server(), Dataset{Path: "p/digits"})
	if err != nil {
		t.Fatal(err)
	}
	if made.Copied >= made.Bytes {
		t.Errorf("%d of %d bytes were copied again", made.Copied, made.Bytes)
	}
	holds(t, made, want)
}

// TestWrongAnswers: a server that sends other parts, packs, or hides sizes is
// not believed.
func TestWrongAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"another part": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-5/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("x"))
		},
		"packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("x"))
		},
		"no size": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write([]byte("x"))
		},
		"a size beyond numbers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-0/99999999999999999999")
			w.WriteHeader(http.StatusPartialContent)
		},
		"longer than promised": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "bytes=0-0" {
				w.Header().Set("Content-Range", "bytes 0-0/10")
			} else {
				w.Header().Set("Content-Range", "bytes 0-9/20")
			}
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, 20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			store := openStore(t, t.TempDir())
			made, err := fetch(t, store, Server{URL: server.URL, Wait: atOnce}, Dataset{Path: "x", Single: true})
			if err == nil {
				t.Errorf("copy %+v", made)
			}
		})
	}
}

// TestWhereItMayLead: no redirect and no name leads where the administrator has
// not said.
func TestWhereItMayLead(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("another host was told the credentials")
		}
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader("inside"))
	}))
	defer inside.Close()
	host := strings.TrimPrefix(inside.URL, "http://")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("Bearer x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to      string
		hosts   []string
		allowed bool
	}{
		"a host that is not named": {to: inside.URL + "/x"},
		"a host that is named":     {to: inside.URL + "/x", hosts: []string{host}, allowed: true},
		"itself for ever":          {to: "/x"},
		"a file":                   {to: "file:///etc/passwd", hosts: []string{""}},
		"gopher":                   {to: "gopher://" + host, hosts: []string{host}},
		"metadata":                 {to: "http://169.254.169.254/latest", hosts: []string{"169.254.169.254"}},
		"metadata, mapped":         {to: "http://[::ffff:169.254.169.254]/x", hosts: []string{"[::ffff:169.254.169.254]"}},
		"everywhere":               {to: "http://0.0.0.0:" + host[strings.Index(host, ":")+1:] + "/", hosts: []string{"0.0.0.0:" + host[strings.Index(host, ":")+1:]}},
		"with a user":              {to: "http://u:p@" + host + "/x", hosts: []string{host}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.RedirectHandler(c.to, http.StatusFound))
			defer server.Close()
			made, err := fetch(t, openStore(t, t.TempDir()),
				Server{URL: server.URL, RedirectHosts: c.hosts, AuthorizationFile: secret, Wait: atOnce}, Dataset{Path: "x", Single: true})
			if c.allowed {
				if err != nil {
					t.Fatal(err)
				}
				holds(t, made, map[string][]byte{"x": []byte("inside")})
			} else if !errors.Is(err, errRefused) && !strings.Contains(fmt.Sprint(err), "unsupported protocol") {
				t.Errorf("%+v, %v", made, err)
			}
		})
	}
}

func TestDialable(t *testing.T) {
	for address, want := range map[string][2]bool{ // not named as loopback, and named
		"10.0.0.1:80": {true, true}, "192.0.2.1:443": {true, true}, "[2001:db8::1]:443": {true, true},
		"127.0.0.1:80": {false, true}, "[::1]:80": {false, true}, "[::ffff:127.0.0.1]:80": {false, true},
		"169.254.169.254:80": {false, false}, "[::ffff:169.254.169.254]:80": {false, false}, "[fe80::1]:80": {false, false},
		"0.0.0.0:80": {false, false}, "[::]:80": {false, false}, "224.0.0.1:80": {false, false}, "255.255.255.255:80": {false, false}, "x": {false, false},
	} {
		for i, loopback := range []bool{false, true} {
			if got := dialable(address, loopback) == nil; got != want[i] {
				t.Errorf("%s, loopback %v: %v", address, loopback, got)
			}
		}
	}
}

// TestTLS: a certificate is verified, by the system's authorities or those that
// the administrator names.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader("text"))
	}))
	var shaken atomic.Int64
	server.Config.ErrorLog = log.New(counter{&shaken}, "", 0)
	server.StartTLS()
	defer server.Close()
	wanted := Dataset{Path: "x", Single: true}
	if _, err := fetch(t, openStore(t, t.TempDir()), Server{URL: server.URL, Wait: atOnce}, wanted); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	if shaken.Load() > 1 {
		t.Errorf("it was tried %d times", shaken.Load())
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		t.Fatal(err)
	}
	made, err := fetch(t, openStore(t, t.TempDir()), Server{URL: server.URL, CAFile: ca, Wait: atOnce}, wanted)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, made, map[string][]byte{"x": []byte("text")})
}

// counter counts lines of a log.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// TestSecretsOfOthers: a file with credentials that others may read is refused.
func TestSecretsOfOthers(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, server := range []Server{{URL: "https://h", AuthorizationFile: secret}, {URL: "https://h", S3: &S3{Bucket: "b", CredentialsFile: secret}}} {
		if _, err := Open(server, Dataset{Path: "x"}); err == nil || !strings.Contains(err.Error(), "others may read") {
			t.Errorf("error %v", err)
		}
	}
}

func TestSizeMax(t *testing.T) {
	s := openSite(t, map[string][]byte{"a": make([]byte, 101)})
	server := s.server()
	server.SizeMax = 100
	if _, err := fetch(t, openStore(t, t.TempDir()), server, Dataset{Path: "p/digits"}); !errors.Is(err, errRefused) {
		t.Errorf("error %v", err)
	}
}

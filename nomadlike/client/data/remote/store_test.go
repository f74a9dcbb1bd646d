package remote

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/client/data"
)

// bucket is an object store with a dataset in it.
func bucket(t *testing.T, files map[string][]byte) (*FakeStore, *Faults, Server) {
	t.Helper()
	store, faults := &FakeStore{Bucket: "datasets", AccessKey: "who", SecretKey: "what", Page: 2}, &Faults{}
	for name, text := range files {
		store.Put("p/digits/"+name, text)
	}
	store.Put("p/digits-other/file", []byte("not of the dataset"))
	server := httptest.NewServer(faults.Around(store))
	t.Cleanup(server.Close)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("[default]\naws_access_key_id = who\naws_secret_access_key = what\n[thief]\naws_access_key_id = who\naws_secret_access_key = guess\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return store, faults, Server{URL: server.URL, Wait: atOnce, StallMax: 5 * time.Second, S3: &S3{Bucket: "datasets", PathStyle: true, CredentialsFile: keys}}
}

func TestStore(t *testing.T) {
	want := contents(11)
	delete(want, "deep/two words & more%41?#+")
	want["deep/two words & more+ä"] = []byte("text")
	fake, _, server := bucket(t, want)
	store := openStore(t, t.TempDir())
	made, err := fetch(t, store, server, Dataset{Path: "p/digits"})
	if err != nil || made.Copied != made.Bytes {
		t.Fatalf("%+v, %v", made, err)
	}
	holds(t, made, want)
	if pages, refused := fake.Counts(); pages != 3 || refused != 0 {
		t.Errorf("%d pages, %d signatures refused", pages, refused)
	}
	if again, err := fetch(t, store, server, Dataset{Path: "p/digits"}); err != nil || again.Copied != 0 {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	made, err = fetch(t, store, server, Dataset{Path: "p/digits/large", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, made, map[string][]byte{"large": want["large"]})

	// A list of digests counts as soon as there is one.
	listed := maps.Clone(want)
	listed["SHA256SUMS"] = sums(want)
	fake.Put("p/digits/SHA256SUMS", listed["SHA256SUMS"])
	if made, err = fetch(t, store, server, Dataset{Path: "p/digits"}); err != nil {
		t.Fatal(err)
	}
	holds(t, made, listed)
	fake.Put("p/digits/large", append([]byte{want["large"][0] + 1}, want["large"][1:]...))
	if _, err = fetch(t, store, server, Dataset{Path: "p/digits"}); !errors.Is(err, data.ErrCorrupt) {
		t.Errorf("another content of a large file: %v", err)
	}
}

func TestStoreRefuses(t *testing.T) {
	_, faults, server := bucket(t, map[string][]byte{"a": []byte("text")})
	for name, c := range map[string]struct {
		change  func(*Server)
		dataset Dataset
		is      error
		says    string
	}{
		"wrong secret":  {func(s *Server) { s.S3.Profile = "thief" }, Dataset{Path: "p/digits"}, nil, "SignatureDoesNotMatch"},
		"not signed":    {func(s *Server) { s.S3.CredentialsFile = "" }, Dataset{Path: "p/digits"}, nil, "AccessDenied"},
		"other bucket":  {func(s *Server) { s.S3.Bucket = "others" }, Dataset{Path: "p/digits"}, fs.ErrNotExist, "NoSuchBucket"},
		"no such key":   {func(*Server) {}, Dataset{Path: "p/digits/b", Single: true}, fs.ErrNotExist, ""},
		"nothing below": {func(*Server) {}, Dataset{Path: "p/dig"}, fs.ErrNotExist, "p/dig/"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			faults.Every = func(*http.Request) { asked.Add(1) }
			changed, s3 := server, *server.S3
			changed.S3 = &s3
			c.change(&changed)
			_, err := fetch(t, openStore(t, t.TempDir()), changed, c.dataset)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "guess") {
				t.Error("the secret is in the message")
			}
			if asked.Load() > 1 {
				t.Errorf("%d requests", asked.Load())
			}
		})
	}
}

// TestStoreCuts: a store that cuts, stalls and is busy gives the right copy in
// the end.
func TestStoreCuts(t *testing.T) {
	want := contents(12)
	delete(want, "deep/two words & more%41?#+")
	_, faults, server := bucket(t, want)
	var n atomic.Int64
	faults.Cut = func(*http.Request) int {
		if n.Add(1)%3 == 0 {
			return 6_000_000
		}
		return -1
	}
	faults.Status = func(*http.Request) int {
		if n.Add(1)%7 == 0 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	made, err := fetch(t, openStore(t, t.TempDir()), server, Dataset{Path: "p/digits"})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, made, want)
}

// TestStoreChanges: an object that becomes another one between two parts is
// noticed by its tag.
func TestStoreChanges(t *testing.T) {
	want := contents(13)
	fake, _, server := bucket(t, want)
	source, err := Open(server, Dataset{Path: "p/digits/large", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	listing, err := source.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	fake.Put("p/digits/large", contents(14)["large"])
	part, err := source.Open(t.Context(), firstOf(t, listing), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if _, err := part.Read(make([]byte, 100)); !errors.Is(err, data.ErrChanged) {
		t.Errorf("error %v", err)
	}
}

// FuzzParseList: no list of a server stops the agent, and what is read says
// where it lies.
func FuzzParseList(f *testing.F) {
	f.Add([]byte("-  a\n# note\n\n" + strings.Repeat("0", 64) + " *b/c\r\n"))
	f.Add([]byte(`\` + strings.Repeat("f", 64) + `  a\nb`))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := ParseList(text)
		if err != nil {
			return
		}
		if listing, err := data.NewListing("o", files); err == nil {
			err := listing.Each(func(f *data.File) error {
				if !fs.ValidPath(f.Path) || !filepath.IsLocal(f.Path) {
					t.Errorf("path %q", f.Path)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// firstOf returns the first file of a listing.
func firstOf(t *testing.T, listing *data.Listing) (first *data.File) {
	t.Helper()
	err := listing.Each(func(f *data.File) error {
		if first == nil {
			first = f
		}
		return nil
	})
	if err != nil || first == nil {
		t.Fatalf("first file %v, %v", first, err)
	}
	return first
}

package docker_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// registry is an image registry in memory, with a password when it has one.
// The engine speaks plain HTTP to loopback addresses.
type registry struct {
	host               string
	username, password string

	mu struct {
		sync.Mutex
		blobs     map[string][]byte // by digest
		manifests map[string][]byte // by "name:tag" and by digest
		pulls     int               // of manifests
	}
}

func newRegistry(t testing.TB) *registry {
	r := &registry{}
	r.mu.blobs, r.mu.manifests = make(map[string][]byte), make(map[string][]byte)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// push puts an image into the registry: links to the node's programs, some
// ballast, and an environment. It returns the digest.
func (r *registry) push(t testing.TB, name, tag string, ballast int, env ...string) string {
	t.Helper()
	var plain, packed bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, f := range links("bin", "lib", "lib64", "sbin") {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Linkname: f.link, Typeflag: tar.TypeSymlink, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	body := make([]byte, ballast)
	_, _ = rand.Read(body) // never fails
	if err := w.WriteHeader(&tar.Header{Name: "ballast", Size: int64(ballast), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(plain.Bytes()) // into memory
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	encode := func(value any) []byte {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	config := encode(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Env": append([]string{"PATH=/usr/bin:/bin"}, env...), "Cmd": []string{"sh"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(plain.Bytes())}},
	})
	manifest := encode(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digest(config)},
		"layers": []any{map[string]any{
			"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": packed.Len(), "digest": digest(packed.Bytes()),
		}},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.blobs[digest(config)], r.mu.blobs[digest(packed.Bytes())] = config, packed.Bytes()
	r.mu.manifests[name+":"+tag], r.mu.manifests[name+":"+digest(manifest)] = manifest, manifest
	return digest(manifest)
}

// pulls counts how often a manifest was fetched.
func (r *registry) pulls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.pulls
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.password != "" {
		if user, password, ok := request.BasicAuth(); !ok || user != r.username || password != r.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	name, reference, isManifest := strings.Cut(path, "/manifests/")
	_, blob, isBlob := strings.Cut(path, "/blobs/")
	switch {
	case path == "":
		fmt.Fprint(w, "{}")
	case isManifest:
		body, ok := r.mu.manifests[name+":"+reference]
		if !ok {
			http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`, http.StatusNotFound)
			return
		}
		if request.Method == http.MethodGet {
			r.mu.pulls++
		}
		w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
		w.Header().Set("Docker-Content-Digest", digest(body))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body) // the engine may be gone
	case isBlob && r.mu.blobs[blob] != nil:
		w.Header().Set("Content-Length", fmt.Sprint(len(r.mu.blobs[blob])))
		_, _ = w.Write(r.mu.blobs[blob])
	default:
		http.NotFound(w, request)
	}
}

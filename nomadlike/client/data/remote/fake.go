package remote

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5" // of an object store's tags, which are no security
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FakeStore answers as an object store of one bucket does, for tests: it checks
// signatures, lists page by page, and serves ranges of objects.
type FakeStore struct {
	Bucket    string
	AccessKey string // "": requests are not signed
	SecretKey string
	Page      int // objects of a page

	mu struct {
		sync.Mutex
		objects map[string][]byte
		pages   int
		refused int
	}
}

// Put writes an object.
func (s *FakeStore) Put(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.objects == nil {
		s.mu.objects = make(map[string][]byte)
	}
	s.mu.objects[key] = content
}

// Counts reports how many pages were listed, and how many requests had no good
// signature.
func (s *FakeStore) Counts() (pages, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.pages, s.mu.refused
}

func (s *FakeStore) fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said by the store</Message></Error>", code)
}

// ServeHTTP implements http.Handler.
func (s *FakeStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code := s.signed(r); code != "" {
		s.mu.refused++
		s.fail(w, http.StatusForbidden, code)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/"+s.Bucket)
	key := strings.TrimPrefix(rest, "/")
	switch {
	case !ok || rest != "" && rest[0] != '/':
		s.fail(w, http.StatusNotFound, "NoSuchBucket")
	case key == "" && r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	default:
		content, ok := s.mu.objects[key]
		if !ok {
			s.fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", `"`+tagOfContent(content)+`"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(content))
	}
}

func tagOfContent(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}

// page is an answer to a listing.
type page struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	Contents              []entry
}

type entry struct {
	Key          string
	Size         int
	ETag         string
	LastModified string
}

func (s *FakeStore) list(w http.ResponseWriter, query url.Values) {
	s.mu.pages++
	var keys []string
	for key := range s.mu.objects {
		if strings.HasPrefix(key, query.Get("prefix")) && key > query.Get("continuation-token") {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	var answer page
	if len(keys) > s.Page {
		keys = keys[:s.Page]
		answer.IsTruncated, answer.NextContinuationToken = true, keys[len(keys)-1]
	}
	for _, key := range keys {
		name := key
		if query.Get("encoding-type") == "url" {
			name, answer.EncodingType = url.QueryEscape(key), "url"
		}
		content := s.mu.objects[key]
		answer.Contents = append(answer.Contents, entry{name, len(content), `"` + tagOfContent(content) + `"`, "2026-01-02T03:04:05.000Z"})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(answer) // the client notices
}

// signed checks a signature of version 4, and returns the code of what is wrong
// with it.
func (s *FakeStore) signed(r *http.Request) string {
	if s.AccessKey == "" {
		return ""
	}
	fields := make(map[string]string)
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if !ok || len(scope) != 5 {
		return "AccessDenied"
	}
	if scope[0] != s.AccessKey {
		return "InvalidAccessKeyId"
	}
	names := strings.Split(fields["SignedHeaders"], ";")
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return "AccessDenied"
	}
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	request := strings.Join([]string{r.Method, r.URL.EscapedPath(), query, headers.String(), fields["SignedHeaders"], r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	sum := sha256.Sum256([]byte(request))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + s.SecretKey)
	for _, part := range append(scope[1:], text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != fields["Signature"] {
		return "SignatureDoesNotMatch"
	}
	return ""
}

// Faults stand between a server and its clients, for tests. Each function may
// be nil.
type Faults struct {
	// Cut returns after how many bytes of its body an answer breaks off; negative:
	// it does not.
	Cut func(r *http.Request) int
	// Status returns the status of an answer instead of the server's; 0: none.
	Status func(r *http.Request) int
	// Stall reports whether an answer stands still after its first half, until the
	// client has given up.
	Stall func(r *http.Request) bool
	// Every is called with each request.
	Every func(r *http.Request)
}

// Around returns a server with faults.
func (f *Faults) Around(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.Every != nil {
			f.Every(r)
		}
		if f.Status != nil {
			if status := f.Status(r); status != 0 {
				w.Header().Set("Content-Length", strconv.Itoa(0))
				w.WriteHeader(status)
				return
			}
		}
		left := -1
		if f.Cut != nil {
			left = f.Cut(r)
		}
		stall := f.Stall != nil && f.Stall(r)
		server.ServeHTTP(&faulty{ResponseWriter: w, left: left, stall: stall, request: r}, r)
	})
}

// faulty is an answer that goes wrong.
type faulty struct {
	http.ResponseWriter
	left    int
	stall   bool
	request *http.Request
}

// Write implements io.Writer. A panic with http.ErrAbortHandler is how a server
// cuts a connection.
func (f *faulty) Write(p []byte) (int, error) {
	if f.stall {
		_, _ = f.ResponseWriter.Write(p[:len(p)/2])
		_ = http.NewResponseController(f.ResponseWriter).Flush()
		<-f.request.Context().Done()
		panic(http.ErrAbortHandler)
	}
	if f.left >= 0 && len(p) > f.left {
		_, _ = f.ResponseWriter.Write(p[:f.left])
		_ = http.NewResponseController(f.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	if f.left >= 0 {
		f.left -= len(p)
	}
	return f.ResponseWriter.Write(p)
}

package agent

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// tusClient speaks tus to an agent, as any program may.
type tusClient struct {
	*testing.T
	http  *http.Client
	base  string
	token string
}

// ask sends a request and wants a status; heads are names and values in turn.
func (c *tusClient) ask(want int, method, path, body string, heads ...string) http.Header {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set(api.HeaderTusResumable, api.TusVersion)
	for i := 0; i < len(heads); i += 2 {
		request.Header.Set(heads[i], heads[i+1])
	}
	answer, err := c.http.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != want {
		c.Errorf("%s %s %q: %d %s, want %d", method, path, heads, answer.StatusCode, text, want)
	}
	return answer.Header
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// create begins a file, with bytes that come along.
func (c *tusClient) create(want int, url, name, body string, size int, more string) http.Header {
	c.Helper()
	heads := []string{api.HeaderUploadLength, strconv.Itoa(size), api.HeaderUploadMetadata, "path " + base64Of(name) + more}
	if body != "" {
		heads = append(heads, "Content-Type", api.TusContentType)
	}
	return c.ask(want, http.MethodPost, url, body, heads...)
}

func (c *tusClient) write(want int, at http.Header, offset int, body string, more ...string) http.Header {
	c.Helper()
	return c.ask(want, http.MethodPatch, at.Get("Location"), body, append([]string{"Content-Type", api.TusContentType, api.HeaderUploadOffset, strconv.Itoa(offset)}, more...)...)
}

func (c *tusClient) says(what string, head http.Header, want ...string) {
	c.Helper()
	for i := 0; i < len(want); i += 2 {
		if got := head.Get(want[i]); got != want[i+1] {
			c.Errorf("%s: %s is %q, want %q", what, want[i], got, want[i+1])
		}
	}
}

// TestFilesComeOneByOne: files come one by one in the words of tus 1.0, each acknowledged when
// it is on the disk; nothing of it is a version before all is there, and then it is the
// one that a push of the same directory makes.
func TestFilesComeOneByOne(t *testing.T) {
	dir, yes := t.TempDir(), true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{
		{Name: "nas", Path: dir + "/{kind}/{project}", Serves: []string{structs.StorageDataset}},
	}}}, options)
	admin := savedClient(t, options)
	contexts, err := api.ContextDir(options.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := api.LoadContext(contexts)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(saved.CA))
	secret := func(user string) string {
		t.Helper()
		token, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "user", Project: structs.DefaultProject, User: user})
		if err != nil {
			t.Fatal(err)
		}
		return token.Secret
	}
	c := &tusClient{T: t, base: saved.Address, token: secret("ann"), http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	ann, of := admin.WithToken(c.token), api.DataName{Name: "cifar10"}
	if _, err := admin.PutProject(t.Context(), &structs.Project{Name: structs.DefaultProject, DataQuota: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.BeginDataFiles(t.Context(), of, api.DataFilesRequest{Files: 1, Bytes: 2 << 30}); structs.CodeOf(err) != structs.CodeTooLarge {
		t.Errorf("over the quota: %v", err)
	}
	files := map[string]string{"a/one": "one", "a/two": "two two", "three": strings.Repeat("three", 4<<20)}
	sum, list := int64(0), ""
	for name, text := range files {
		digest := sha256.Sum256([]byte(text))
		sum, list = sum+int64(len(text)), list+hex.EncodeToString(digest[:])+"  "+name+"\n"
	}
	request := api.DataFilesRequest{Key: "my folder", Files: len(files), Bytes: sum, Tag: "best"}
	begun, err := ann.BeginDataFiles(t.Context(), of, request)
	if err != nil || begun.Version != 1 || begun.Begun || begun.URL == "" || begun.ExpiresAt == 0 {
		t.Fatalf("%+v, %v", begun, err)
	}
	c.says("options", c.ask(204, http.MethodOptions, begun.URL, ""), api.HeaderTusVersion, "1.0.0", api.HeaderTusExtension, api.TusExtensions, api.HeaderTusChecksums, "sha256,sha1")
	c.ask(412, http.MethodPost, begun.URL, "", api.HeaderTusResumable, "0.2.2")
	c.create(400, begun.URL, "../x", "", 1, "")
	c.create(400, begun.URL, "x", "", 1, ",path "+base64Of("y"))
	c.create(413, begun.URL, "x", "", 1<<30, "")

	one := c.create(201, begun.URL, "a/one", "o", 3, "")
	c.says("with a first byte", one, api.HeaderUploadOffset, "1")
	if one.Get(api.HeaderUploadExpires) == "" {
		t.Error("no Upload-Expires")
	}
	at := one.Get("Location")
	c.ask(405, http.MethodGet, at, "")
	c.says("how far", c.ask(200, http.MethodHead, at, ""), api.HeaderUploadOffset, "1", api.HeaderUploadLength, "3", "Cache-Control", "no-store")
	c.says("from elsewhere", c.write(409, one, 0, "o"), api.HeaderUploadOffset, "1")
	c.write(413, one, 1, "nes")
	c.ask(415, http.MethodPatch, at, "n", "Content-Type", "text/plain", api.HeaderUploadOffset, "1")
	wrong := sha256.Sum256([]byte("x"))
	c.says("another checksum", c.write(460, one, 1, "n", api.HeaderUploadChecksum, "sha256 "+base64Of(string(wrong[:]))), api.HeaderUploadOffset, "1")
	c.write(400, one, 1, "n", api.HeaderUploadChecksum, "md5 AAAA")
	c.write(413, one, 1, strings.Repeat("n", structs.DataAskBytesMax+1), api.HeaderUploadChecksum, "sha256 "+base64Of(string(wrong[:])))
	right := sha1.Sum([]byte("n"))
	c.says("a byte", c.write(204, one, 1, "n", api.HeaderUploadChecksum, "sha1 "+base64Of(string(right[:]))), api.HeaderUploadOffset, "2")
	other := &tusClient{T: t, base: c.base, http: c.http, token: secret("ben")}
	other.ask(404, http.MethodHead, at, "")
	other.write(404, one, 2, "e")

	c.says("another whole", c.create(460, begun.URL, "a/two", "two two", 7, ",sha256 "+base64Of(hex.EncodeToString(wrong[:]))), api.HeaderUploadOffset, "0")
	c.ask(204, http.MethodDelete, strings.Replace(at, "file="+partOf(at), "file="+listedID(t, ann, of, begun.Upload, "a/two"), 1), "")
	c.create(201, begun.URL, "a/two", files["a/two"], 7, "")
	three := c.create(201, begun.URL, "three", "", len(files["three"]), "")
	c.cut(three, files["three"][:10<<20])
	kept := 0
	eventually.Within(t, time.Minute, "what came of a request that broke off stays", func() bool {
		kept, _ = strconv.Atoi(c.ask(200, http.MethodHead, three.Get("Location"), "").Get(api.HeaderUploadOffset))
		return kept == 10<<20
	})
	_, err = ann.FinishDataFiles(t.Context(), of, begun.Upload, []byte(list))
	if early := new(structs.Error); !errors.As(err, &early) || early.ID != "objects.files_wrong" || len(early.Details) != 2 {
		t.Errorf("finished too early: %v", err)
	}
	if shown, err := ann.DataObject(t.Context(), of); err != nil || shown.Newest != 0 {
		t.Errorf("half an upload: %+v, %v", shown, err)
	}

	// The token ends in the middle; who signs in again goes on where it was.
	tokens, _, err := admin.Tokens(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens.Tokens {
		if token.User == "ann" {
			if _, err := admin.DeleteToken(t.Context(), token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.write(401, three, kept, files["three"][kept:])
	c.token = secret("ann")
	ann = admin.WithToken(c.token)
	again, err := ann.BeginDataFiles(t.Context(), of, request)
	if err != nil || again.Upload != begun.Upload || !again.Begun {
		t.Fatalf("begun again: %+v, %v", again, err)
	}
	c.write(204, three, kept, files["three"][kept:])
	c.write(204, one, 2, "e")
	finished := finishFiles(t, ann, of, begun.Upload, list)
	m, _ := directoryOf(t, files)
	if finished.Digest != string(m.Digest()) || finished.Files != 3 || finished.Bytes != sum {
		t.Errorf("%+v, want %s", finished, m.Digest())
	}
	shown, err := ann.DataObject(t.Context(), of)
	if err != nil || shown.Newest != 1 || shown.Object.Versions[0].Digest != finished.Digest || shown.Object.Versions[0].Tag != "best" {
		t.Errorf("%+v, %v", shown, err)
	}
	c.write(404, one, 3, "")

	// The same files again are no other version, and a tag goes to the one there is.
	request.Tag = "again"
	same, err := ann.BeginDataFiles(t.Context(), of, request)
	if err != nil || same.Version != 2 || same.Begun {
		t.Fatalf("%+v, %v", same, err)
	}
	for name, text := range files {
		c.create(201, same.URL, name, text, len(text), "")
	}
	if finished = finishFiles(t, ann, of, same.Upload, ""); !finished.Known || finished.Version != 1 {
		t.Errorf("%+v", finished)
	}
	if shown, err = ann.DataObject(t.Context(), of); err != nil || len(shown.Object.Versions) != 1 || shown.Object.Versions[0].Tag != "again" {
		t.Errorf("%+v, %v", shown, err)
	}
	gone, err := ann.BeginDataFiles(t.Context(), of, api.DataFilesRequest{Files: 1, Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := ann.AbortDataFiles(t.Context(), of, gone.Upload); err != nil {
		t.Fatal(err)
	}
	c.create(404, gone.URL, "x", "", 1, "")
}

// cut sends some bytes of a body that was to be longer, and goes away.
func (c *tusClient) cut(at http.Header, text string) {
	c.Helper()
	body, feed := io.Pipe()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodPatch, c.base+at.Get("Location"), body)
	if err != nil {
		c.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.token, api.HeaderTusResumable: api.TusVersion, "Content-Type": api.TusContentType, api.HeaderUploadOffset: "0",
	} {
		request.Header.Set(name, value)
	}
	go func() {
		_, _ = io.Copy(feed, bytes.NewReader([]byte(text)))
		_ = feed.CloseWithError(io.ErrClosedPipe)
	}()
	if answer, err := c.http.Do(request); err == nil {
		_ = answer.Body.Close()
	}
}

// partOf is the file in its address.
func partOf(location string) string {
	_, rest, _ := strings.Cut(location, "file=")
	id, _, _ := strings.Cut(rest, "&")
	return id
}

// listedID is the id of a file of an upload, from its list.
func listedID(t *testing.T, client *api.Client, of api.DataName, upload, name string) string {
	t.Helper()
	listed, err := client.DataFiles(t.Context(), of, upload, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range listed.Files {
		if file.Path == name {
			return file.ID
		}
	}
	data, _ := json.Marshal(listed)
	t.Fatalf("%s is not in %s", name, data)
	return ""
}

func finishFiles(t *testing.T, client *api.Client, of api.DataName, upload, list string) *api.DataFilesFinished {
	t.Helper()
	for {
		told, err := client.FinishDataFiles(t.Context(), of, upload, []byte(list))
		if err != nil {
			t.Fatal(err)
		}
		if told.Done {
			return told
		}
	}
}

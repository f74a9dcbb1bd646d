package agent

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// pushed sends a directory as the next version.
func pushed(t *testing.T, client *api.Client, of api.DataName, dir, access string) int {
	t.Helper()
	m, _, err := tree.Scan(t.Context(), dir, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	source, err := tree.OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	begun, err := client.BeginDataUpload(t.Context(), of, api.DataUploadRequest{Digest: string(m.Digest()), Files: m.Files(), Bytes: m.Bytes(), Access: access})
	if err != nil {
		t.Fatal(err)
	}
	sender := client.DataSender(of, begun.Upload, m.Digest())
	if err := sender.Manifest(t.Context(), m.Encode()); err != nil {
		t.Fatal(err)
	}
	for _, chunk := range m.Chunks() {
		if err := sender.Chunks(t.Context(), piecesOf(t, source, chunk)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		told, err := sender.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if told.Done {
			return begun.Version
		}
	}
}

// TestFilesOfData: who may read a name walks through its files whatever they are called,
// sees how they begin, and takes one, a part of one, or a directory home; nobody else
// does, nor hears that there is anything.
func TestFilesOfData(t *testing.T) {
	dir, from, yes := t.TempDir(), t.TempDir(), true
	options := testOptions(t)
	w := &world{}
	w.agent = startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{
		{Name: "nas", Path: dir + "/{kind}/{project}", Serves: []string{structs.StorageDataset}},
	}}}, options)
	w.admin = savedClient(t, options)
	secret := func(user string) string {
		made, err := w.admin.CreateToken(t.Context(), api.TokenRequest{Role: "user", Project: structs.DefaultProject, User: user})
		if err != nil {
			t.Fatal(err)
		}
		return made.Secret
	}
	tokens := map[string]string{"ann": secret("ann"), "ben": secret("ben")}
	ann, ben, of := w.admin.WithToken(tokens["ann"]), w.admin.WithToken(tokens["ben"]), api.DataName{Name: "cifar10"}
	// A stream that is open hears what its reader may know.
	heard := func(token string) *api.EventStream {
		stream, err := w.admin.WithToken(token).Events(t.Context(), api.EventFilter{Topics: []string{"data"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stream.Close() })
		return stream
	}
	bens := heard(tokens["ben"])

	large := strings.Repeat("0123456789abcdef", 300_000) // 4.8 MB: several chunks
	hostile, wide := "gb\xc4\xe3\x1b[2J", "a\\..\\b:c."
	for name, text := range map[string]string{
		"a/b/deep.txt": "deep", "a-b": "beside", "large.bin": large, "rows.csv": "x,y\n1,2\n", hostile: "h", wide: "w", "CON.txt": "device", "case": "1", "Case": "2", "empty": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b/deep.txt", filepath.Join(from, "a", "link")); err != nil {
		t.Fatal(err)
	}
	pushed(t, ann, api.DataName{Name: "secret"}, from, structs.DataPrivate)
	if pushed(t, ann, of, from, structs.DataProject) != 1 {
		t.Fatal("no first version")
	}
	event, err := bens.Next()
	if err != nil || event.ID != "event.data.version" || event.Params["name"] != "cifar10" {
		t.Errorf("ben hears of what is private, or of nothing: %+v, %v", event, err)
	}

	root, err := ben.DataTree(t.Context(), of, 0, "", 0)
	if err != nil || root.Names != 10 || root.Entry.Files != 11 || root.Entries[0].Name != "a" || !root.Entries[0].Dir || root.Entries[0].Files != 2 || root.Entries[0].Size != 4 {
		t.Fatalf("the root: %+v, %v", root, err)
	}
	at := slices.IndexFunc(root.Entries, func(e api.DataEntry) bool { return e.Ref != "" })
	if at < 0 || root.Entries[at].Ref != url.PathEscape(hostile) || strings.Contains(root.Entries[at].Name, "\x1b") {
		t.Errorf("a name that is no text: %+v", root.Entries)
	}
	sub, err := ben.DataTree(t.Context(), of, 1, "a", 1)
	if err != nil || sub.Names != 2 || len(sub.Entries) != 1 || sub.Entries[0].Link != "b/deep.txt" {
		t.Errorf("the second name of a: %+v, %v", sub, err)
	}
	for _, path := range []string{"../..", "a/../a-b", "nothing", "a/link/x", strings.Repeat("x/", 3000)} {
		if _, err := ben.DataTree(t.Context(), of, 1, path, 0); structs.CodeOf(err) != structs.CodeNotFound && structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%.20s: %v", path, err)
		}
	}
	shown, err := ben.PreviewData(t.Context(), of, 1, "rows.csv")
	if err != nil || shown.Shown.Kind != "table" || len(shown.Shown.Rows) != 1 {
		t.Errorf("a table: %+v, %v", shown, err)
	}
	if _, err = ben.PreviewData(t.Context(), of, 1, "a/link"); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a link is followed: %v", err)
	}

	get := func(token, path string, head ...string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, "https://127.0.0.1/v1/data/"+path, nil)
		request.RemoteAddr = "192.0.2.7:1234"
		request.Header.Set("Authorization", "Bearer "+tokens[token])
		for i := 0; i+1 < len(head); i += 2 {
			request.Header.Set(head[i], head[i+1])
		}
		recorder := httptest.NewRecorder() // to its end, however long that takes
		w.agent.http.Handler.ServeHTTP(recorder, request.WithContext(t.Context()))
		return recorder
	}
	content := "cifar10/tree/content?path=large.bin"
	all := get("ben", content)
	mark := all.Header().Get("ETag")
	if all.Code != http.StatusOK || all.Body.String() != large || all.Header().Get("Content-Type") != "application/octet-stream" || !strings.Contains(all.Header().Get("Content-Security-Policy"), "sandbox") || mark == "" {
		t.Errorf("a file: %d, %d bytes, %v", all.Code, all.Body.Len(), all.Header())
	}
	for _, c := range []struct {
		of, since string
		code      int
		want      string
	}{
		{of: "bytes=4000000-4000009", code: http.StatusPartialContent, want: large[4_000_000:4_000_010]},
		{of: "bytes=4799990-", since: mark, code: http.StatusPartialContent, want: large[4_799_990:]},
		{of: "bytes=-3", code: http.StatusPartialContent, want: "def"},
		{of: "bytes=5-", since: `"another"`, code: http.StatusOK, want: large},
		{of: "bytes=4800000-", code: http.StatusRequestedRangeNotSatisfiable},
	} {
		got := get("ben", content, "Range", c.of, "If-Range", c.since)
		if got.Code != c.code || c.want != "" && got.Body.String() != c.want {
			t.Errorf("%s: %d, %d bytes", c.of, got.Code, got.Body.Len())
		}
	}
	if got := get("ben", "cifar10/tree/content?path="+url.QueryEscape(hostile)); got.Body.String() != "h" || strings.Contains(got.Header().Get("Content-Disposition"), "\x1b") {
		t.Errorf("by its bytes: %s, %v", got.Body, got.Header())
	}
	if got := get("ben", "cifar10/tree/content?path=empty"); got.Code != http.StatusOK || got.Body.Len() != 0 {
		t.Errorf("an empty file: %d", got.Code)
	}

	zipped := get("ben", "cifar10/archive").Body.Bytes()
	packed, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	lower := make(map[string]bool)
	for _, file := range packed.File {
		names = append(names, file.Name)
		if !filepath.IsLocal(file.Name) || strings.ContainsAny(file.Name, "\\:\x1b") || lower[strings.ToLower(file.Name)] {
			t.Errorf("%q does not do everywhere", file.Name)
		}
		lower[strings.ToLower(file.Name)] = true
		if file.Name == "large.bin" {
			in, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			if data, err := io.ReadAll(in); err != nil || string(data) != large {
				t.Errorf("a file in the archive: %d bytes, %v", len(data), err)
			}
		}
	}
	if want := []string{"%43ON.txt", "Case", "a/", "a-b", "a/b/", "a/b/deep.txt", "a/link", `a%5C..%5Cb%3Ac%2E`, "case%2", "empty", "gb%C4%E3%1B[2J", "large.bin", "rows.csv"}; !slices.Equal(sorted(names), sorted(want)) {
		t.Errorf("in the archive: %q", names)
	}
	reader := tar.NewReader(get("ben", "cifar10/archive?path=a&format=tar").Body)
	names = nil
	for {
		head, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
	}
	if !slices.Equal(names, []string{"b/", "b/deep.txt", "link"}) {
		t.Errorf("in the tar: %q", names)
	}

	for _, what := range []string{"/tree", "/tree/content?path=a-b", "/tree/preview?path=a-b", "/archive", "/use"} {
		if got := get("ben", "secret"+what); got.Code != http.StatusNotFound {
			t.Errorf("what is private, %s: %d", what, got.Code)
		}
		if got := get("ann", "secret"+what); got.Code != http.StatusOK {
			t.Errorf("one's own, %s: %d %s", what, got.Code, got.Body)
		}
	}
	use, err := ben.DataUse(t.Context(), of)
	if err != nil || len(use.Jobs) != 0 || use.Storage.Name != "nas" || len(use.Storage.Nodes) != 1 {
		t.Errorf("use: %+v, %v", use, err)
	}
	// What the disk has changed is refused, and not sent.
	if err := os.WriteFile(filepath.Join(dir, "dataset", structs.DefaultProject, "cifar10", "1", "a-b"), []byte("BESIDE"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := get("ben", "cifar10/tree/content?path=a-b"); got.Code != http.StatusConflict {
		t.Errorf("other bytes: %d %s", got.Code, got.Body)
	}
	if _, err := ann.DeleteData(t.Context(), of, 0); err != nil {
		t.Fatal(err)
	}
	if event, err = bens.Next(); err != nil || event.ID != "event.data.removed" {
		t.Errorf("ben hears that it is gone: %+v, %v", event, err)
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// directoryOf is a directory with files, as it is pushed.
func directoryOf(t *testing.T, files map[string]string) (tree.Manifest, *tree.Source) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := tree.Scan(t.Context(), dir, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	source, err := tree.OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return m, source
}

func piecesOf(t *testing.T, source *tree.Source, chunks ...tree.Chunk) (pieces []api.CodePiece) {
	t.Helper()
	for _, chunk := range chunks {
		data, err := source.Read(chunk)
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, api.CodePiece{Chunk: chunk, Data: data})
	}
	return pieces
}

// TestBytesOfData: an upload is its sender's alone, also by name; what was announced is
// what counts; a token that has ended in the middle costs nothing of what was sent; and
// nobody sees a version before it is whole.
func TestBytesOfData(t *testing.T) {
	dir, yes := t.TempDir(), true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{
		{Name: "nas", Path: dir + "/{kind}/{project}", Serves: []string{structs.StorageDataset}},
		{Name: "fixed", Path: dir + "/fixed", Serves: []string{structs.StorageModel}, ReadOnly: &yes},
	}}}, options)
	admin := savedClient(t, options)
	as := func(user string) *api.Client {
		t.Helper()
		token, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "user", Project: structs.DefaultProject, User: user})
		if err != nil {
			t.Fatal(err)
		}
		return admin.WithToken(token.Secret)
	}
	refused := func(what, want string, err error) {
		t.Helper()
		got := ""
		if failed := new(structs.Error); errors.As(err, &failed) {
			got = failed.ID
		} else if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	ann, ben, of := as("ann"), as("ben"), api.DataName{Name: "cifar10"}
	m, source := directoryOf(t, map[string]string{"a": "one", "b": "two", "c": "three"})
	other, _ := directoryOf(t, map[string]string{"a": "one"})
	request := api.DataUploadRequest{Digest: string(m.Digest()), Files: m.Files(), Bytes: m.Bytes(), Access: structs.DataProject}
	_, err := ann.BeginDataUpload(t.Context(), api.DataName{Name: "../x"}, request)
	refused("a name out of the storage", "name.characters", err)
	_, err = ann.BeginDataUpload(t.Context(), of, api.DataUploadRequest{Digest: "sha256:x"})
	refused("no digest", "code.digest", err)
	_, err = ann.BeginDataUpload(t.Context(), api.DataName{Name: "bert", Kind: structs.StorageAlgorithm}, request)
	refused("a kind that no storage serves", "agent.data_no_storage", err)
	begun, err := ann.BeginDataUpload(t.Context(), of, request)
	if err != nil || begun.Version != 1 || begun.Storage != "nas" || begun.Begun || begun.Known {
		t.Fatalf("begun: %+v, %v", begun, err)
	}
	sender := ann.DataSender(of, begun.Upload, m.Digest())
	refused("another directory's list", "objects.manifest_digest", sender.Manifest(t.Context(), other.Encode()))
	refused("no list", "tree.manifest_unreadable", sender.Manifest(t.Context(), []byte("x")))
	refused("chunks before the list", "objects.no_upload", sender.Chunks(t.Context(), piecesOf(t, source, m.Chunks()...)))
	refused("the list", "", sender.Manifest(t.Context(), m.Encode()))
	refused("somebody else goes on", "objects.no_upload", ben.DataSender(of, begun.Upload, m.Digest()).Chunks(t.Context(), piecesOf(t, source, m.Chunks()...)))
	refused("another digest", "objects.no_upload", ann.DataSender(of, begun.Upload, other.Digest()).Manifest(t.Context(), other.Encode()))
	small, err := ben.BeginDataUpload(t.Context(), of, api.DataUploadRequest{Digest: request.Digest, Files: 1, Bytes: 1})
	if err != nil || small.Upload == begun.Upload {
		t.Fatalf("ben's own: %+v, %v", small, err)
	}
	refused("more than was announced", "agent.data_size", ben.DataSender(of, small.Upload, m.Digest()).Manifest(t.Context(), m.Encode()))
	refused("given up", "", ben.DataSender(of, small.Upload, m.Digest()).Abort(t.Context()))

	chunks := m.Chunks()
	refused("some", "", sender.Chunks(t.Context(), piecesOf(t, source, chunks[0])))
	wrong := piecesOf(t, source, chunks[1], chunks[2])
	wrong[1].Data = []byte("THREE")
	refused("other bytes", "code.wrong_digest", sender.Chunks(t.Context(), wrong))
	_, err = sender.Finish(t.Context())
	refused("finished too early", "code.incomplete", err)
	_, err = ben.DataManifest(t.Context(), of, 1)
	refused("read before it is whole", "auth.not_found", err)

	// The token ends; whoever signs in again goes on with what was sent.
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
	refused("a token that has ended", "auth.token_invalid", sender.Chunks(t.Context(), piecesOf(t, source, chunks[1])))
	ann = as("ann")
	again, err := ann.BeginDataUpload(t.Context(), of, request)
	if err != nil || again.Upload != begun.Upload || !again.Begun || again.Version != 1 {
		t.Fatalf("begun again: %+v, %v", again, err)
	}
	sender = ann.DataSender(of, again.Upload, m.Digest())
	refused("the list again", "", sender.Manifest(t.Context(), m.Encode()))
	missing, err := sender.Missing(t.Context(), chunks)
	if err != nil || len(missing) != len(chunks)-1 {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	refused("the rest", "", sender.Chunks(t.Context(), piecesOf(t, source, missing...)))
	for done := false; !done; {
		told, err := sender.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done = told.Done
	}
	_, err = sender.Finish(t.Context())
	refused("finished again", "", err)
	refused("given up too late", "state.data_committed", sender.Abort(t.Context()))
	known, err := ben.BeginDataUpload(t.Context(), of, request)
	if err != nil || !known.Known || known.Version != 1 {
		t.Fatalf("known: %+v, %v", known, err)
	}

	data, err := ben.DataManifest(t.Context(), of, 1)
	if err != nil || tree.DigestOf(data) != m.Digest() {
		t.Errorf("the list: %v", err)
	}
	text, err := ben.DataChunks(t.Context(), of, 1, chunks)
	if err != nil || string(text) != "onetwothree" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = ben.DataChunks(t.Context(), of, 1, []tree.Chunk{{Digest: tree.DigestOf([]byte("x")), Size: 1}})
	refused("a chunk of nothing", "objects.not_of_tree", err)
	_, err = ben.VerifyData(t.Context(), of, 1, "../../x")
	refused("a run that is no word", "objects.no_upload", err)

	private := api.DataName{Name: "own"}
	if _, err = ann.BeginDataUpload(t.Context(), private, api.DataUploadRequest{Digest: request.Digest, Files: m.Files(), Bytes: m.Bytes(), Access: structs.DataPrivate}); err != nil {
		t.Fatal(err)
	}
	_, err = ben.BeginDataUpload(t.Context(), private, request)
	refused("into what is another's alone", "auth.not_found", err)
	_, err = ann.BeginDataUpload(t.Context(), of, api.DataUploadRequest{Digest: string(other.Digest()), Files: 1, Bytes: 3, Storage: "fixed"})
	refused("another storage", "state.data_storage", err)
	model, err := ann.BeginDataUpload(t.Context(), api.DataName{Name: "bert", Kind: structs.StorageModel}, request)
	if err != nil {
		t.Fatal(err)
	}
	refused("a storage that nobody writes", "objects.read_only", ann.DataSender(api.DataName{Name: "bert", Kind: structs.StorageModel}, model.Upload, m.Digest()).Manifest(t.Context(), m.Encode()))
}

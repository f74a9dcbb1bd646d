package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/agent/config"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// TestFilesOfAJob lists and reads what a job has written, after its end, and
// finds nothing outside of that by any path or link.
func TestFilesOfAJob(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "nas", "output"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "write.sh")
	text := `set -e
echo hello; cd $NOMADLIKE_WORKSPACE/outputs
mkdir sub && echo inside > sub/file && ln -s sub/file near && ln -s /etc/passwd far && ln -s ../../.. up && mkfifo pipe
yes 0123456 | head -c 1000000 > large
`
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	yes := true
	options := testOptions(t)
	startAgent(t, config.Settings{Dev: &yes, Client: &config.ClientBlock{Storages: []config.StorageBlock{{Name: "nas", Path: dir + "/nas/{kind}"}}}}, options)
	client := savedClient(t, options)
	letRoot(t, client)
	id := runJob(t, client, `
job "writer" {
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  task {
    driver  = "exec"
    command = "sh `+script+`"
  }
  output "run" {}
}
`, structs.JobSucceeded).Job.ID
	names := func(path string) string {
		list, err := client.Files(t.Context(), id, path, api.FileFilter{})
		if err != nil {
			t.Fatalf("list %q: %v", path, err)
		}
		var names []string
		for _, e := range list.Entries {
			name := e.Name
			if e.Dir {
				name += "/"
			}
			if e.Link {
				name += "@"
			}
			names = append(names, name)
		}
		return strings.Join(names, " ")
	}
	if got := names(""); got != "logs/ outputs/" {
		t.Errorf("at the top: %s", got)
	}
	if got := names("outputs"); got != "far@ large near@ pipe@ sub/ up@" {
		t.Errorf("outputs: %s", got)
	}
	if got := names("/outputs//sub/"); got != "file" {
		t.Errorf("sub: %s", got)
	}
	read := func(path string, offset int64) string {
		from, err := client.OpenFile(t.Context(), id, path, api.FileFilter{}, offset)
		if err != nil {
			t.Fatalf("read %q: %v", path, err)
		}
		defer from.Close()
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := strings.Repeat("0123456\n", 125_000)
	if read("outputs/large", 0) != want || read("outputs/large", 999_990) != want[999_990:] || read("outputs/near", 0) != "inside\n" {
		t.Error("files are not what the job wrote")
	}
	digests(t, client, id, want)
	list, err := client.Files(t.Context(), id, "logs", api.FileFilter{})
	if err != nil || len(list.Entries) == 0 {
		t.Fatalf("logs: %+v, %v", list, err)
	}
	for _, path := range []string{"outputs/far", "outputs/up", "outputs/up/nas", "outputs/../task", "task", "secrets", "../x", "outputs/none", "outputs/pipe", "outputs/large/x", "logs/../metrics.json"} {
		from, err := client.OpenFile(t.Context(), id, path, api.FileFilter{}, 0)
		if err == nil {
			data, _ := io.ReadAll(from)
			from.Close()
			t.Errorf("%s can be read: %.40q", path, data)
		} else if structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := client.OpenFile(t.Context(), id, "outputs/sub", api.FileFilter{}, 0); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a directory is read: %v", err)
	}
	if _, err := client.OpenFile(t.Context(), id, "outputs/large", api.FileFilter{}, 2_000_000); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("behind the end: %v", err)
	}
	if _, err := client.Files(t.Context(), id, "", api.FileFilter{Rank: 3}); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("of a rank that is not: %v", err)
	}
	// A job that swaps its directory for a link shows nothing else by it.
	output := filepath.Join(dir, "nas", "output", "run")
	if err := os.Rename(output, output+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", output); err != nil {
		t.Fatal(err)
	}
	if list, err := client.Files(t.Context(), id, "outputs", api.FileFilter{}); err == nil {
		t.Errorf("a link instead of the directory shows %+v", list.Entries)
	}
}

// digests has the node tell what the bytes of a file are, with them and instead of them.
func digests(t *testing.T, client *api.Client, id, want string) {
	t.Helper()
	sumOf := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for _, part := range []struct{ from, count int64 }{{0, 1_000_000}, {10, 7}, {999_990, 10}, {0, 0}} {
		end := part.from + part.count
		if part.count == 0 {
			end = int64(len(want))
		}
		found, err := client.FileDigest(t.Context(), id, "outputs/large", api.FileFilter{}, part.from, part.count)
		if err != nil || found.SHA256 != sumOf(want[part.from:end]) || found.Entry.Size != int64(len(want)) {
			t.Errorf("digest of %+v: %+v, %v", part, found, err)
		}
		if part.count == 0 {
			continue
		}
		body, digest, err := client.OpenFilePart(t.Context(), id, "outputs/large", api.FileFilter{}, part.from, part.count)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(body)
		body.Close()
		if err != nil || string(data) != want[part.from:end] || digest != sumOf(string(data)) {
			t.Errorf("part %+v: %d bytes, digest %s, %v", part, len(data), digest, err)
		}
	}
	for _, path := range []string{"outputs/far", "outputs/up/nas", "outputs/../task", "outputs/none"} {
		if found, err := client.FileDigest(t.Context(), id, path, api.FileFilter{}, 0, 0); structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
	if found, err := client.FileDigest(t.Context(), id, "outputs/pipe", api.FileFilter{}, 0, 0); err != nil || found.SHA256 != "" || !found.Entry.Link {
		t.Errorf("of a pipe: %+v, %v", found, err)
	}
	if _, err := client.FileDigest(t.Context(), id, "outputs/large", api.FileFilter{}, 0, structs.FileDigestMax+1); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("of more than is told: %v", err)
	}
}

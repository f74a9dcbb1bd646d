package objects

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// swept is what a sweep finds, by the names of uploads.
func swept(t *testing.T, s *Store, run string) (ids []string) {
	t.Helper()
	reply, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskLeft, Upload: run, Place: structs.DataPlace{Kind: structs.StorageDataset, Storage: "nas"}})
	if err != nil || !reply.Done {
		t.Fatalf("%+v, %v", reply, err)
	}
	for _, one := range reply.List {
		ids = append(ids, one.ID)
	}
	return ids
}

func cleared(t *testing.T, s *Store, upload string, never bool, place structs.DataPlace) error {
	t.Helper()
	if place.Version == 0 {
		place = structs.DataPlace{Kind: structs.StorageDataset, Storage: "nas"}
	}
	_, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskClear, Upload: upload, End: never, Place: place})
	return err
}

// TestLeft: a sweep finds what nobody goes on with, and removes of it what it is told to,
// with what was made of an upload that the log never had. What is begun again meanwhile
// stays, and so does everything else beside it.
func TestLeft(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	s := openStore(t, dir, func(c *Config) { c.Now = func() time.Time { return now } })
	one, other := sampleOf(t, map[string]string{"a/b": "one"}), sampleOf(t, map[string]string{"a/b": "two"})
	for number, upload := range map[int]string{1: "upload-half", 2: "upload-again"} {
		if err := one.begin(s, one.place(number, 0), upload); err != nil {
			t.Fatal(err)
		}
	}
	for number := 3; number <= 4; number++ {
		if _, err := one.push(s, number, 0); err != nil { // upload-N
			t.Fatal(err)
		}
	}
	if _, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskAbort, Upload: "upload-3", Place: one.place(3, 0)}); err != nil { // it is a version
		t.Fatal(err)
	}
	at := filepath.Join(dir, "dataset/vision/cifar10")
	if err := os.MkdirAll(at+"/.nomadlike/gone-x/y", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, s, "run-00000"); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	now = now.Add(leftIdle + time.Minute)
	if got := strings.Join(swept(t, s, "run-00001"), " "); got != "upload-4 upload-again upload-half" {
		t.Errorf("left: %q", got)
	}
	if err := one.begin(s, one.place(2, 0), "upload-again"); err != nil {
		t.Fatal(err)
	}
	for upload, never := range map[string]bool{"upload-half": true, "upload-again": true, "upload-4": true, "upload-3": true, "../../x-y-z": true} {
		if err := cleared(t, s, upload, never, structs.DataPlace{}); err != nil && upload != "../../x-y-z" {
			t.Errorf("%s: %v", upload, err)
		}
	}
	got := shown(t, at)
	for text, wanted := range map[string]bool{
		"up-upload-half": false, "up-upload-again": true, "gone-": false, "done-": false, "dr-xr-xr-x 3": true, "dr-xr-xr-x 4": false, "cifar10.4": false, "cifar10.3.tree": true,
	} {
		if strings.Contains(got, text) != wanted {
			t.Errorf("%s is there: %v\n%s", text, !wanted, got)
		}
	}
	if lacking, err := one.missing(s, one.place(2, 0), "upload-again"); err != nil || len(lacking) != 1 {
		t.Errorf("the living upload: %v, %v", lacking, err)
	}

	// Another's version of the same number and bytes stays.
	if _, err := other.push(s, 5, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at+"/.nomadlike/cifar10.5.tree.made", []byte("upload-x "+string(other.manifest.Digest())), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cleared(t, s, "upload-5", true, other.place(5, 0)); err != nil {
		t.Fatal(err)
	}
	if reply := verified(t, s, other.place(5, 0)); reply.Wrongs != 0 {
		t.Errorf("another's version: %+v", reply)
	}
}

// TestClearCutOff: a removal that was cut off at any step goes on when it is asked again.
func TestClearCutOff(t *testing.T) {
	for _, cut := range []string{"", "cifar10/1", "cifar10/.nomadlike/cifar10.1.tree", "cifar10/.nomadlike/cifar10.1.tree.made", "cifar10/.nomadlike/done-upload-1"} {
		dir := t.TempDir()
		s := openStore(t, dir)
		one := sampleOf(t, map[string]string{"a/b": "one"})
		if _, err := one.push(s, 1, 0); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"cifar10/1", "cifar10/.nomadlike/cifar10.1.tree", "cifar10/.nomadlike/cifar10.1.tree.made", "cifar10/.nomadlike/done-upload-1"} {
			if cut == "" {
				break
			}
			root, err := os.OpenRoot(filepath.Join(dir, "dataset/vision"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errorsOf(removeTree(root, name), root.Close()); err != nil {
				t.Fatal(err)
			}
			if name == cut {
				break
			}
		}
		if err := cleared(t, s, "upload-1", true, one.place(1, 0)); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, filepath.Join(dir, "dataset/vision/cifar10")); got != "drwx------ .nomadlike\ndrwxr-xr-x ." {
			t.Errorf("cut off after %q, it leaves:\n%s", cut, got)
		}
	}
}

// TestClearEndsWork: what goes on for an upload that is given up ends, and leaves nothing.
func TestClearEndsWork(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	going := make(chan struct{})
	ask := &structs.DataAsk{What: structs.DataAskFinish, Upload: "upload-1", Place: sampleOf(t, map[string]string{"a": "one"}).place(1, 0)}
	w, err := s.begun(ask, func(ctx context.Context, _ *structs.DataPlace, _ string, _, _ *atomic.Int64) (*structs.DataReply, error) {
		close(going)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	<-going
	if err := cleared(t, s, "upload-1", true, ask.Place); err != nil {
		t.Fatal(err)
	}
	<-w.ended
	if idOf(w.err) != "objects.no_upload" {
		t.Errorf("its end: %v", w.err)
	}
}

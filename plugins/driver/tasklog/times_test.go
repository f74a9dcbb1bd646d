package tasklog_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/plugins/driver/tasklog"
)

// stamped reads a stream with times.
func stamped(t *testing.T, request tasklog.Request) []string {
	t.Helper()
	var stamper tasklog.Stamper
	var text strings.Builder
	request.Times = true
	if err := tasklog.Read(context.Background(), request, func(c tasklog.Chunk) error {
		text.Write(stamper.Stamp(c))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// Every line has the time at which it came, over segments, restarts of the
// writer and a record that was broken off; what is older than times has none.
func TestLinesHaveTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, w := logDir(t, 8, 64)
		var want []string
		line := func(w *tasklog.Writer, text string) {
			want = append(want, time.Now().UTC().Format(tasklog.TimeLayout)+" "+text)
			_, _ = w.Write([]byte(text + "\n"))
			time.Sleep(time.Second)
		}
		for range 4 {
			line(w, "first line of twenty")
			line(w, "second")
		}
		w.Close()
		half := filepath.Join(path, "stdout.at-1")
		if data, err := os.ReadFile(half); err != nil || os.WriteFile(half, append(data, 1, 2, 3), 0o600) != nil {
			t.Fatal(err)
		}
		w = reopen(t, path, 8, 64)
		line(w, "after a start")
		_, _ = w.Write([]byte("of one "))
		want = append(want, time.Now().UTC().Format(tasklog.TimeLayout)+" of one line")
		time.Sleep(time.Minute)
		_, _ = w.Write([]byte("line\n"))
		request := tasklog.Request{Dir: path, Stream: tasklog.Stdout}
		if got := stamped(t, request); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		request.TailLines = 2
		if got := stamped(t, request); strings.Join(got, "\n") != strings.Join(want[len(want)-2:], "\n") {
			t.Errorf("tail: %q", got)
		}
		w.Close()
		if err := os.Remove(filepath.Join(path, "stdout.at-0")); err != nil {
			t.Fatal(err)
		}
		if got := stamped(t, tasklog.Request{Dir: path, Stream: tasklog.Stdout}); got[0] != "- first line of twenty" {
			t.Errorf("without times: %q", got[0])
		}
	})
}

// Times go with their segment, and do not grow without bound.
func TestTimesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, w := logDir(t, 2, 1<<20)
		for range 200_000 {
			_, _ = w.Write([]byte("."))
			time.Sleep(25 * time.Millisecond)
		}
		info, err := os.Stat(filepath.Join(path, "stdout.at-0"))
		if err != nil || info.Size() > 1<<20 {
			t.Errorf("times of 200,000 writes: %v %v", info.Size(), err)
		}
		_, _ = w.Write(make([]byte, 3<<20))
		if _, err := os.Stat(filepath.Join(path, "stdout.at-0")); !os.IsNotExist(err) {
			t.Errorf("times outlive their segment: %v", err)
		}
	})
}

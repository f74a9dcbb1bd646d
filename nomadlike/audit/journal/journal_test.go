package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/structs"
)

const (
	ida = "0000000000000000000000000000000a"
	idb = "0000000000000000000000000000000b"
)

// clock is a time that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func open(t fatal, dir, id string, now func() time.Time, bounds audit.Bounds) *journal.Journal {
	t.Helper()
	if bounds == (audit.Bounds{}) {
		bounds = audit.Bounds{Keep: 400 * 24 * time.Hour, SizeMax: 1 << 30}
	}
	j, err := journal.Open(journal.Config{Dir: dir, Server: id, Bounds: bounds, Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func closeIt(t fatal, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func did(user, action string) audit.Record {
	return audit.Record{Actor: audit.Actor{Kind: "user", User: user}, Action: action, Object: audit.Object{Kind: "job", ID: "train-" + user}, Outcome: audit.Allowed}
}

func add(t fatal, j *journal.Journal, records ...audit.Record) {
	t.Helper()
	for _, r := range records {
		if err := j.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// told lists what a query finds, as "user action".
func told(t fatal, j *journal.Journal, filter audit.Filter) []string {
	t.Helper()
	page, err := j.Query(context.Background(), filter, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range page.Records {
		all = append(all, strings.TrimSpace(r.Actor.User+" "+r.Action))
	}
	return all
}

func whole(t fatal, j *journal.Journal) map[string]journal.State {
	t.Helper()
	states, err := j.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	byServer := make(map[string]journal.State)
	for _, state := range states {
		if state.Broken != nil {
			t.Fatalf("%s: %v", state.Server, state.Broken)
		}
		byServer[state.Server] = state
	}
	return byServer
}

func onlyFile(t fatal, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	return files[0]
}

// A process that is killed loses nothing that it has written, and a line that was
// cut off anywhere is taken away: what was whole stays, and a record tells.
func TestTornLines(t *testing.T) {
	dir := t.TempDir()
	c := &clock{now: noon}
	j := open(t, dir, ida, c.Now, audit.Bounds{})
	add(t, j, did("ann", "jobs.stop"), did("ben", "jobs.delete"))
	closeIt(t, j)
	name := onlyFile(t, filepath.Join(dir, ida))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	for _, tail := range []string{"", "\x00\x00\x00", "\x00\x00\n", "{\"seq\":", "garbage\n{\"x\":1}\n"} {
		for cut := 0; cut <= len(data); cut += 7 {
			if err := os.WriteFile(name, append(slices.Clone(data[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, dir, ida, c.Now, audit.Bounds{})
			kept := 0
			for at := 0; kept < 3 && at+len(lines[kept]) <= cut; kept++ {
				at += len(lines[kept])
			}
			state := whole(t, j)[ida]
			got := told(t, j, audit.Filter{})
			torn := len(tail) > 0 || cut != len(bytes.Join(lines[:kept], nil))
			want := kept + 1
			if torn {
				want++
			}
			if len(got) != want || state.Lines != want || state.First != 1 || slices.Contains(got, ida+" audit.recovered") != torn {
				t.Fatalf("cut at %d with %q behind: %v, %+v", cut, tail, got, state)
			}
			closeIt(t, j)
			files, _ := filepath.Glob(filepath.Join(dir, ida, "*.jsonl"))
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A line that somebody changes is named, in its file, also after a start.
func TestCheckNamesTheLine(t *testing.T) {
	dir := t.TempDir()
	c := &clock{now: noon}
	j := open(t, dir, ida, c.Now, audit.Bounds{})
	add(t, j, did("ann", "jobs.stop"), did("ben", "jobs.delete"), did("eve", "jobs.move"))
	closeIt(t, j)
	name := onlyFile(t, filepath.Join(dir, ida))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(data, []byte(`"user":"ben"`), []byte(`"user":"bob"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir, ida, c.Now, audit.Bounds{})
	defer closeIt(t, j)
	states, err := j.Check(t.Context())
	if err != nil || states[0].Broken == nil {
		t.Fatalf("%+v, %v", states, err)
	}
	if broken := states[0].Broken; broken.Line != 4 || broken.Seq != 4 || broken.How != audit.BreakHash || states[0].File != filepath.Base(name) {
		t.Errorf("%+v in %s", broken, states[0].File)
	}
}

// Files are begun anew by size and by age, chained to each other, and removed by
// age; a record says from which line on the rest is kept.
func TestFilesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		bounds := audit.Bounds{Keep: 40 * time.Hour, SizeMax: 1 << 30}
		j := open(t, dir, ida, time.Now, bounds)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			j.Run(ctx)
		}()
		for range 60 {
			add(t, j, did("ann", "jobs.stop"))
			time.Sleep(time.Hour + time.Minute)
		}
		state := whole(t, j)[ida]
		if state.First < 15 || state.First > 30 {
			t.Errorf("what is kept of 61 hours begins at line %d", state.First)
		}
		if got := told(t, j, audit.Filter{Action: "audit.forget"}); len(got) < 10 {
			t.Errorf("%d records of removals", len(got))
		}
		cancel()
		<-done
		closeIt(t, j)
		again := open(t, dir, ida, time.Now, bounds)
		if next := whole(t, again)[ida]; next.First != state.First || next.Last != state.Last+1 {
			t.Errorf("%+v became %+v", state, next)
		}
		closeIt(t, again)
	})
}

// What is written is offered to others only when it is on the disk, and that is
// within a quarter of a second.
func TestSoonOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, t.TempDir(), ida, time.Now, audit.Bounds{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			j.Run(ctx)
		}()
		time.Sleep(time.Second)
		changed := j.Changed()
		add(t, j, did("ann", "jobs.stop"))
		begun := time.Now()
		if heads := j.Heads(); heads[ida] != 1 {
			t.Errorf("offered before it is on the disk: %v", heads)
		}
		<-changed
		if took := time.Since(begun); took > 250*time.Millisecond {
			t.Errorf("on the disk after %s", took)
		}
		if heads := j.Heads(); heads[ida] != 2 {
			t.Errorf("not offered: %v", heads)
		}
		cancel()
		<-done
		closeIt(t, j)
	})
}

// exchange has a journal fetch what another one offers, until there is no more.
func exchange(t fatal, from, to *journal.Journal) {
	t.Helper()
	for {
		parts, err := from.Offer(to.Server(), to.Heads(), 300)
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) == 0 {
			return
		}
		for _, part := range parts {
			if _, err := to.Take(part); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Copies are the same lines, verified; a query and a check see them; they are
// still there after a start, and when the server of the chain is gone.
func TestCopies(t *testing.T) {
	c := &clock{now: noon}
	dir := t.TempDir()
	a, b := open(t, t.TempDir(), ida, c.Now, audit.Bounds{}), open(t, dir, idb, c.Now, audit.Bounds{})
	for i := range 20 {
		c.now = c.now.Add(time.Second)
		add(t, a, did(fmt.Sprint("ann", i), "jobs.stop"))
		c.now = c.now.Add(time.Second)
		add(t, b, did(fmt.Sprint("ben", i), "jobs.delete"))
	}
	if parts, err := a.Offer(idb, nil, 1000); err != nil || len(parts) != 0 {
		t.Errorf("what is not on the disk is offered: %v, %v", parts, err)
	}
	a.Sync()
	b.Sync()
	exchange(t, a, b)
	exchange(t, b, a)
	if x, y := told(t, a, audit.Filter{}), told(t, b, audit.Filter{}); !slices.Equal(x[:40], y[:40]) || x[0] != "ben19 jobs.delete" || x[1] != "ann19 jobs.stop" {
		t.Errorf("%v\n%v", x, y)
	}
	if x, y := whole(t, a), whole(t, b); x[ida] != y[ida] || x[idb] != y[idb] {
		t.Errorf("%+v, %+v", x, y)
	}
	if _, err := b.Take(journal.Part{Server: idb, Lines: []byte("{}\n")}); err == nil {
		t.Error("a server took lines of its own chain")
	}
	closeIt(t, a)
	closeIt(t, b)
	b = open(t, dir, idb, c.Now, audit.Bounds{})
	defer closeIt(t, b)
	if got := told(t, b, audit.Filter{User: "ann7"}); !slices.Equal(got, []string{"ann7 jobs.stop"}) {
		t.Errorf("after a start: %v", got)
	}
}

// A server whose disk was put back to an earlier state goes on with other lines
// than the copies have: it says so, and the copy of before is kept.
func TestPutBack(t *testing.T) {
	c := &clock{now: noon}
	dir, copies := t.TempDir(), t.TempDir()
	a, b := open(t, dir, ida, c.Now, audit.Bounds{}), open(t, copies, idb, c.Now, audit.Bounds{})
	defer closeIt(t, b)
	a.Sync()
	exchange(t, a, b)
	name := onlyFile(t, filepath.Join(dir, ida))
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	add(t, a, did("eve", "jobs.delete"), did("eve", "tokens.create"), did("eve", "tokens.delete"))
	a.Sync()
	exchange(t, a, b)
	closeIt(t, a)
	if err := os.WriteFile(name, before, 0o600); err != nil {
		t.Fatal(err)
	}
	a = open(t, dir, ida, c.Now, audit.Bounds{})
	defer closeIt(t, a)
	if _, err := a.Offer(idb, b.Heads(), 1000); err != nil {
		t.Fatal(err)
	}
	if got := told(t, a, audit.Filter{Action: audit.ActionBehind}); len(got) != 1 {
		t.Errorf("the server does not tell: %v", got)
	}
	add(t, a, did("ann", "jobs.stop"), did("ann", "jobs.stop"), did("ann", "jobs.stop"))
	a.Sync()
	parts, err := a.Offer(idb, b.Heads(), 1000)
	if err != nil || len(parts) != 1 {
		t.Fatalf("%v, %v", parts, err)
	}
	if _, err := b.Take(parts[0]); err == nil {
		t.Fatal("lines were taken that do not follow")
	}
	exchange(t, a, b)
	if got := told(t, b, audit.Filter{Action: audit.ActionDiverged}); len(got) != 1 {
		t.Errorf("the other server does not tell: %v", got)
	}
	if x, y := whole(t, a)[ida], whole(t, b)[ida]; x != y {
		t.Errorf("%+v, %+v", x, y)
	}
	aside, err := os.ReadFile(onlyFile(t, filepath.Join(copies, ida+"~4")))
	if err != nil || !bytes.Contains(aside, []byte(`"user":"eve"`)) {
		t.Errorf("the copy of before is not kept: %s, %v", aside, err)
	}
}

// Pages of whatever size, from whatever chains, are together what a plain look
// at all records finds.
func TestQueryFindsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{now: noon}
		dir, err := os.MkdirTemp("", "audit")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		a, b := open(t, filepath.Join(dir, "a"), ida, c.Now, audit.Bounds{Keep: 20 * time.Hour, SizeMax: 1 << 30}), open(t, filepath.Join(dir, "b"), idb, c.Now, audit.Bounds{})
		defer a.Close()
		defer b.Close()
		filter := audit.Filter{User: rapid.SampledFrom([]string{"", "ann", "ben"}).Draw(t, "user"), Refused: rapid.Bool().Draw(t, "refused")}
		if rapid.Bool().Draw(t, "since") {
			filter.Since = structs.At(noon.Add(40 * time.Minute))
		}
		want := 0
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			c.now = c.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute)
			r := did(rapid.SampledFrom([]string{"ann", "ben"}).Draw(t, "who"), "jobs.stop")
			r.Outcome = rapid.SampledFrom([]audit.Outcome{audit.Allowed, audit.Refused}).Draw(t, "outcome")
			r.Time = structs.At(c.now)
			if filter.Takes(&r) {
				want++
			}
			add(t, rapid.SampledFrom([]*journal.Journal{a, b}).Draw(t, "where"), r)
		}
		a.Sync()
		exchange(t, a, b)
		got, after, last := 0, "", structs.UnixNano(1<<62)
		for {
			page, err := b.Query(context.Background(), filter, after, rapid.IntRange(1, 9).Draw(t, "limit"))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				if r.Time > last {
					t.Fatal("not the newest first")
				}
				last = r.Time
				if strings.HasPrefix(r.Action, "jobs.") {
					got++
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if got != want {
			t.Fatalf("%d records are found, %d were written", got, want)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	j := open(b, b.TempDir(), ida, time.Now, audit.Bounds{})
	defer closeIt(b, j)
	r := did("ann", "jobs.stop")
	r.Request, r.Address, r.Status, r.Index = "0123456789abcdef01234567", "192.0.2.7", 200, 1234
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

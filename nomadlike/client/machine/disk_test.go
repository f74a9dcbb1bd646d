package machine

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// names lists faults by name, with the figures that they tell.
func names(faults []structs.NodeFault) string {
	text := ""
	for _, f := range faults {
		text += fmt.Sprintf("%s(%s) ", f.Name, f.Reason.Params["free"])
	}
	return text
}

// A fault of a disk begins under one bound, ends at a higher one, and says the
// same as long as it lasts.
func TestFaultsOfDisks(t *testing.T) {
	const gib = int64(1) << 30
	watch, bounds := new(diskWatch), DiskBounds{}
	for _, look := range []struct {
		free, left int64
		readOnly   bool
		err        error
		want       string
	}{
		{free: 500 * gib, left: 1e6},
		{free: gib, left: 10_000},
		{free: gib - 1, left: 1e6, want: "disk/space(1023MiB) "},
		{free: 0, left: 1e6, want: "disk/space(1023MiB) "},
		{free: 2*gib - 1, left: 9_999, want: "disk/space(1023MiB) disk/inodes(9999) "},
		{free: 2 * gib, left: 19_999, want: "disk/inodes(9999) "},
		{free: 2*gib - 1, left: 20_000},
		{free: gib, left: 20_000, readOnly: true, want: "disk/write() "},
		{free: gib, left: 20_000, err: syscall.EDQUOT, want: "disk/write() "},
		{free: gib, left: 20_000},
	} {
		room := FileSystem{path: "/d", Size: 1000 * gib, Free: look.free, Inodes: 1 << 24, left: look.left, readOnly: look.readOnly, err: look.err}
		if got := names(watch.step(bounds, []FileSystem{room})); got != look.want {
			t.Errorf("with %d bytes and %d inodes: %q, want %q", look.free, look.left, got, look.want)
		}
	}
	small := FileSystem{path: "/d", Size: 4 << 20, Free: 100 << 10} // a fiftieth of it is less than is left
	if got := names(watch.step(bounds, []FileSystem{small})); got != "" {
		t.Errorf("a small disk with room has %q", got)
	}
	bounds = DiskBounds{SpaceMin: 200 << 10, SpaceBack: 300 << 10}
	if got := names(watch.step(bounds, []FileSystem{small})); got != "disk/space(100KiB) " {
		t.Errorf("by an administrator's bounds it has %q", got)
	}
}

// Three jobs in a row whose starts fail put a node out of service, each failing
// trial for twice as long, a start that succeeds puts it back.
func TestStartsThatFail(t *testing.T) {
	watch, now := new(startWatch), time.Unix(1e9, 0)
	cause := structs.NewReason("client.dir_failed", "cause", "no")
	fail := func(job string, trips bool) {
		t.Helper()
		if got := watch.failed(job, cause, now); got != trips {
			t.Fatalf("a failed start of %s: out of service %v, want %v", job, got, trips)
		}
	}
	fail("a", false)
	fail("a", false)
	fail("b", false)
	watch.worked()
	fail("a", false)
	fail("a", false)
	fail("b", false)
	if len(watch.faults(now)) != 0 {
		t.Fatal("out of service after two jobs")
	}
	fail("c", true)
	fail("d", false) // it was under way
	for away := startsAwayMin; away < startsAwayMost; away = min(2*away, startsAwayMost) {
		if f := watch.faults(now); len(f) != 1 || !f[0].Unfit || messages.Text(messages.English, f[0].Reason.Params["cause_id"], map[string]string{"cause": f[0].Reason.Params["cause.cause"]}) != messages.Text(messages.English, cause.ID, cause.Params) {
			t.Fatalf("faults %+v", f)
		}
		now = now.Add(away - 1)
		if len(watch.faults(now)) != 1 {
			t.Fatalf("back before %s", away)
		}
		now = now.Add(1)
		if len(watch.faults(now)) != 0 {
			t.Fatalf("not tried after %s", away)
		}
		fail("a", true)
	}
	now = now.Add(startsAwayMost)
	watch.worked()
	fail("a", false)
	if len(watch.faults(now)) != 0 {
		t.Fatal("out of service after one failure")
	}
}

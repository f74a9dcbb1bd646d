package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/structs"
)

const server = "00000000000000000000000000000001"

var noon = structs.At(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))

// chainOf makes the lines of records, one after the other.
func chainOf(t interface{ Fatal(...any) }, records ...audit.Record) [][]byte {
	var head audit.Head
	var lines [][]byte
	for _, r := range records {
		r.Seq, r.Server, r.Prev = head.Seq+1, server, head.Hash
		line, err := audit.Encode(r.Bounded())
		if err != nil {
			t.Fatal(err)
		}
		head = audit.Head{Seq: r.Seq, Hash: audit.HashLine(line)}
		lines = append(lines, line)
	}
	return lines
}

func drawRecord(t *rapid.T) audit.Record {
	text := rapid.StringN(0, 40, -1)
	return audit.Record{
		Time: structs.UnixNano(rapid.Int64Range(1, 4e18).Draw(t, "time")), Request: text.Draw(t, "request"), Address: text.Draw(t, "address"),
		Actor:  audit.Actor{Kind: text.Draw(t, "kind"), User: text.Draw(t, "user"), TokenID: text.Draw(t, "token")},
		Action: text.Draw(t, "action"), Object: audit.Object{Kind: text.Draw(t, "object"), ID: text.Draw(t, "id"), Owner: text.Draw(t, "owner")},
		Outcome: rapid.SampledFrom([]audit.Outcome{audit.Allowed, audit.Refused, audit.Failed}).Draw(t, "outcome"),
		Status:  rapid.IntRange(0, 599).Draw(t, "status"), Count: rapid.IntRange(0, 1e6).Draw(t, "count"),
		Sent: rapid.Int64Range(0, 1<<50).Draw(t, "sent"), Took: structs.Duration(rapid.Int64Range(0, 1e15).Draw(t, "took")),
	}.Bounded()
}

// A line is what people and other programs read: its form is a promise.
func TestLine(t *testing.T) {
	r := audit.Record{
		Time: noon, Request: "0123456789abcdef", Actor: audit.Actor{Kind: "user", User: "ann", Role: "user", Method: "token", TokenID: "t1"},
		Address: "192.0.2.7", Forwarded: 1, Action: "jobs.stop", Object: audit.Object{Kind: "job", ID: "j1", Project: "one", Owner: "ben\n\x1b[31m<b>"},
		Outcome: audit.Refused, Status: 403, Reason: "auth.forbidden.owner", Index: 7, Count: 3, Sent: 1, Received: 2, Took: structs.Duration(90 * time.Second),
	}
	lines := chainOf(t, audit.Record{Time: noon, Action: audit.ActionBegin, Outcome: audit.Allowed}, r)
	golden.Assert(t, "testdata/lines.golden", string(bytes.Join(lines, nil)))
}

// What was encoded is read as it was, and encoded again to the same bytes,
// whatever names callers choose.
func TestLinesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := chainOf(t, drawRecord(t))[0]
		if bytes.Count(line, []byte{'\n'}) != 1 || len(line) > audit.LineMax {
			t.Fatalf("%q is more than a line", line)
		}
		r, err := audit.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := audit.Encode(r); err != nil || !bytes.Equal(again, line) {
			t.Fatalf("%s came back as %s, %v", line, again, err)
		}
	})
}

// Whatever is done to a chain, the first line that was touched is named, or the
// one after it.
func TestEveryChangeShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []audit.Record
		for range rapid.IntRange(3, 12).Draw(t, "lines") {
			records = append(records, drawRecord(t))
		}
		lines := chainOf(t, records...)
		at := rapid.IntRange(0, len(lines)-2).Draw(t, "at") // what follows the last one says that it was touched
		switch rapid.SampledFrom([]string{"edit", "remove", "swap", "repeat", "insert"}).Draw(t, "change") {
		case "edit":
			r, _ := audit.Parse(lines[at])
			r.Action += "x"
			line, err := audit.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			lines[at] = line
		case "remove":
			if at == 0 { // as retention does: the rest is a chain
				at++
			}
			lines = append(lines[:at:at], lines[at+1:]...)
		case "swap":
			lines[at], lines[at+1] = lines[at+1], lines[at]
		case "repeat":
			lines = append(lines[:at+1:at+1], lines[at:]...)
		case "insert":
			lines = append(lines[:at+1:at+1], append([][]byte{[]byte("{}\n")}, lines[at+1:]...)...)
		}
		whole := 0
		var broken *audit.BrokenError
		chain := audit.Chain{Server: server}
		for _, line := range lines {
			if _, err := chain.Next(line); errors.As(err, &broken) {
				break
			}
			whole++
		}
		if broken == nil {
			if at+1 == len(lines) { // the last one was removed: only a copy can tell
				return
			}
			t.Fatal("nothing shows")
		}
		if broken.Line != whole+1 || whole < at || whole > at+1 {
			t.Fatalf("line %d was touched, line %d is named (%s)", at+1, broken.Line, broken.How)
		}
	})
}

func TestHowAChainBreaks(t *testing.T) {
	lines := chainOf(t, make([]audit.Record, 4)...)
	other := bytes.Replace(lines[1], []byte(server), []byte(strings.Replace(server, "1", "2", 1)), 1)
	forged := bytes.Replace(lines[1], []byte(`"action":""`), []byte(`"action":"x"`), 1)
	for name, test := range map[string]struct {
		lines [][]byte
		how   audit.Break
		seq   uint64
	}{
		"whole":                  {lines, "", 0},
		"the first ones expired": {lines[2:], "", 0},
		"one is missing":         {[][]byte{lines[0], lines[2]}, audit.BreakMissing, 3},
		"one comes again":        {[][]byte{lines[0], lines[1], lines[1]}, audit.BreakOrder, 2},
		"of another server":      {[][]byte{lines[0], other}, audit.BreakServer, 2},
		"changed":                {[][]byte{lines[0], forged, lines[2]}, audit.BreakHash, 3},
		"no line":                {[][]byte{lines[0], []byte("\x00\x00\n")}, audit.BreakUnreadable, 2},
		"cut":                    {[][]byte{lines[0], lines[1][:20]}, audit.BreakUnreadable, 2},
	} {
		chain := audit.Chain{Server: server}
		var broken *audit.BrokenError
		for _, line := range test.lines {
			if _, err := chain.Next(line); errors.As(err, &broken) {
				break
			}
		}
		switch {
		case broken == nil && test.how == "":
		case broken == nil || broken.How != test.how || broken.Seq != test.seq:
			t.Errorf("%s: %+v", name, broken)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range chainOf(f, make([]audit.Record, 2)...) {
		f.Add(line)
	}
	f.Add([]byte(`{"seq":1,"server":"x","time":null,"actor":{},"action":"","object":{},"outcome":"","prev":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := audit.Parse(line)
		if err != nil {
			return
		}
		encoded, err := audit.Encode(r)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", line, err)
		}
		if again, err := audit.Parse(encoded); len(encoded) <= audit.LineMax && (err != nil || again != r) {
			t.Fatalf("%q came back as %+v, %v", line, again, err)
		}
	})
}

// Files are removed from the oldest on, never the one that is written to, and
// no more than the bounds ask for.
func TestExpired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := audit.Bounds{Keep: time.Hour * time.Duration(rapid.IntRange(1, 50).Draw(t, "keep")), SizeMax: rapid.Int64Range(1, 500).Draw(t, "max")}
		var files []audit.File
		at := noon
		for range rapid.IntRange(1, 10).Draw(t, "files") {
			files = append(files, audit.File{Size: rapid.Int64Range(0, 200).Draw(t, "size"), Newest: at})
			at = at.Add(time.Hour * time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")))
		}
		n := bounds.Expired(files, at)
		if n >= len(files) {
			t.Fatal("the last file is removed")
		}
		over := func(files []audit.File) bool {
			total := int64(0)
			for _, f := range files {
				total += f.Size
			}
			return len(files) > 1 && (total > bounds.SizeMax || at.Sub(files[0].Newest) > bounds.Keep)
		}
		if over(files[n:]) || n > 0 && !over(files[n-1:]) {
			t.Fatalf("%d of %+v are removed", n, files)
		}
	})
}

func TestFullFiles(t *testing.T) {
	bounds := audit.Bounds{Keep: 400 * 24 * time.Hour, SizeMax: 1 << 30}
	for _, test := range []struct {
		size int64
		age  time.Duration
		full bool
	}{{0, 1000 * time.Hour, false}, {1, time.Hour, false}, {1, 21 * 24 * time.Hour, true}, {16 << 20, 0, true}, {16<<20 - 1, 0, false}} {
		if got := bounds.Full(audit.File{Size: test.size, Begun: noon}, noon.Add(test.age)); got != test.full {
			t.Errorf("%d bytes, begun %s ago: %t", test.size, test.age, got)
		}
	}
}

// However many refusals somebody causes, the lines are few, and the counts of
// all of them together are right.
func TestTallyIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally := audit.Tally{Per: time.Minute, Single: 5, Max: 4}
		now, refusals, written, told, spans := noon, 0, 0, 0, 1
		take := func(due []audit.Record) {
			for _, r := range due {
				written++
				told += r.Count
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "refusals") {
			cause := audit.Cause{Address: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "from"))}
			if rapid.Bool().Draw(t, "known") {
				cause.TokenID = "t"
			}
			refusals++
			if tally.Note(cause, audit.Record{Time: now}) {
				written++
				told++
			}
			if rapid.IntRange(0, 99).Draw(t, "later") == 0 {
				now = now.Add(time.Minute)
				spans++
				take(tally.Due(now, false))
			}
		}
		take(tally.Due(now, true))
		if told != refusals {
			t.Fatalf("%d refusals, %d told", refusals, told)
		}
		if most := spans * (4*(5+1) + 1); written > most {
			t.Fatalf("%d records, at most %d in %d spans", written, most, spans)
		}
	})
}

func TestSeen(t *testing.T) {
	seen := audit.Seen[string]{Per: time.Hour, Max: 2}
	for i, test := range []struct {
		key   string
		after time.Duration
		first bool
	}{
		{"a", 0, true}, {"a", time.Minute, false}, {"b", time.Minute, true}, {"a", time.Hour, true}, // all are forgotten
		{"a", 61 * time.Minute, false}, {"b", 61 * time.Minute, true}, {"b", 0, true}, // by a clock that was set back
	} {
		if got := seen.First(test.key, noon.Add(test.after)); got != test.first {
			t.Errorf("%d: %s: %t", i, test.key, got)
		}
	}
}

package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// render shows an error as a person sees it, with its cure.
func render(t *testing.T, err error) string {
	t.Helper()
	var told *structs.Error
	if !errors.As(err, &told) {
		t.Fatalf("%v (%T) is not an error that a person can read", err, err)
	}
	if !messages.Has(messages.English, told.ID) {
		t.Fatalf("%s has no text", told.ID)
	}
	text := messages.Text(messages.English, told.ID, told.Params) + "\n"
	if hint := told.ID + ".hint"; messages.Has(messages.English, hint) {
		text += "  " + messages.Text(messages.English, hint, told.Params) + "\n"
	}
	return text
}

// listed shows a trace a job a line.
func listed(t *Trace) string {
	var b strings.Builder
	if t.Nodes > 0 {
		fmt.Fprintf(&b, "machine: %d nodes of %d\n", t.Nodes, t.NodeGPUs)
	}
	for _, j := range t.Jobs {
		fmt.Fprintf(&b, "%s user=%s group=%s submit=%s start=%s run=%s limit=%s gpus=%d nodes=%d cpus=%d state=%s name=%s\n",
			j.ID, j.User, j.Group, j.Submit, orUnknown(j.Start), orUnknown(j.Duration), j.Limit, j.GPUs, j.Nodes, j.CPUs, j.State, j.Name)
	}
	return b.String()
}

func orUnknown(span time.Duration) string {
	if span < 0 {
		return "?"
	}
	return span.String()
}

func TestReadFiles(t *testing.T) {
	for _, name := range []string{"small.csv", "columns.csv", "small.swf"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			read, err := Read(name, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, filepath.Join("testdata", name+".golden"), listed(read))

			var zipped bytes.Buffer
			writer := gzip.NewWriter(&zipped)
			if _, err := writer.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Read(name+".gz", &zipped)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read, again); diff != "" {
				t.Errorf("zipped it reads differently:\n%s", diff)
			}
		})
	}
}

// TestReadProblems: what is wrong with a file, in words that name the line,
// the cause and the cure.
func TestReadProblems(t *testing.T) {
	const header = "job_id,user,group,submit_s,start_s,duration_s,gpus,nodes,cpus,time_limit_s,state,name\n"
	swf := func(fields string) string { return "; MaxProcs: 8\n" + fields + "\n" }
	cases := []struct{ name, file, text string }{
		{"nothing", "t.csv", ""},
		{"header only", "t.csv", header},
		{"no header", "t.csv", "a,u,g,0,,5,1,1,,,,\n"},
		{"slip in the header", "t.csv", strings.Replace(header, "time_limit_s", "timelimit_s", 1)},
		{"column twice", "t.csv", strings.Replace(header, "state", "user", 1)},
		{"column missing", "t.csv", "job_id,submit_s,gpus\n"},
		{"short line", "t.csv", header + "a,u,g,0,,5,1,1,,,,\nb,u,g,0\n"},
		{"no submission", "t.csv", header + "a,u,g,,,5,1,1,,,,\n"},
		{"no id", "t.csv", header + ",u,g,1,,5,1,1,,,,\n"},
		{"negative time", "t.csv", header + "a,u,g,-5,,5,1,1,,,,\n"},
		{"time in words", "t.csv", header + "a,u,g,0,,2h,1,1,,,,\n"},
		{"time with an exponent", "t.csv", header + "a,u,g,0,,1e3,1,1,,,,\n"},
		{"time too large", "t.csv", header + "a,u,g,0,,99999999999,1,1,,,,\n"},
		{"gpus not a number", "t.csv", header + "a,u,g,0,,5,two,1,,,,\n"},
		{"gpus beyond the bound", "t.csv", header + "a,u,g,0,,5,99999999,1,,,,\n"},
		{"nodes not whole", "t.csv", header + "a,u,g,0,,5,1,1.5,,,,\n"},
		{"stray quote", "t.csv", header + "a,u,g,0,,5,1,1,,,,my \"best\" run\n"},
		{"open quote", "t.csv", header + "a,\"u,g,0,,5,1,1,,,,\n"},
		{"GBK", "t.csv", header + "a,\xc0\xee,g,0,,5,1,1,,,,\n"},
		{"long text", "t.csv", header + "a," + strings.Repeat("u", fieldMax+1) + ",g,0,,5,1,1,,,,\n"},
		{"bad gzip", "t.csv.gz", "\x1f\x8bnothing"},
		{"swf fields", "t.swf", swf("1 0 5 10")},
		{"swf number", "t.swf", swf("1 0 5 ten 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf below -1", "t.swf", swf("1 0 5 -7 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf not a number", "t.swf", swf("1 0 5 NaN 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf too long a run", "t.swf", swf("1 0 5 7e12 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf too many processors", "t.swf", swf("1 0 5 7 4e9 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf no submission", "t.swf", swf("1 -1 5 7 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1")},
		{"swf nothing", "t.swf", "; only comments\n"},
	}
	var all strings.Builder
	for _, c := range cases {
		_, err := Read(c.file, strings.NewReader(c.text))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		fmt.Fprintf(&all, "== %s\n%s", c.name, render(t, err))
	}
	pools := []struct{ name, text string }{
		{"pools: nothing", ""},
		{"pools: header only", "vc,nodes\n"},
		{"pools: column missing", "pool,nodes\n"},
		{"pools: no nodes", "vc,nodes\na,0\n"},
		{"pools: not a number", "vc,nodes\na,3\nb,x\n"},
		{"pools: twice", "vc,nodes\na,3\na,4\n"},
		{"pools: no name", "vc,nodes\n,3\n"},
		{"pools: too large", "vc,nodes,gpus_per_node\na,1000000,8\n"},
		{"pools: short line", "vc,nodes,gpus_per_node\na,1\n"},
	}
	for _, c := range pools {
		_, err := ReadPools("pools.csv", strings.NewReader(c.text), 8)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		fmt.Fprintf(&all, "== %s\n%s", c.name, render(t, err))
	}
	golden.Assert(t, "testdata/problems.golden", all.String())
}

func TestReadPools(t *testing.T) {
	got, err := ReadPools("pools.csv", strings.NewReader("\ufeffvc,nodes,gpus_per_node,remark\n a ,64,,\nb,2,4,old\n"), 8)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pool{{"a", 64, 8}, {"b", 2, 4}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestBomb: text that grows without end when it is unpacked is refused.
func TestBomb(t *testing.T) {
	bounded := &boundedReader{from: strings.NewReader(strings.Repeat("x", 100)), left: 10}
	var got bytes.Buffer
	if _, err := got.ReadFrom(bounded); !errors.Is(err, errTooLarge) || got.Len() != 10 {
		t.Errorf("read %d bytes, %v", got.Len(), err)
	}
}

func TestBetween(t *testing.T) {
	trace := &Trace{}
	for i := range 5 {
		trace.Jobs = append(trace.Jobs, Job{ID: fmt.Sprint(i), Submit: time.Duration(i) * 10 * time.Second})
	}
	for _, c := range []struct {
		from, to time.Duration
		want     int
	}{{0, -1, 5}, {10 * time.Second, 30 * time.Second, 3}, {11 * time.Second, 29 * time.Second, 1}, {50 * time.Second, -1, 0}, {5 * time.Second, 2 * time.Second, 0}} {
		if got := len(trace.Between(c.from, c.to)); got != c.want {
			t.Errorf("between %s and %s: %d jobs, want %d", c.from, c.to, got, c.want)
		}
	}
}

// FuzzReadCSV: no bytes make Read panic, and what it reads it writes back.
func FuzzReadCSV(f *testing.F) {
	for _, name := range []string{"small.csv", "columns.csv"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\xef\xbb\xbfjob_id,submit_s,duration_s,gpus\n1,.5,7.,1.25\n"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzRead(t, "t.csv", data) })
}

// FuzzReadSWF is FuzzReadCSV for the Standard Workload Format.
func FuzzReadSWF(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "small.swf"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) { fuzzRead(t, "t.swf", data) })
}

func fuzzRead(t *testing.T, name string, data []byte) {
	read, err := Read(name, bytes.NewReader(data))
	if err != nil {
		render(t, err)
		return
	}
	var written bytes.Buffer
	if err := read.Write(&written); err != nil {
		t.Fatal(err)
	}
	again, err := Read("again.csv", &written)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, written.Bytes())
	}
	read.Nodes, read.NodeGPUs = 0, 0 // CSV does not say
	if diff := cmp.Diff(read, again); diff != "" {
		t.Fatalf("read differs from written:\n%s", diff)
	}
}

// FuzzReadPools: no bytes make ReadPools panic, and pools have sizes.
func FuzzReadPools(f *testing.F) {
	f.Add([]byte("vc,nodes\na,64\nb,32\n"))
	f.Add([]byte("vc,nodes,gpus_per_node\n\"a,b\",64,4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pools, err := ReadPools("pools.csv", bytes.NewReader(data), 8)
		if err != nil {
			render(t, err)
			return
		}
		var written bytes.Buffer
		if err := WritePools(pools, &written); err != nil {
			t.Fatal(err)
		}
		again, err := ReadPools("again.csv", &written, 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pools, again); diff != "" {
			t.Fatalf("read differs from written:\n%s", diff)
		}
	})
}

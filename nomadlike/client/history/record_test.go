package history

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

func openRecord(t testing.TB, path string) *Record {
	t.Helper()
	record, err := OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestWhatARankUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	record := openRecord(t, path)
	if err := record.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file of nothing is written")
	}
	for i := range 6 {
		record.Add(noon.Add(time.Duration(i)*RecordTick), map[string]float64{
			structs.GaugeCores: float64(i), device.GaugeMemoryUsed: float64(10 * i), structs.GaugeCardUse: 0.5, "unknown": 1,
		})
	}
	want := []string{"cpu_cores: 0.5 2.5 4.5 -", "memory_used_bytes: 10 30 50 -", "device_utilization_ratio: 0.5 0.5 0.5 -"}
	if diff := cmp.Diff(want, text(record.Read(noon, 2*RecordTick, 4))); diff != "" {
		t.Errorf("two ticks each (-want +got):\n%s", diff)
	}
	want = []string{"cpu_cores: - 0 0.5 1 1.5 2", "memory_used_bytes: - 0 10 10 20 20", "device_utilization_ratio: - 0.5 0.5 0.5 0.5 0.5"}
	if diff := cmp.Diff(want, text(record.Read(noon.Add(-3*time.Second), 3*time.Second, 6))); diff != "" {
		t.Errorf("finer than it is kept (-want +got):\n%s", diff)
	}
	if err := record.Save(); err != nil {
		t.Fatal(err)
	}
	again := openRecord(t, path)
	if diff := cmp.Diff(text(record.Read(noon, RecordTick, 10)), text(again.Read(noon, RecordTick, 10))); diff != "" {
		t.Errorf("in a new process (-before +after):\n%s", diff)
	}
	again.Add(noon.Add(5*RecordTick+time.Second), map[string]float64{structs.GaugeCores: 7})
	if diff := cmp.Diff("cpu_cores: 4 6", text(again.Read(noon.Add(4*RecordTick), RecordTick, 2))[0]); diff != "" {
		t.Errorf("goes on in the cell that was open (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if record, err := OpenRecord(path); err == nil || record == nil || len(record.Read(noon, RecordTick, 10)) != 0 {
		t.Errorf("a damaged file gives %v, %v", record, err)
	}
}

// A long run is kept whole, in a bounded number of cells, also over new processes.
func TestLongRunIsKeptWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	record := openRecord(t, path)
	ticks := 5*Kept + 17
	for i := range ticks {
		if i == 3*Kept {
			if err := record.Save(); err != nil {
				t.Fatal(err)
			}
			record = openRecord(t, path)
		}
		record.Add(noon.Add(time.Duration(i)*RecordTick), map[string]float64{structs.GaugeCores: 2, device.GaugeMemoryUsed: float64(i)})
	}
	if span := record.Span(); span != 8*RecordTick {
		t.Errorf("a cell is of %v", span)
	}
	record.mu.Lock()
	cells := len(record.mu.cells)
	record.mu.Unlock()
	if cells > Kept {
		t.Errorf("%d cells", cells)
	}
	step := 8 * RecordTick
	series := record.Read(noon, step, ticks/8)
	for i := range ticks / 8 {
		if *series[0].Values[i] != 2 || *series[1].Values[i] != float64(8*i+7) {
			t.Fatalf("point %d is %v and %v", i, *series[0].Values[i], *series[1].Values[i])
		}
	}
	if err := record.Save(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > recordFileMax/8 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}

// A clock that is set back rewrites what it wrote of the future.
func TestClockOfARecordIsSetBack(t *testing.T) {
	record := openRecord(t, filepath.Join(t.TempDir(), "figures.json"))
	add := func(ticks int, value float64) {
		record.Add(noon.Add(time.Duration(ticks)*RecordTick), map[string]float64{structs.GaugeCores: value})
	}
	for i := range 10 {
		add(i, 1)
	}
	add(8, 3) // a little: the open cell goes on
	add(5, 7)
	add(6, 8)
	if diff := cmp.Diff([]string{"cpu_cores: 1 1 1 1 1 4 8 - - -"}, text(record.Read(noon, RecordTick, 10))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a record says of the highest is what a list of all notes says, to the
// length of a cell; it never holds more than it may.
func TestRecordIsAsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := &Record{kept: recordGauges()}
		record.mu.span = recordTick
		type noted struct {
			second int64
			value  float64
		}
		var all []noted
		at := noon
		for range rapid.IntRange(1, 20).Draw(t, "stretches") {
			at = at.Add(time.Duration(rapid.IntRange(1, 90_000).Draw(t, "pause")) * time.Second)
			for range rapid.IntRange(1, 400).Draw(t, "notes") {
				at = at.Add(RecordTick)
				value := float64(len(all) % 101)
				record.Add(at, map[string]float64{device.GaugeMemoryUsed: value})
				all = append(all, noted{at.Unix(), value})
			}
		}
		span := int64(record.Span() / time.Second)
		if len(record.mu.cells) > Kept {
			t.Fatalf("%d cells", len(record.mu.cells))
		}
		first := noon.Unix() / span * span
		count := int((at.Unix()-first)/span) + 1
		want := map[int64]float64{}
		for _, one := range all {
			i := (one.second - first) / span
			want[i] = max(want[i], one.value)
		}
		got := map[int64]float64{}
		for i, value := range record.Read(time.Unix(first, 0), time.Duration(span)*time.Second, count)[0].Values {
			if value != nil {
				got[int64(i)] = *value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-twin +record):\n%s", diff)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	for _, in := range []recordFile{
		{Version: recordVersion, Span: 10, Cells: pack([]cell{{at: 1000}, {at: 1020}})},
		{Version: recordVersion, Span: 15},
		{Version: recordVersion, Span: 5, Cells: []byte{1}},
	} {
		data, err := json.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		span, cells, err := decodeRecord(data)
		if err != nil {
			return
		}
		record := &Record{kept: recordGauges()}
		record.mu.span, record.mu.cells = span, cells
		record.Add(noon, map[string]float64{structs.GaugeCores: 1})
		if got := len(record.mu.cells); got > Kept {
			t.Fatalf("%d cells", got)
		}
		record.Read(noon.Add(-time.Hour), time.Minute, 60)
	})
}

package history

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// noon is a whole hour, so that spans begin where one expects it.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, path string, now time.Time) *Book {
	t.Helper()
	book, err := Open(path, now)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// text writes series as "gauge: values", with "-" for what was not measured.
func text(all []structs.GaugeHistory) (lines []string) {
	for _, one := range all {
		line := one.Gauge + ":"
		for _, value := range one.Values {
			if value == nil {
				line += " -"
			} else {
				line += fmt.Sprintf(" %.4g", *value)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestMinutesBecomePoints(t *testing.T) {
	book := open(t, filepath.Join(t.TempDir(), "figures"), noon)
	for i := range 4 * 12 { // four minutes, every five seconds
		healthy := 1.0
		if i == 30 {
			healthy = 0
		}
		note := Note{Machine: {structs.GaugeCores: 2}, "GPU-0": {
			structs.GaugeHealthy: healthy, device.GaugeUtilization: float64(i%2) / 2, device.GaugeTemperature: 40 + float64(i),
			device.GaugeECCCorrected: float64(i), "unknown_gauge": 1,
		}}
		if i < 12 {
			note["GPU-1"] = map[string]float64{device.GaugePower: math.NaN(), device.GaugeThrottled: 0}
		}
		book.Add(noon.Add(time.Duration(i)*5*time.Second), note)
	}
	now := noon.Add(4*time.Minute - time.Second)
	all := book.Read(&structs.HistoryRequest{Since: structs.At(noon), Points: 100}, now)
	if all.From != structs.At(noon) || all.Step != structs.Duration(time.Minute) || all.Count != 4 || len(all.Devices) != 2 {
		t.Fatalf("read %+v", all)
	}
	want := []string{"healthy: 1 1 0 1", "utilization_ratio: 0.25 0.25 0.25 0.25", "temperature_celsius: 51 63 75 87", "ecc_corrected_total: 11 23 35 47"}
	if diff := cmp.Diff(want, text(all.Devices[0].Series)); diff != "" {
		t.Errorf("a minute each (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"throttled: 0 - - -"}, text(all.Devices[1].Series)); diff != "" {
		t.Errorf("what was measured once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cpu_cores: 2 2 2 2"}, text(all.Machine)); diff != "" {
		t.Errorf("the machine (-want +got):\n%s", diff)
	}
	one := book.Read(&structs.HistoryRequest{Devices: []string{"GPU-0", "GPU-9"}, Since: structs.At(noon.Add(-6 * time.Minute)), Points: 5}, now)
	want = []string{"healthy: - - - 1 0", "utilization_ratio: - - - 0.25 0.25", "temperature_celsius: - - - 63 87", "ecc_corrected_total: - - - 23 47"}
	if len(one.Devices) != 1 || one.Step != structs.Duration(2*time.Minute) || one.From != structs.At(noon.Add(-6*time.Minute)) {
		t.Fatalf("read %+v", one)
	}
	if diff := cmp.Diff(want, text(one.Devices[0].Series)); diff != "" {
		t.Errorf("two minutes each (-want +got):\n%s", diff)
	}
}

// The history goes on in a new process, and has a day at most.
func TestHistoryGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	book := open(t, path, noon)
	at := noon
	for i := range Kept + 60 {
		at = noon.Add(time.Duration(i) * time.Minute)
		note := Note{"GPU-0": {device.GaugePower: float64(i)}}
		if i < 60 {
			note["gone"] = map[string]float64{device.GaugePower: 1}
		}
		book.Add(at, note)
	}
	if err := book.Save(); err != nil {
		t.Fatal(err)
	}
	ask := &structs.HistoryRequest{Since: structs.At(noon), Points: structs.HistoryPointsMax}
	before := book.Read(ask, at)
	if len(before.Devices) != 1 || before.Count != Kept || *before.Devices[0].Series[0].Values[0] != 60 || *before.Devices[0].Series[0].Values[Kept-1] != Kept+59 {
		t.Fatalf("a day later: %d devices, %d points", len(before.Devices), before.Count)
	}
	if diff := cmp.Diff(before, open(t, path, at).Read(ask, at)); diff != "" {
		t.Errorf("in a new process (-before +after):\n%s", diff)
	}
	if late := open(t, path, at.Add(25*time.Hour)).Read(ask, at.Add(25*time.Hour)); len(late.Devices) != 0 {
		t.Errorf("a day after the last word: %+v", late.Devices)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if book, err := Open(path, at); err == nil || book == nil || len(book.Read(ask, at).Devices) != 0 {
		t.Errorf("a damaged file gives %v, %v", book, err)
	}
}

// A clock that is set back rewrites what it wrote of the future.
func TestClockIsSetBack(t *testing.T) {
	book := open(t, filepath.Join(t.TempDir(), "figures"), noon)
	add := func(minute int, value float64) {
		book.Add(noon.Add(time.Duration(minute)*time.Minute), Note{"d": {device.GaugePower: value}})
	}
	for minute := range 10 {
		add(minute, 1)
	}
	add(8, 3) // a little: the open minute goes on
	add(5, 7)
	add(6, 8)
	got := text(book.Read(&structs.HistoryRequest{Since: structs.At(noon), Points: 100}, noon.Add(9*time.Minute)).Devices[0].Series)
	if diff := cmp.Diff([]string{"power_watts: 1 1 1 1 1 7 8 - - -"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a book says is what a list of all notes says.
func TestBookIsAsItsTwin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	rapid.Check(t, func(t *rapid.T) {
		type noted struct {
			minute int64
			value  float64
		}
		book := &Book{path: path, kept: gauges()}
		book.mu.lines = map[string]*line{}
		var all []noted
		at := noon
		for range rapid.IntRange(1, 60).Draw(t, "notes") {
			at = at.Add(time.Duration(rapid.SampledFrom([]int{5, 20, 61, 400, 7000}).Draw(t, "seconds")) * time.Second)
			value := float64(rapid.IntRange(0, 100).Draw(t, "value"))
			book.Add(at, Note{"d": {device.GaugeTemperature: value}})
			all = append(all, noted{minuteOf(at), value})
		}
		back := rapid.Int64Range(0, 2*Kept).Draw(t, "minutes back")
		out := book.Read(&structs.HistoryRequest{Since: structs.At(at.Add(-time.Duration(back) * time.Minute)), Points: rapid.IntRange(1, Kept).Draw(t, "points")}, at)
		step, first := int64(out.Step.Std()/time.Minute), minuteOf(out.From.Time())
		got := map[int64]float64{}
		if len(out.Devices) == 1 {
			for i, value := range out.Devices[0].Series[0].Values {
				if value != nil {
					got[int64(i)] = *value
				}
			}
		}
		want := map[int64]float64{}
		for _, one := range all {
			if one.minute >= first && one.minute > minuteOf(at)-Kept {
				i := (one.minute - first) / step
				want[i] = max(want[i], one.value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from %v by %v (-twin +book):\n%s", out.From, out.Step, diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	book := &Book{kept: gauges()}
	book.mu.lines = map[string]*line{}
	for i := range 3 {
		book.Add(noon.Add(time.Duration(i)*time.Minute), Note{Machine: {structs.GaugeCores: 1}, "d": {structs.GaugeHealthy: 0}})
	}
	data, err := book.encodeLocked()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"lines":[{"id":"d","cells":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := minuteOf(noon.Add(time.Hour))
		lines, err := decode(data, now)
		if err != nil {
			return
		}
		for id, l := range lines {
			if len(l.cells) == 0 || len(l.cells) > Kept {
				t.Fatalf("line %q has %d cells", id, len(l.cells))
			}
			series(l.all(gauges()), gauges(), now-Kept+1, 1, Kept)
		}
	})
}

package metrics

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/tasklog"
)

// appendRecord writes a record of an event file, as TensorBoard's writers do.
func appendRecord(file, record []byte) []byte {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(record)))
	file = append(file, head...)
	file = binary.LittleEndian.AppendUint32(file, masked(head))
	file = append(file, record...)
	return binary.LittleEndian.AppendUint32(file, masked(record))
}

func long(message []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), data)
}

// scalarEvent is an event with one value: as simple_value, or as a tensor.
func scalarEvent(at time.Time, step int64, tag string, value []byte) []byte {
	summary := long(nil, summaryValue, append(long(nil, valueTag, []byte(tag)), value...))
	e := protowire.AppendFixed64(protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type), math.Float64bits(float64(at.UnixNano())/1e9))
	e = protowire.AppendVarint(protowire.AppendTag(e, eventStep, protowire.VarintType), uint64(step))
	return long(e, eventSummary, summary)
}

func simple(v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, valueSimple, protowire.Fixed32Type), math.Float32bits(v))
}

func tensor(kind uint64, rest []byte) []byte {
	return long(nil, valueTensor, append(protowire.AppendVarint(protowire.AppendTag(nil, tensorType, protowire.VarintType), kind), rest...))
}

// TestMaskedChecksum holds the checksum to the head of a file that TensorFlow
// has written: the record of the file's version is 24 bytes long.
func TestMaskedChecksum(t *testing.T) {
	head := []byte{0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22}
	if length, err := recordLength(head); err != nil || length != 24 {
		t.Fatalf("length %d, %v", length, err)
	}
}

// values are the forms in which one number can come.
func values() map[string][]byte {
	return map[string][]byte{
		"simple":  simple(1.5),
		"float":   tensor(typeFloat, long(nil, tensorFloats, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)))),
		"floats":  tensor(typeFloat, protowire.AppendFixed32(protowire.AppendTag(nil, tensorFloats, protowire.Fixed32Type), math.Float32bits(1.5))),
		"content": tensor(typeFloat, long(nil, tensorContent, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)))),
		"double":  tensor(typeDouble, long(nil, tensorDoubles, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.5)))),
		"raw64":   tensor(typeDouble, long(nil, tensorContent, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.5)))),
		"half":    tensor(typeHalf, long(nil, tensorHalves, protowire.AppendVarint(nil, 0x3e00))),
		"bf16":    tensor(typeBfloat16, long(nil, tensorContent, []byte{0xc0, 0x3f})),
	}
}

func TestTensorForms(t *testing.T) {
	for form, value := range values() {
		e, err := decodeEvent(scalarEvent(time.Unix(100, 0), 7, "loss", value))
		if err != nil || len(e.Values) != 1 || e.Values[0] != (observation{"loss", 7, 1.5}) || e.WallTime != 100 {
			t.Errorf("%s gives %+v, %v", form, e, err)
		}
	}
	vector := tensor(typeFloat, long(nil, tensorContent, make([]byte, 8)))
	if e, err := decodeEvent(scalarEvent(time.Unix(1, 0), 1, "two", vector)); err != nil || len(e.Values) != 0 {
		t.Errorf("a vector counts as a scalar: %+v, %v", e, err)
	}
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestEventsArriveInPieces: a file that grows byte by byte, over restarts of the
// agent, returns every scalar once, and nothing of earlier attempts.
func TestEventsArriveInPieces(t *testing.T) {
	began := time.Now()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "metrics.json")
	var whole []byte
	whole = appendRecord(whole, scalarEvent(began.Add(-time.Hour), 1, "loss", simple(9)))
	for step := range int64(20) {
		whole = appendRecord(whole, scalarEvent(began.Add(time.Second), step, "loss", simple(float32(step)/4)))
		if step == 10 {
			whole = appendRecord(whole, long(nil, eventSummary, make([]byte, scalarRecordMax+10))) // an image
		}
	}
	name := filepath.Join(dir, "run1", "events.out.tfevents.1.host")
	if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	root := openRoot(t, dir)
	c := Open(file, nil, began)
	for end := 0; ; end += 7 + end/3 {
		end = min(end, len(whole))
		if err := os.WriteFile(name, whole[:end], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := c.ReadEvents(context.Background(), root); err != nil {
			t.Fatal(err)
		}
		if err := c.Save(); err != nil {
			t.Fatal(err)
		}
		c = Open(file, nil, time.Now())
		if end == len(whole) {
			break
		}
	}
	for range 3 { // what a bounded reading has left
		if err := c.ReadEvents(context.Background(), root); err != nil {
			t.Fatal(err)
		}
	}
	series, _ := c.Series(nil, 100)
	if len(series) != 1 || series[0].Source != "events/run1" || series[0].Count != 20 || series[0].Min != 0 || series[0].Max != 4.75 {
		t.Fatalf("series %+v", series)
	}
	for i, p := range series[0].Points {
		if p.Step != int64(i) || p.Value != float64(i)/4 {
			t.Errorf("point %d is %+v", i, p)
		}
	}
	whole[len(whole)-1] ^= 1
	whole = appendRecord(whole[:len(whole)-20], nil)
	if err := os.WriteFile(name, append(whole, make([]byte, 100)...), 0o644); err != nil {
		t.Fatal(err)
	}
	c = Open(filepath.Join(t.TempDir(), "m"), nil, began)
	first := c.ReadEvents(context.Background(), root)
	for range 2 {
		first = cmpOr(first, c.ReadEvents(context.Background(), root))
	}
	if first == nil {
		t.Error("a damaged file is not told of")
	}
	if err := c.ReadEvents(context.Background(), root); err != nil {
		t.Errorf("a damaged file is told of again: %v", err)
	}
	if series, _ := c.Series([]string{"loss"}, 100); len(series) != 1 || series[0].Count < 19 {
		t.Errorf("what precedes the damage is lost: %+v", series)
	}
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestLogsArriveInPieces: however a log is cut into pieces, and wherever the
// agent begins anew, its figures are those of its lines.
func TestLogsArriveInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "metrics.json")
		var text strings.Builder
		want := 0
		for i := range rapid.IntRange(1, 60).Draw(rt, "lines") {
			switch rapid.IntRange(0, 3).Draw(rt, "line") {
			case 0:
				text.WriteString(strings.Repeat("x", rapid.IntRange(0, 3*LineMax).Draw(rt, "length")) + " loss=77\n")
				if text.Len() > 0 && lastLine(text.String()) < LineMax {
					want++
				}
			default:
				fmt.Fprintf(&text, "step=%d loss=%d.5%s", i, i, rapid.SampledFrom([]string{"\n", "\r", "\r\n"}).Draw(rt, "end"))
				want++
			}
		}
		opened, err := os.Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer opened.Close()
		w, err := tasklog.NewWriter(opened, true, tasklog.Stdout, 3, 10<<20)
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Close()
		c := Open(file, nil, time.Now())
		for rest := []byte(text.String()); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			if _, err := w.Write(rest[:n]); err != nil {
				rt.Fatal(err)
			}
			rest = rest[n:]
			if err := c.ReadLogs(context.Background(), dir, time.Now(), len(rest) == 0); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "restart") {
				if err := c.Save(); err != nil {
					rt.Fatal(err)
				}
				c = Open(file, nil, time.Now())
			}
		}
		series, _ := c.Series([]string{"loss"}, 1000)
		got := 0
		if len(series) == 1 {
			got = int(series[0].Count)
		}
		if got != want {
			rt.Fatalf("%d observations of %d", got, want)
		}
	})
}

// lastLine is how long the last line of a text is.
func lastLine(text string) int {
	text = strings.TrimSuffix(text, "\n")
	return len(text) - strings.LastIndexAny(text, "\r\n") - 1
}

// TestSeriesStaysSmall: a million observations are a thousand points, evenly
// spread, and every point was observed.
func TestSeriesStaysSmall(t *testing.T) {
	s := &series{}
	const count = 1_000_000
	for i := range int64(count) {
		s.add(i, structs.UnixNano(i), float64(i)*2)
	}
	s.add(5, 77, math.NaN())
	if len(s.Points) > PointsMax || len(s.Points) < PointsMax/2 || s.Count != count || s.Last.Step != count-1 || s.NotFinite != 1 {
		t.Fatalf("%d points of %d, last %+v", len(s.Points), s.Count, s.Last)
	}
	for i, p := range s.Points {
		if p.Step != int64(i)*s.Stride || p.Value != float64(p.Step)*2 {
			t.Fatalf("point %d is %+v", i, p)
		}
	}
	for _, most := range []int{2, 3, 10, 500, 5000} {
		shown := s.shown(most)
		if len(shown.Points) > most || shown.Points[len(shown.Points)-1] != s.Last {
			t.Errorf("%d points asked for, %d shown", most, len(shown.Points))
		}
	}
	many := set{series: map[seriesKey]*series{}}
	for i := range 2 * SeriesMax {
		many.add("log", 1, observation{fmt.Sprint("name", i), 1, 1})
	}
	if len(many.series) != SeriesMax || many.leftOut != SeriesMax {
		t.Errorf("%d series, %d left out", len(many.series), many.leftOut)
	}
}

// FuzzEvents: no file makes the reader fail otherwise than by telling so, nor
// take anything that it has not checked.
func FuzzEvents(f *testing.F) {
	var whole []byte
	for _, value := range values() {
		whole = appendRecord(whole, scalarEvent(time.Unix(1, 0), 3, "loss", value))
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		used, events, err := eventsIn(data)
		if used < 0 || err == nil && used == 0 && len(events) > 0 {
			t.Fatalf("used %d of %d for %d events", used, len(data), len(events))
		}
		if e, err := decodeEvent(data); err == nil && len(e.Values) > eventValuesMax {
			t.Fatalf("%d values", len(e.Values))
		}
	})
}

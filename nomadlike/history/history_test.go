package history_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// filled sets every field of a row to something of its own.
func filled(n int) structs.HistoryRow {
	var row structs.HistoryRow
	value := reflect.ValueOf(&row).Elem()
	for i := range value.NumField() {
		switch field := value.Field(i); field.Kind() {
		case reflect.Int, reflect.Int64:
			field.SetInt(int64(n*1000+i) * 1e9)
		case reflect.Uint64:
			field.SetUint(uint64(n*1000 + i))
		case reflect.Bool:
			field.SetBool(n%2 == 0)
		case reflect.String:
			field.SetString(value.Type().Field(i).Name + strings.Repeat("é", n%3))
		}
	}
	row.Tags = []string{"a", "b/c"}[:1+n%2]
	row.Cards = structs.QuotaUsage{"nvidia/gpu/A=1": int64(n), "huawei/npu/910B": 8}
	return row
}

// Every field of a row comes back from a segment.
func TestSegmentKeepsEveryField(t *testing.T) {
	var rows []structs.HistoryRow
	for n := range 5 {
		rows = append(rows, filled(n))
	}
	data, err := history.Encode(1, 9, rows)
	if err != nil {
		t.Fatal(err)
	}
	segment, err := history.Open(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := segment.All()
	if err != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("%+v, %v", got, err)
	}
	if segment.After != 1 || segment.Through != 9 || segment.Rows != 5 {
		t.Errorf("%+v", segment.Header)
	}
}

// Whichever byte of a segment changes, and wherever it is cut off, a reader is told.
func TestSegmentDamage(t *testing.T) {
	data, err := history.Encode(1, 9, []structs.HistoryRow{filled(1), filled(2)})
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		segment, err := history.Open(bytes.NewReader(data))
		if err != nil {
			return err
		}
		_, err = segment.All()
		return err
	}
	for at := range data {
		bad := slices.Clone(data)
		bad[at] ^= 0x10
		if err := read(bad); !errors.Is(err, history.ErrDamaged) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
		if err := read(data[:at]); !errors.Is(err, history.ErrDamaged) {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
}

// What is charged is what was held, to the millisecond, however a report is cut, in whatever
// zone; and tags and kinds of cards share it out.
func TestUseIsConserved(t *testing.T) {
	zones := []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "America/New_York"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		base := structs.At(time.Date(2011, 12, 20, 0, 0, 0, 0, time.UTC)) // Apia had no 30 December
		moment := rapid.Int64Range(0, int64(400*24*time.Hour))
		from := base + structs.UnixNano(moment.Draw(t, "from"))
		to := from + 1 + structs.UnixNano(moment.Draw(t, "length"))
		var rows []structs.HistoryRow
		want, cores := int64(0), int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			row := structs.HistoryRow{
				Kind: structs.HistoryHolding, User: rapid.SampledFrom([]string{"ann", "ben"}).Draw(t, "user"), Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"),
				Cards: structs.QuotaUsage{"a/gpu/X": rapid.Int64Range(0, 8).Draw(t, "x"), "a/gpu/Y": rapid.Int64Range(1, 8).Draw(t, "y")}, MilliCPU: 1000,
			}
			row.Start = base + structs.UnixNano(moment.Draw(t, "start"))
			row.End = row.Start + structs.UnixNano(moment.Draw(t, "span"))
			row.Outcome = rapid.SampledFrom([]structs.Outcome{"", structs.OutcomeFailed, structs.OutcomeLost, structs.OutcomeStopped, structs.OutcomePreempted}).Draw(t, "outcome")
			rows = append(rows, row)
			if begin, end := max(row.Start, from), min(row.End, to); begin < end {
				want += row.CardCount() * (int64(end)/1e6 - int64(begin)/1e6)
				cores += int64(end)/1e6 - int64(begin)/1e6
			}
		}
		data, err := history.Encode(0, 1, rows)
		if err != nil {
			t.Fatal(err)
		}
		segment, err := history.Open(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range history.Bys() {
			for _, per := range history.Pers() {
				q := history.Question{By: by, Per: per, From: from, To: to, Zone: zone}
				packed, err := history.NewUses(q)
				if errors.Is(err, history.ErrPeriods) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				loose, _ := history.NewUses(q)
				if err := errors.Join(packed.Take(segment), loose.Take(history.Loose(rows))); err != nil {
					t.Fatal(err)
				}
				lines := packed.Lines()
				if !slices.Equal(lines, loose.Lines()) {
					t.Fatalf("a segment says %v, its rows say %v", lines, loose.Lines())
				}
				sum, core := int64(0), int64(0)
				for _, line := range lines {
					sum, core = sum+line.CardMs, core+line.CoreMs
					if line.CardMs != line.GoodMs+line.Stopped+line.Failed+line.Lost+line.Yielded+line.Running {
						t.Fatalf("%+v", line)
					}
				}
				if sum != want || core != cores {
					t.Fatalf("by %s per %q: %d of cards and %d of cores, held were %d and %d: %+v", by, per, sum, core, want, cores, lines)
				}
			}
		}
	})
}

// Days that have no midnight, or are not there at all, are cut where they begin.
func TestPeriodsOfOddDays(t *testing.T) {
	for _, c := range []struct {
		zone, from, to string
		per            history.Per
		want           string
	}{
		{"Asia/Shanghai", "2026-10-31T16:00:00Z", "2026-12-01T00:00:00Z", history.PerMonth, "2026-11 2026-12"},
		{"Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-30T22:00:00Z", history.PerDay, "2026-03-29 2026-03-30"},
		{"Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z", history.PerDay, "2011-12-29 2011-12-31"},
		{"America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-05T12:00:00Z", history.PerDay, "2018-11-03 2018-11-04 2018-11-05"},
		{"UTC", "2026-11-28T00:00:00Z", "2026-12-08T00:00:00Z", history.PerWeek, "2026-11-23 2026-11-30 2026-12-07"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, _ := time.Parse(time.RFC3339, c.from)
		to, _ := time.Parse(time.RFC3339, c.to)
		uses, err := history.NewUses(history.Question{By: history.ByProject, Per: c.per, From: structs.At(from), To: structs.At(to), Zone: zone})
		if err != nil {
			t.Fatal(err)
		}
		row := structs.HistoryRow{Kind: structs.HistoryHolding, Project: "p", Start: structs.At(from), End: structs.At(to), Cards: structs.QuotaUsage{"a": 1}}
		if err := uses.Take(history.Loose{row}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range uses.Lines() {
			got = append(got, line.Period)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.zone, got, c.want)
		}
	}
}

// Quantiles of waits are no less than they were, and at most a sixty-fourth more.
func TestWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []structs.HistoryRow
		var spans []int64
		for range rapid.IntRange(1, 200).Draw(t, "rows") {
			ms := rapid.Int64Range(0, 30*24*3600*1000).Draw(t, "ms") >> rapid.IntRange(0, 30).Draw(t, "shift")
			spans = append(spans, ms)
			rows = append(rows, structs.HistoryRow{Kind: structs.HistoryAttempt, Start: structs.UnixNano(1e18 + ms*1e6), Eligible: 1e18, ForecastP50: 1e18 + 5e9, ForecastP90: 1e18 + 1e15})
		}
		slices.Sort(spans)
		waits, err := history.NewWaits(history.Question{By: history.ByUser, From: 1e18, To: 2e18})
		if err != nil {
			t.Fatal(err)
		}
		if err := waits.Take(history.Loose(rows)); err != nil {
			t.Fatal(err)
		}
		line := waits.Lines()[0]
		for _, q := range []struct {
			got int64
			of  int
		}{{line.P50Ms, 500}, {line.P90Ms, 900}, {line.P95Ms, 950}} {
			want := spans[(len(spans)*q.of+999)/1000-1]
			if q.got < want || q.got > want+want/64+1 {
				t.Fatalf("%d of a thousand: %d, want %d", q.of, q.got, want)
			}
		}
		if line.Attempts != int64(len(spans)) || line.MaxMs != spans[len(spans)-1] || line.HeldP50 > line.HeldP90 {
			t.Fatalf("%+v", line)
		}
	})
}

func TestParseMoment(t *testing.T) {
	zone := time.FixedZone("+08:00", 8*3600)
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11": "2026-10-31T16:00:00Z", "2026-11-02": "2026-11-01T16:00:00Z", "2026": "2025-12-31T16:00:00Z", "2026-11-02 08:30": "2026-11-02T00:30:00Z",
		"2026-11-02T08:30:00Z": "2026-11-02T08:30:00Z", "30d": "2026-10-29T12:00:00Z", "6h": "2026-11-28T06:00:00Z",
		"": "", "yesterday": "", "0001-01-01": "", "-3h": "", "2026-13": "", strings.Repeat("9", 100): "",
	} {
		at, err := history.ParseMoment(text, now, zone)
		if got := at.Time().Format(time.RFC3339); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

package notify

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// Quiet hours last as long as the clock on the wall says so, from any moment in any zone:
// until their end and no minute longer, also where clocks are changed.
func TestQuietUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quiet := &structs.NotifyQuiet{
			From: rapid.IntRange(0, 1439).Draw(t, "from"), To: rapid.IntRange(0, 1439).Draw(t, "to"),
			Zone: rapid.SampledFrom([]string{"Asia/Shanghai", "UTC", "America/St_Johns", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"}).Draw(t, "zone"),
		}
		if quiet.From == quiet.To {
			return
		}
		zone, err := time.LoadLocation(quiet.Zone)
		if err != nil {
			t.Fatal(err)
		}
		now := noon.Add(time.Duration(rapid.Int64Range(0, 400*24*3600).Draw(t, "now")) * time.Second)
		if rapid.Bool().Draw(t, "near a change") {
			if _, change := now.Time().In(zone).ZoneBounds(); !change.IsZero() {
				now = structs.At(change).Add(time.Duration(rapid.IntRange(-26*3600, 3*3600).Draw(t, "off")) * time.Second)
			}
		}
		end := QuietUntil(quiet, now)
		if inside := inQuiet(quiet, now.Time().In(zone)); inside != (end != 0) {
			t.Fatalf("%s within %v: %v", now.Time().In(zone), *quiet, end)
		}
		if end == 0 {
			return
		}
		if end <= now || end.Sub(now) > 49*time.Hour || inQuiet(quiet, end.Time().In(zone)) {
			t.Fatalf("from %s to %s", now.Time().In(zone), end.Time().In(zone))
		}
		for at := now; at < end; at = at.Add(time.Minute) {
			if !inQuiet(quiet, at.Time().In(zone)) {
				t.Fatalf("from %s to %s, but %s is outside", now.Time().In(zone), end.Time().In(zone), at.Time().In(zone))
			}
		}
	})
}

// Where clocks are put forward over the end, quiet hours end then; where they are put
// back, the hour that comes twice is quiet twice.
func TestQuietHoursWhenClocksChange(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, c := range []struct {
		from, to  int
		now, want string
	}{
		{22 * 60, 2*60 + 30, "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"}, // 1:30, and 2:00 is 3:00
		{22 * 60, 7 * 60, "2026-03-28T23:00:00Z", "2026-03-29T05:00:00Z"},    // seven hours of the clock are six
		{22 * 60, 7 * 60, "2026-10-24T22:00:00Z", "2026-10-25T06:00:00Z"},    // seven hours of the clock are eight
		{22 * 60, 2*60 + 30, "2026-10-25T00:10:00Z", "2026-10-25T00:30:00Z"}, // 2:10, the first time
		{22 * 60, 2*60 + 30, "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"}, // 2:10, the second time
		{2*60 + 45, 7 * 60, "2026-10-25T00:50:00Z", "2026-10-25T01:00:00Z"},  // 2:50, and then it is 2:00 again
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := QuietUntil(&structs.NotifyQuiet{From: c.from, To: c.to, Zone: berlin}, structs.At(now)).Time().UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%s to %s at %s: until %s, want %s", structs.NotifyTime(c.from), structs.NotifyTime(c.to), c.now, got, c.want)
		}
	}
}

package structs

import (
	"strings"
	"testing"
	"time"
)

// TestInstants: every form of a time means one instant for who writes it, in a zone.
func TestInstants(t *testing.T) {
	zone := time.FixedZone("here", 8*3600)
	now := time.Date(2026, 11, 28, 21, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"+2h":                          "2026-11-28T15:30:00Z",
		"22:00":                        "2026-11-28T14:00:00Z",
		"22:00:30":                     "2026-11-28T14:00:30Z",
		"21:30":                        "2026-11-29T13:30:00Z", // now is not next
		"09:00":                        "2026-11-29T01:00:00Z",
		"22:00 UTC":                    "2026-11-28T22:00:00Z",
		"13:00 UTC":                    "2026-11-29T13:00:00Z",
		"22:00 -03:30":                 "2026-11-29T01:30:00Z",
		"08:00 Europe/Berlin":          "2026-11-29T07:00:00Z",
		"2026-12-01T08:00":             "2026-12-01T00:00:00Z",
		"2026-12-01 08:00:10 UTC":      "2026-12-01T08:00:10Z",
		"2026-12-01T08:00:00+02:00":    "2026-12-01T06:00:00Z",
		"2026-12-01T08:00:00.5Z":       "2026-12-01T08:00:00.5Z",
		" 2026-07-01T08:00 Asia/Tokyo": "2026-06-30T23:00:00Z",
		"2020-01-01T00:00Z":            "",
		"":                             "",
		"+":                            "",
		"+0s":                          "",
		"+99999w":                      "",
		"24:00":                        "",
		"tomorrow":                     "",
		"22:00 Atlantis/Capital":       "",
		"22:00 ../../etc/passwd":       "",
		"22:00 /etc/localtime":         "",
		"22:00 Local":                  "",
		"0001-01-01T00:00:00Z":         "",
		"9999-12-31T00:00:00Z":         "",
		strings.Repeat("2", 10_000):    "",
	} {
		instant, err := ParseInstant(text)
		if err != nil {
			if want != "" {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if got := instant.Resolve(now, zone).Time().Format(time.RFC3339Nano); got != want {
			t.Errorf("%q is %s, want %q", text, got, want)
		}
		zoned := Zoned(text, "+08:00")
		again, err := ParseInstant(zoned)
		if err != nil || again.Resolve(now, time.UTC) != instant.Resolve(now, zone) {
			t.Errorf("%q with its zone is %q, another time: %v", text, zoned, err)
		}
	}
	// A day of 23 hours is no trap: the time of day counts.
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	before := time.Date(2026, 3, 28, 23, 0, 0, 0, berlin)
	instant, _ := ParseInstant("22:00")
	if got := instant.Resolve(before, berlin).Time().In(berlin).Format("02 15:04"); got != "29 22:00" {
		t.Errorf("the next 22:00 over the change of clocks is %s", got)
	}
}

// TestAfterComes: what another job's state means for one that waits for it.
func TestAfterComes(t *testing.T) {
	for _, c := range []struct {
		when    string
		state   JobState
		started UnixNano
		want    string
	}{
		{UntilSucceeded, JobRunning, 1, "waits"},
		{UntilSucceeded, JobSucceeded, 1, "come"},
		{UntilSucceeded, JobExpired, 1, "never"},
		{UntilFailed, JobStopped, 0, "come"},
		{UntilFailed, JobFailed, 1, "come"},
		{UntilFailed, JobSucceeded, 1, "never"},
		{UntilEnded, JobStopping, 1, "waits"},
		{UntilEnded, JobStopped, 0, "come"},
		{UntilStarted, JobQueued, 0, "waits"},
		{UntilStarted, JobQueued, 1, "come"}, // it ran, and is queued again
		{UntilStarted, JobFailed, 1, "come"},
		{UntilStarted, JobStopped, 0, "never"},
	} {
		come, never := (&After{When: c.when}).Come(c.state, c.started)
		got := map[[2]bool]string{{true, false}: "come", {false, true}: "never", {false, false}: "waits"}[[2]bool{come, never}]
		if got != c.want {
			t.Errorf("%s of one that is %s, started %d: %q, want %q", c.when, c.state, c.started, got, c.want)
		}
	}
}

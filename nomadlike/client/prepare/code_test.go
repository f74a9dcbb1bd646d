package prepare

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// What people hear of 40 MiB of code that come in eight seconds.
func TestCodeIsTold(t *testing.T) {
	now := time.Unix(0, 0)
	var told []string
	c := codeComing{now: func() time.Time { return now }, at: now, progress: func(percent int) {
		told = append(told, fmt.Sprintf("%ds code %d%%", now.Unix(), percent))
	}, tell: func(e structs.Told) {
		if !structs.ToldEvent(e.Event) {
			t.Errorf("servers make no event of %s", e.Event)
		}
		params := maps.Clone(e.Params)
		params["rank"], params["node"] = "0", "n1"
		told = append(told, fmt.Sprintf("%ds %s", now.Unix(), strings.TrimPrefix(messages.Text(messages.English, e.Event, params), "rank 0 on n1: ")))
	}}
	for i := range 80 {
		now = now.Add(100 * time.Millisecond)
		c.report(int64(i+1)<<19, 40<<20)
	}
	want := []string{
		"2s code 25%", "2s 10.0 MiB of 40.0 MiB of the job's code fetched (25 %)",
		"4s code 50%", "4s 20.0 MiB of 40.0 MiB of the job's code fetched (50 %)",
		"6s code 75%", "6s 30.0 MiB of 40.0 MiB of the job's code fetched (75 %)",
		"8s code 99%",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

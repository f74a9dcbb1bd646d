package api

import (
	"testing"

	"nomadlike/nomadlike/structs"
)

// The zone goes with the jobs that have times alone: servers of the release before refuse
// a field that they do not know.
func TestZoneOfRequests(t *testing.T) {
	t.Setenv("TZ", "Asia/Shanghai")
	for name, c := range map[string]struct {
		request JobRequest
		want    string
	}{
		"no times":       {JobRequest{Job: &structs.Job{Name: "a"}, HCL: `job "a" {}`}, ""},
		"begin":          {JobRequest{Job: &structs.Job{Begin: "22:00"}}, "Asia/Shanghai"},
		"deadline":       {JobRequest{Job: &structs.Job{Deadline: "22:00"}}, "Asia/Shanghai"},
		"in a file":      {JobRequest{HCL: `job "a" { begin = "22:00" }`}, "Asia/Shanghai"},
		"set":            {JobRequest{HCL: `job "a" {}`, Set: []JobChange{{At: "begin", Value: "22:00"}}}, "Asia/Shanghai"},
		"said otherwise": {JobRequest{Job: &structs.Job{Begin: "22:00"}, Zone: "UTC"}, "UTC"},
	} {
		if got := c.request.zoned().Zone; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

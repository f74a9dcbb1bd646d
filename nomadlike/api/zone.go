package api

import (
	"os"
	"strings"
	"time"
)

// LocalZone is the time zone of this machine: its name where that is known, else its
// offset now. The methods of Client say it where a request does not.
func LocalZone() string {
	if name := strings.TrimPrefix(os.Getenv("TZ"), ":"); name != "" {
		if _, err := time.LoadLocation(name); err == nil {
			return name
		}
	}
	if link, err := os.Readlink("/etc/localtime"); err == nil && os.Getenv("TZ") == "" {
		if _, name, found := strings.Cut(link, "zoneinfo/"); found {
			return name
		}
	}
	return time.Now().Format("-07:00")
}

// zoned is the request with the zone of this machine where one of the job's times may need
// it. Without such a time it says none: servers from before them refuse the field.
func (r JobRequest) zoned() JobRequest {
	timed := r.Job != nil && (r.Job.Begin != "" || r.Job.Deadline != "") || strings.Contains(r.HCL, "begin") || strings.Contains(r.HCL, "deadline")
	for i := range r.Set {
		timed = timed || r.Set[i].At == "begin" || r.Set[i].At == "deadline"
	}
	if timed && r.Zone == "" {
		r.Zone = LocalZone()
	}
	return r
}

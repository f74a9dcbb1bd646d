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

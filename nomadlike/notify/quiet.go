package notify

import (
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// QuietUntil is the end of the quiet hours that now is in, 0 outside of them: the first
// moment at which the clock on the wall of the zone says another time than those. Where
// clocks are put forward over the end, that is then; where they are put back, an hour that
// comes twice is quiet twice. A zone that this machine does not know has none.
func QuietUntil(quiet *structs.NotifyQuiet, now structs.UnixNano) structs.UnixNano {
	if quiet == nil {
		return 0
	}
	zone, err := time.LoadLocation(quiet.Zone)
	if err != nil || strings.EqualFold(quiet.Zone, "local") || !inQuiet(quiet, now.Time().In(zone)) {
		return 0
	}
	at := now.Time().In(zone)
	for range quietChanges {
		hour, minute, second := at.Clock()
		clock := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Duration(at.Nanosecond())
		left := time.Duration(quiet.To)*time.Minute - clock
		if left <= 0 {
			left += day
		}
		_, change := at.ZoneBounds()
		if change.IsZero() || !change.Before(at.Add(left)) {
			return structs.At(at.Add(left))
		}
		if at = change; !inQuiet(quiet, at) {
			return structs.At(at)
		}
	}
	return structs.At(at)
}

const (
	day          = 24 * time.Hour
	quietChanges = 4 // of a zone's clock within one day, at most
)

// inQuiet reports whether a clock says a time of the quiet hours.
func inQuiet(quiet *structs.NotifyQuiet, clock time.Time) bool {
	minute := 60*clock.Hour() + clock.Minute()
	if quiet.From < quiet.To {
		return minute >= quiet.From && minute < quiet.To
	}
	return minute >= quiet.From || minute < quiet.To
}

package history

import (
	"errors"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// ErrMoment is returned for a text that is no time.
var ErrMoment = errors.New("not a time")

// momentMax bounds what is looked at.
const momentMax = 64

// ParseMoment reads the time at which a report begins or ends: as in RFC 3339, a day with or
// without a time, a month, a year, each at its beginning in zone, or how long before now.
func ParseMoment(text string, now time.Time, zone *time.Location) (structs.UnixNano, error) {
	text = strings.TrimSpace(text)
	if len(text) > momentMax {
		return 0, ErrMoment
	}
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "2006-01", "2006"} {
		if err == nil {
			break
		}
		at, err = time.ParseInLocation(layout, text, zone)
	}
	if err != nil {
		span, spanErr := structs.ParseDuration(text)
		if spanErr != nil || span < 0 || span > structs.SpanMax {
			return 0, ErrMoment
		}
		at = now.Add(-span.Std())
	}
	if at.Year() < 1971 || at.Year() > 2200 {
		return 0, ErrMoment
	}
	return structs.At(at), nil
}

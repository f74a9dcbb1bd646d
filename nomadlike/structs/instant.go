package structs

import (
	"errors"
	"strings"
	"time"
)

// Instant is a time as an author writes it:
//
//	+2h                              so long after submission
//	22:00, 22:00:30                  the next such time of day
//	2026-12-01T08:00                 that time, seconds if one likes, a blank for the T
//	2026-12-01T08:00:00+08:00        the same with its offset, as in RFC 3339
//
// Where no offset is written, a zone may stand behind a blank: "22:00 Asia/Shanghai", or
// an offset, "22:00 +08:00". Without any it is the zone of whoever reads it.
type Instant struct {
	After Duration  // since submission; 0: one of the others
	Daily bool      // At counts for its hour, minute and second
	At    time.Time // without After
	Zone  string    // behind it, as it is written; "" for none
	fixed bool      // At has its offset
}

// What is wrong with an Instant.
var (
	ErrInstantForm = errors.New("not a time")
	ErrInstantZone = errors.New("not a time zone")
)

// instantTextMax bounds what is looked at.
const instantTextMax = 100 // bytes

var (
	dailyLayouts = []string{"15:04", "15:04:05"}
	dateLayouts  = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}
)

// ParseInstant reads a time.
func ParseInstant(text string) (Instant, error) {
	text = strings.TrimSpace(text)
	if len(text) > instantTextMax {
		return Instant{}, ErrInstantForm
	}
	if span, later := strings.CutPrefix(text, "+"); later {
		d, err := ParseDuration(span)
		if err != nil || d <= 0 || d > SpanMax {
			return Instant{}, ErrInstantForm
		}
		return Instant{After: d}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return Instant{At: at, fixed: true}.bounded()
	}
	if i, ok := instantIn(text); ok {
		return i.bounded()
	}
	cut := strings.LastIndexByte(text, ' ')
	if cut < 0 {
		return Instant{}, ErrInstantForm
	}
	i, ok := instantIn(text[:cut])
	if !ok {
		return Instant{}, ErrInstantForm
	}
	i.Zone = text[cut+1:]
	if _, err := ZoneOf(i.Zone); err != nil {
		return Instant{}, err
	}
	return i.bounded()
}

func instantIn(text string) (Instant, bool) {
	for _, layout := range dailyLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return Instant{At: at, Daily: true}, true
		}
	}
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return Instant{At: at}, true
		}
	}
	return Instant{}, false
}

// bounded refuses years that nanoseconds cannot hold.
func (i Instant) bounded() (Instant, error) {
	if !i.Daily && i.After == 0 && (i.At.Year() < 1971 || i.At.Year() > 2200) {
		return Instant{}, ErrInstantForm
	}
	return i, nil
}

// Zoned is the text of a time with a zone where it needs one and names none.
func Zoned(text, zone string) string {
	i, err := ParseInstant(text)
	if err != nil || zone == "" || i.After != 0 || i.fixed || i.Zone != "" {
		return text
	}
	return strings.TrimSpace(text) + " " + zone
}

// ValidZone reports whether a zone is known, by its name or as an offset.
func ValidZone(name string) bool {
	_, err := ZoneOf(name)
	return err == nil
}

// ZoneOf finds a zone by its name or as an offset. It knows no files of the machine
// but those of zones: a name with dots or a root is none.
func ZoneOf(name string) (*time.Location, error) {
	if offset, err := time.Parse("-07:00", name); err == nil {
		_, seconds := offset.Zone()
		return time.FixedZone(name, seconds), nil
	}
	if name == "" || name == "Local" || len(name) > WordMax {
		return nil, ErrInstantZone
	}
	zone, err := time.LoadLocation(name) // refuses ".." and a leading slash by itself
	if err != nil {
		return nil, ErrInstantZone
	}
	return zone, nil
}

// Resolve is the time that is meant by whoever writes it at now; local is the zone of a
// text without any.
func (i Instant) Resolve(now time.Time, local *time.Location) UnixNano {
	if i.After != 0 {
		return At(now).Add(i.After.Std())
	}
	if i.fixed {
		return At(i.At)
	}
	zone := local
	if named, err := ZoneOf(i.Zone); err == nil {
		zone = named
	}
	hour, minute, second := i.At.Clock()
	if !i.Daily {
		year, month, day := i.At.Date()
		return At(time.Date(year, month, day, hour, minute, second, 0, zone))
	}
	year, month, day := now.In(zone).Date()
	at := time.Date(year, month, day, hour, minute, second, 0, zone)
	if !at.After(now) {
		at = time.Date(year, month, day+1, hour, minute, second, 0, zone)
	}
	return At(at)
}

// instantText is a time as a parameter of a message.
func instantText(at UnixNano) string { return at.Time().Truncate(time.Second).Format(time.RFC3339) }

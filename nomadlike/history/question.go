package history

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// By says what a report has a line for.
type By string

// What a report may have lines for.
const (
	ByUser    By = "user"
	ByProject By = "project"
	ByPool    By = "pool"
	ByCards   By = "cards"
	ByTag     By = "tag"
	BySize    By = "size" // how many cards an attempt had
)

// Bys lists them all.
func Bys() []By { return []By{ByUser, ByProject, ByPool, ByCards, ByTag, BySize} }

// Per says into which spans of the calendar a report is cut.
type Per string

// The spans.
const (
	PerAll   Per = "" // not at all
	PerDay   Per = "day"
	PerWeek  Per = "week" // from Monday on
	PerMonth Per = "month"
)

// Pers lists them all.
func Pers() []Per { return []Per{PerAll, PerDay, PerWeek, PerMonth} }

// PeriodsMax bounds the spans of one report.
const PeriodsMax = 800

// ErrPeriods is returned when a report would have too many spans.
var ErrPeriods = errors.New("too many periods")

// Question says what a report is about.
type Question struct {
	By       By
	From, To structs.UnixNano // what is charged between them
	Per      Per
	Zone     *time.Location // whose days and months count; nil: UTC

	// Only of these; empty: of all.
	User, Project, Pool, Tag string
	// May reports whether the asker may see rows of a user in a project.
	May func(user, project string) bool
}

// periods are the times at which one span ends and the next begins, From and To included.
func (q *Question) periods() ([]structs.UnixNano, error) {
	cuts := []structs.UnixNano{q.From}
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	for at := q.From; q.Per != PerAll; {
		if at = q.next(at, zone); at >= q.To {
			break
		}
		if cuts = append(cuts, at); len(cuts) > PeriodsMax {
			return nil, fmt.Errorf("cut a report: %w", ErrPeriods)
		}
	}
	return append(cuts, q.To), nil
}

// next is when the span after that of a time begins.
func (q *Question) next(at structs.UnixNano, zone *time.Location) structs.UnixNano {
	t := at.Time().In(zone)
	for step := 1; ; step++ {
		begin := civil{t.Year(), t.Month(), t.Day() + step}
		switch q.Per {
		case PerMonth:
			begin = civil{t.Year(), t.Month() + time.Month(step), 1}
		case PerWeek:
			begin.day += 6*step - (int(t.Weekday())+6)%7
		}
		if after := structs.At(begin.in(zone)); after > at {
			return after
		}
	}
}

// civil is a day of the calendar, which may be none yet, such as the 32nd.
type civil struct {
	year  int
	month time.Month
	day   int
}

// in is the first moment of the day in a zone. Where clocks are put forward at midnight that
// is not 0 o'clock, and of a day that a zone left out it is that of the next one.
func (c civil) in(zone *time.Location) time.Time {
	day := time.Date(c.year, c.month, c.day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	at := time.Date(c.year, c.month, c.day, 0, 0, 0, 0, zone)
	for at.Format(time.DateOnly) < day {
		at = at.Add(15 * time.Minute)
	}
	return at
}

// name is how the span that begins at a time is called: its day, the Monday of its week, or
// its month.
func (q *Question) name(at structs.UnixNano) string {
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	t := at.Time().In(zone)
	switch q.Per {
	case PerDay:
		return t.Format(time.DateOnly)
	case PerWeek:
		return t.AddDate(0, 0, -(int(t.Weekday())+6)%7).Format(time.DateOnly)
	case PerMonth:
		return t.Format("2006-01")
	}
	return ""
}

// sizes are the bounds of the lines of BySize, in cards.
var sizes = []int64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// sizeName is the line of so many cards.
func sizeName(cards int64) string {
	at, exact := slices.BinarySearch(sizes, cards)
	switch {
	case at == len(sizes):
		return fmt.Sprintf(">%d", sizes[at-1])
	case exact && at < 3 || at > 0 && sizes[at-1]+1 == sizes[at]:
		return fmt.Sprint(sizes[at])
	}
	return fmt.Sprintf("%d-%d", sizes[at-1]+1, sizes[at])
}

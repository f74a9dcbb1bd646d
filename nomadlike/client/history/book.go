package history

import (
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// What a book holds.
const (
	Kept       = 24 * 60 // minutes; also the cells of a Record
	DevicesMax = structs.DeviceCountMax
)

// Machine is the name of the machine's own line.
const Machine = ""

// Book is the history of one machine. Its methods may be called from any goroutine.
type Book struct {
	path string
	kept [gaugesKept]gauge

	mu struct {
		sync.Mutex
		lines map[string]*line // by the id of the device, or Machine
	}
}

// Note is what was measured at one moment: of each device, or of the Machine,
// the figures that it has, under their names. Others than those that are kept
// are passed over.
type Note map[string]map[string]float64

// Add writes a note. What was noted more than Kept minutes ago is forgotten, also
// of devices that are gone.
func (b *Book) Add(at time.Time, note Note) {
	minute := minuteOf(at)
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, figures := range note {
		l := b.mu.lines[id]
		if l == nil {
			if len(b.mu.lines) > DevicesMax {
				continue
			}
			l = new(line)
			b.mu.lines[id] = l
		}
		l.turn(minute, b.kept)
		for place, figure := range b.kept {
			if value, measured := figures[figure.gauge]; measured {
				l.sums.add(place, figure.fold, value)
			}
		}
	}
	maps.DeleteFunc(b.mu.lines, func(_ string, l *line) bool { return l.newest() <= minute-Kept })
}

func (l *line) newest() int64 {
	if l.open != 0 || len(l.cells) == 0 {
		return l.open
	}
	return l.cells[len(l.cells)-1].at
}

// Read returns what was measured since a moment until now. Each point is of as
// many whole minutes as it takes for request.Points of them, and of more when
// there are more than structs.HistoryValuesMax values otherwise. Devices that are
// asked for and were never measured are left out.
func (b *Book) Read(request *structs.HistoryRequest, now time.Time) *structs.NodeHistory {
	b.mu.Lock()
	defer b.mu.Unlock()
	wanted := request.Devices
	if len(wanted) == 0 {
		wanted = slices.Sorted(maps.Keys(b.mu.lines))
	}
	end := minuteOf(now) + 1
	span := min(max(end-minuteOf(request.Since.Time()), 1), Kept)
	points := max(min(int64(request.Points), structs.HistoryValuesMax/int64(gaugesKept*(len(wanted)+1))), 1)
	step := (span + points - 1) / points
	first := (end - span) / step * step
	count := int((end - first + step - 1) / step)
	out := &structs.NodeHistory{From: structs.At(time.Unix(first*60, 0)), Step: structs.Duration(time.Duration(step) * time.Minute), Count: count}
	if l := b.mu.lines[Machine]; l != nil {
		out.Machine = series(l.all(b.kept), b.kept, first, step, count)
	}
	for _, id := range wanted {
		if l := b.mu.lines[id]; l != nil && id != Machine {
			out.Devices = append(out.Devices, structs.DeviceHistory{ID: id, Series: series(l.all(b.kept), b.kept, first, step, count)})
		}
	}
	return out
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

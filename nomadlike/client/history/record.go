package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Bounds of a record.
const (
	RecordTick     = 5 * time.Second // how often one measures, and the first length of a cell
	recordTick     = int64(RecordTick / time.Second)
	recordSpanMax  = recordTick << 30
	recordFileMax  = 1 << 20 // bytes; a full one has about 80 KiB
	recordTimesMax = 1 << 40 // seconds since 1970
	recordVersion  = 1
)

// recordGauges are the gauges of a rank, by their places in a cell. A place
// never gets another meaning: files of older agents are read.
func recordGauges() [gaugesKept]gauge {
	return [gaugesKept]gauge{
		{structs.GaugeCores, mean},
		{device.GaugeMemoryUsed, most},
		{structs.GaugeProcesses, most},
		{structs.GaugeCardUse, mean},
		{structs.GaugeCardMemory, most},
		{structs.GaugeCardMemoryTotal, last},
		{structs.GaugeCardTemperature, most},
		{structs.GaugeCardPower, mean},
		{structs.GaugeCardPowerLimit, last},
	}
}

// Record is what one rank used from its start on. It has Kept cells at most: when
// there are more, two become one, so that a long run is kept whole and less
// finely. Its methods may be called from any goroutine.
type Record struct {
	path string
	kept [gaugesKept]gauge

	mu struct {
		sync.Mutex
		span  int64 // seconds of a cell: recordTick, doubled as often as there was need
		cells []cell
		open  int64 // when the cell begins that is being measured; 0: none
		sums  sums
		fresh bool // something was noted since it was saved
	}
}

// OpenRecord goes on with the record at path. Where there is none, or none that
// can be read, it is empty; the error reports the second, and the record may
// be used all the same.
func OpenRecord(path string) (*Record, error) {
	r := &Record{path: path, kept: recordGauges()}
	r.mu.span = recordTick
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err == nil && info.Size() > recordFileMax:
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), recordFileMax)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		r.mu.span, r.mu.cells, err = decodeRecord(data)
	}
	if err != nil {
		r.mu.span, r.mu.cells = recordTick, nil
		return r, fmt.Errorf("read figures of a rank: %w", err)
	}
	return r, nil
}

// recordFile is what a record is between two processes of the agent; the cells
// are packed as those of a Book, with seconds for minutes.
type recordFile struct {
	Version int    `json:"version"`
	Span    int64  `json:"span"` // seconds
	Cells   []byte `json:"cells"`
}

func decodeRecord(data []byte) (span int64, cells []cell, err error) {
	var in recordFile
	if err := json.Unmarshal(data, &in); err != nil {
		return 0, nil, err
	}
	ticks := in.Span / recordTick
	if in.Version != recordVersion || in.Span < recordTick || in.Span > recordSpanMax || in.Span%recordTick != 0 || ticks&(ticks-1) != 0 {
		return 0, nil, fmt.Errorf("version %d with cells of %d seconds", in.Version, in.Span)
	}
	if cells, err = unpack(in.Cells); err != nil {
		return 0, nil, err
	}
	for i := range cells {
		if at := cells[i].at; at <= 0 || at > recordTimesMax || at%in.Span != 0 {
			return 0, nil, fmt.Errorf("a cell at %d", at)
		}
	}
	return in.Span, cells, nil
}

// Save writes the record, unless nothing was noted since it was written. What
// is noted afterwards is in the next Save.
func (r *Record) Save() error {
	r.mu.Lock()
	if !r.mu.fresh {
		r.mu.Unlock()
		return nil
	}
	r.mu.fresh = false
	data, err := json.Marshal(recordFile{Version: recordVersion, Span: r.mu.span, Cells: pack(r.allLocked())})
	r.mu.Unlock()
	if err == nil {
		err = store.WriteFile(r.path, data, 0o600, false)
	}
	if err != nil {
		return fmt.Errorf("keep figures of a rank: %w", err)
	}
	return nil
}

// Add notes what the rank used at one moment, under the names of the figures.
// Others than those that are kept are passed over.
func (r *Record) Add(at time.Time, figures map[string]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnLocked(at.Unix())
	r.mu.fresh = true
	for place, figure := range r.kept {
		if value, measured := figures[figure.gauge]; measured {
			r.mu.sums.add(place, figure.fold, value)
		}
	}
}

// turnLocked opens the cell of a second. A clock that was set back a little
// goes on in the cell that is open.
func (r *Record) turnLocked(second int64) {
	m := &r.mu
	if m.open != 0 && second < m.open+m.span && second >= m.open-m.span {
		return
	}
	if m.open != 0 && second > m.open {
		m.cells = append(m.cells, m.sums.cell(m.open, r.kept))
	}
	for len(m.cells) > 0 && m.cells[len(m.cells)-1].at > second {
		m.cells = m.cells[:len(m.cells)-1]
	}
	for len(m.cells) >= Kept {
		r.widenLocked()
	}
	m.open, m.sums = second/m.span*m.span, sums{}
	if n := len(m.cells); n > 0 && m.cells[n-1].at == m.open { // it was open before, or was half of this one
		times := int(max((second-m.open)/recordTick, 1))
		for place, value := range m.cells[n-1].values {
			m.sums.addTimes(place, r.kept[place].fold, float64(value), times)
		}
		m.cells = m.cells[:n-1]
	}
}

// widenLocked makes cells twice as long.
func (r *Record) widenLocked() {
	m := &r.mu
	m.span *= 2
	var wide []cell
	for i := 0; i < len(m.cells); {
		at := m.cells[i].at / m.span * m.span
		var both sums
		for ; i < len(m.cells) && m.cells[i].at < at+m.span; i++ {
			for place, value := range m.cells[i].values {
				both.add(place, r.kept[place].fold, float64(value))
			}
		}
		wide = append(wide, both.cell(at, r.kept))
	}
	m.cells = wide
}

// allLocked returns every cell, the open one too.
func (r *Record) allLocked() []cell {
	m := &r.mu
	if m.open == 0 {
		return m.cells
	}
	return append(m.cells[:len(m.cells):len(m.cells)], m.sums.cell(m.open, r.kept))
}

// Read returns count points of step each from a moment on, both of whole seconds.
// A point has what was measured in any cell that it touches: where cells are
// longer than step, neighbours have the same value. Figures that were never
// measured are left out.
func (r *Record) Read(from time.Time, step time.Duration, count int) []structs.GaugeHistory {
	first, wide := from.Unix(), max(int64(step/time.Second), 1)
	spans := make([]sums, count)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.allLocked() {
		if c.at+r.mu.span <= first {
			continue
		}
		end := min((c.at+r.mu.span-1-first)/wide, int64(count)-1)
		for i := max(c.at-first, 0) / wide; i <= end; i++ {
			for place, value := range c.values {
				spans[i].add(place, r.kept[place].fold, float64(value))
			}
		}
	}
	return told(spans, r.kept)
}

// Span is how long a cell is now.
func (r *Record) Span() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.mu.span) * time.Second
}

package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// Read parses a trace. What name says decides the format: .swf is the Standard
// Workload Format, everything else CSV; a further .gz does not matter, because
// compressed bytes are recognised by themselves. Problems are *structs.Error
// and name the file and the line; the first one ends the reading.
func Read(name string, from io.Reader) (*Trace, error) {
	plain, err := decompress(name, from)
	if err != nil {
		return nil, err
	}
	var t *Trace
	if strings.HasSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".swf") {
		t, err = readSWF(name, plain)
	} else {
		t, err = readCSV(name, plain)
	}
	if err != nil {
		return nil, err
	}
	if len(t.Jobs) == 0 {
		return nil, structs.NewError(structs.CodeInvalid, "sim.trace.empty", "file", name)
	}
	sortJobs(t.Jobs)
	return t, nil
}

// decompress undoes gzip when the bytes say so, and bounds what comes out.
func decompress(name string, from io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(from, 1<<16)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unreadable(name, err)
	}
	bounded := &boundedReader{from: buffered, left: bytesMax}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, unreadable(name, err)
		}
		bounded.from = unzipped
	}
	return bounded, nil
}

var errTooLarge = errors.New("more than 4 GiB of text")

// boundedReader ends with an error, not silently, after left bytes.
type boundedReader struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func unreadable(name string, err error) error {
	return structs.NewError(structs.CodeInvalid, "sim.trace.unreadable", "file", name, "problem", err).Because(err)
}

// place is where in a file something stands, for messages.
type place struct {
	file string
	line int
}

// problem makes the error about what stands here. The catalogue has its cure
// under the id with ".hint".
func (p place) problem(id string, params ...any) error {
	return structs.NewError(structs.CodeInvalid, id, append([]any{"file", p.file, "line", p.line}, params...)...)
}

// number reads a whole number from 0 to limit.
func (p place) number(column, text string, limit int) (int, error) {
	value, err := strconv.Atoi(text)
	if err != nil || value < 0 {
		return 0, p.problem("sim.trace.number", "column", column, "value", shown(text))
	}
	if value > limit {
		return 0, p.problem("sim.trace.range", "column", column, "value", value, "max", limit)
	}
	return value, nil
}

// share reads a number of devices; a fraction of one counts as a whole one,
// because devices are not divided.
func (p place) share(column, text string) (int, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if fraction == "" || !digits(fraction) {
		return p.number(column, strings.TrimSuffix(text, "."), GPUsMax)
	}
	if whole == "" {
		whole = "0"
	}
	value, err := p.number(column, whole, GPUsMax-1)
	if err == nil && strings.Trim(fraction, "0") != "" {
		value++
	}
	return value, err
}

// seconds reads a time in seconds with up to nine decimals.
func (p place) seconds(column, text string) (time.Duration, error) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if pointed && fraction == "" {
		fraction = "0"
	}
	if whole == "" && pointed {
		whole = "0"
	}
	if !digits(whole) || pointed && !digits(fraction) {
		return 0, p.problem("sim.trace.seconds", "column", column, "value", shown(text))
	}
	value, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || value > secondsMax {
		return 0, p.problem("sim.trace.range", "column", column, "value", shown(text), "max", secondsMax)
	}
	span := time.Duration(value) * time.Second
	if pointed {
		fraction = (fraction + "000000000")[:9]
		nanoseconds, err := strconv.Atoi(fraction)
		if err != nil {
			return 0, p.problem("sim.trace.seconds", "column", column, "value", shown(text))
		}
		span += time.Duration(nanoseconds)
	}
	return span, nil
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// shown cuts a value for a message.
func shown(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// words keeps each different text once: users and names repeat a lot.
type words map[string]string

func (w words) keep(text string) string {
	if known, ok := w[text]; ok {
		return known
	}
	text = strings.Clone(text)
	w[text] = text
	return text
}

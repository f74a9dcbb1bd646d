package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The fields of a line of the Standard Workload Format that are read, by their
// place; each line has 18, and -1 stands for what is not known.
const (
	swfJob        = 0
	swfSubmit     = 1
	swfWait       = 2
	swfRun        = 3
	swfProcs      = 4 // allocated
	swfReqProcs   = 7
	swfReqTime    = 8
	swfStatus     = 10
	swfUser       = 11
	swfExecutable = 13
	swfPartition  = 15
	swfFields     = 18
)

// swfLineMax bounds a line, comments included, in bytes.
const swfLineMax = 1 << 20

// readSWF reads the Standard Workload Format. Processors become GPUs, the
// partition becomes the group, the number of the executable the name. Lines of
// parts of a job (status 2, 3 and 4) are passed over: the job has a line of its
// own.
func readSWF(name string, from io.Reader) (*Trace, error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 1<<16), swfLineMax)
	t, kept, header := &Trace{}, words{}, swfHeader{}
	line := 0
	for scanner.Scan() {
		line++
		at, text := place{name, line}, strings.TrimSpace(scanner.Text())
		if comment, ok := strings.CutPrefix(text, ";"); ok {
			header.read(comment)
			continue
		}
		if text == "" {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != swfFields {
			return nil, at.problem("sim.trace.fields", "found", len(fields), "want", swfFields)
		}
		if len(t.Jobs) == JobsMax {
			return nil, at.problem("sim.trace.too_many", "max", JobsMax)
		}
		job, whole, err := swfLine(at, fields, kept)
		if err != nil {
			return nil, err
		}
		if whole {
			t.Jobs = append(t.Jobs, job)
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, place{name, line + 1}.problem("sim.trace.too_long", "column", "-", "max", swfLineMax)
	} else if err != nil {
		return nil, unreadable(name, err)
	}
	t.Nodes, t.NodeGPUs = header.machine()
	return t, nil
}

// swfHeader is what the comments at the head of a file say of the machine.
type swfHeader struct{ nodes, procs int }

// read takes "MaxNodes: 128" and "MaxProcs: 1024".
func (h *swfHeader) read(comment string) {
	key, value, ok := strings.Cut(comment, ":")
	first, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	number, err := strconv.Atoi(first)
	if !ok || err != nil || number < 1 || number > GPUsMax {
		return
	}
	switch strings.TrimSpace(key) {
	case "MaxNodes":
		h.nodes = number
	case "MaxProcs":
		h.procs = number
	}
}

// machine returns the nodes with the processors of each, 0 when the header does
// not say.
func (h *swfHeader) machine() (nodes, each int) {
	switch {
	case h.nodes > 0 && h.procs >= h.nodes:
		return h.nodes, h.procs / h.nodes
	case h.procs > 0:
		return h.procs, 1
	}
	return h.nodes, min(h.nodes, 1)
}

// swfLine reads one line; false for a part of a job.
func swfLine(at place, fields []string, kept words) (Job, bool, error) {
	var values [swfFields]float64
	for i, field := range fields {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil || !(value >= -1) {
			return Job{}, false, at.problem("sim.trace.swf_number", "field", i+1, "value", shown(field))
		}
		if value > secondsMax && (i == swfSubmit || i == swfWait || i == swfRun || i == swfReqTime) {
			return Job{}, false, at.problem("sim.trace.range", "column", fmt.Sprintf("field %d", i+1), "value", shown(field), "max", secondsMax)
		}
		values[i] = value
	}
	if status := values[swfStatus]; status == 2 || status == 3 || status == 4 {
		return Job{}, false, nil
	}
	if values[swfSubmit] < 0 {
		return Job{}, false, at.problem("sim.trace.blank", "column", "submit time")
	}
	job := Job{
		ID: strings.Clone(fields[swfJob]), User: number(kept, "u", values[swfUser]), Group: number(kept, "p", values[swfPartition]),
		Name: number(kept, "e", values[swfExecutable]), State: swfState(values[swfStatus]),
		Submit: seconds(values[swfSubmit]), Start: -1, Duration: -1, Limit: max(0, seconds(values[swfReqTime])),
	}
	if values[swfRun] >= 0 {
		job.Duration = seconds(values[swfRun])
	}
	if values[swfWait] >= 0 {
		job.Start = job.Submit + seconds(values[swfWait])
	}
	procs := values[swfProcs]
	if procs <= 0 {
		procs = values[swfReqProcs]
	}
	if procs > GPUsMax {
		return Job{}, false, at.problem("sim.trace.range", "column", "processors", "value", int64(procs), "max", GPUsMax)
	}
	job.GPUs = max(0, int(procs))
	return job, true, nil
}

func seconds(s float64) time.Duration { return time.Duration(s*1e3) * time.Millisecond }

// number names what SWF only counts: "u7".
func number(kept words, letter string, n float64) string {
	if n < 0 {
		return ""
	}
	return kept.keep(letter + strconv.FormatFloat(n, 'f', -1, 64))
}

func swfState(status float64) string {
	switch status {
	case 1:
		return "completed"
	case 0:
		return "failed"
	case 5:
		return "cancelled"
	}
	return ""
}

package command

import (
	"bytes"
	"strings"
	"time"

	"nomadlike/plugins/driver/tasklog"
)

// logTimes reads a log in which the time stands before every line, in UTC, and
// spells the times as people read them. What it read says how far it is in the log
// itself, which knows no times.
type logTimes struct {
	within bool   // a line has begun
	joined bool   // a new stream goes on within a line: its first time is left out
	kept   []byte // begun time
}

// logTimeLayout is how people read when a line was printed.
const logTimeLayout = "2006-01-02 15:04:05.000"

// again is called when a new stream goes on where the last one broke off.
func (l *logTimes) again() {
	l.joined, l.within, l.kept = l.within, false, nil
}

// read takes the next bytes of a stream, and returns what is to be printed and how
// many of the log's own bytes that is.
func (l *logTimes) read(data []byte) (shown []byte, own int64) {
	for len(data) > 0 {
		if !l.within {
			end := bytes.IndexAny(data, " \n")
			if end < 0 && len(l.kept)+len(data) <= len(tasklog.TimeLayout) {
				l.kept = append(l.kept, data...)
				return shown, own
			}
			at := append(l.kept, data[:max(end, 0)]...)
			local, stamped := localTime(at)
			stamped = stamped && end >= 0 && data[end] == ' '
			if !l.joined {
				shown = append(shown, local...)
				shown = append(shown, ' ')
			}
			if data = data[max(end, 0):]; stamped {
				data = data[1:]
			} else { // of a node that knows no times
				shown, own = append(shown, at...), own+int64(len(at))
			}
			l.kept, l.within, l.joined = nil, true, false
			continue
		}
		line := data
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			line, l.within = data[:end+1], false
		}
		shown, own = append(shown, line...), own+int64(len(line))
		data = data[len(line):]
	}
	return shown, own
}

// localTime spells a time in the zone of its reader, and reports whether it is one;
// one that is not known is a dash, as wide as any other.
func localTime(at []byte) (string, bool) {
	unknown := "-" + strings.Repeat(" ", len(logTimeLayout)-1)
	if string(at) == "-" {
		return unknown, true
	}
	when, err := time.Parse(tasklog.TimeLayout, string(at))
	if err != nil {
		return unknown, false
	}
	return when.Local().Format(logTimeLayout), true
}

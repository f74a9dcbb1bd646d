package notify

import (
	"regexp"
	"strings"
	"unicode"

	"nomadlike/nomadlike/structs"
)

// How many lines of a log are looked at, and how many are told behind the one that names
// the error.
const (
	LinesLookedAt = 60
	linesBehind   = 2
	lineMax       = 400 // bytes of one
)

var (
	escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])`)
	// names tells the line that names an error; the pages know it by the same.
	names = regexp.MustCompile(`^\s*(?:[\w.]*(?:Error|Exception|Interrupt)\b|\S*[Ff]atal\b|FATAL\b|panic:|Segmentation fault|Killed\b|terminate called)|\b(?:error|ERROR|错误)[:：]`)
)

// ErrorLines are the lines of the end of a log that tell why a task failed: those up to
// the one that names the error and a few behind it, or the last ones where none does; at
// most structs.NotifyLinesMax of them, and structs.NotifyLinesSizeMax bytes. They are
// texts of one line each without colours, whatever a task printed. Pure.
func ErrorLines(log string) []string {
	var lines []string
	for line := range strings.SplitSeq(escapes.ReplaceAllString(log, ""), "\n") {
		line = strings.TrimRight(line, "\r")
		if at := strings.LastIndexByte(line, '\r'); at >= 0 { // a progress bar that was drawn again
			line = line[at+1:]
		}
		line = strings.TrimRightFunc(oneLine(line), unicode.IsSpace)
		if strings.TrimSpace(line) != "" {
			lines = append(lines, bounded(line, lineMax))
		}
	}
	named := len(lines) - 1
	for i := range lines {
		if names.MatchString(lines[i]) {
			named = min(i+linesBehind, len(lines)-1)
		}
	}
	from, size := named+1, 0
	for from > 0 && named+1-from < structs.NotifyLinesMax && size+len(lines[from-1]) <= structs.NotifyLinesSizeMax {
		from--
		size += len(lines[from])
	}
	return lines[from : named+1]
}

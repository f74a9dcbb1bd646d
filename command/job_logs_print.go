package command

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// logLineMax bounds a line behind a prefix; a longer one is broken there.
const logLineMax = 64 << 10 // bytes

// logPrinter prints the bytes of one stream. Without a prefix they pass as
// they come; with one they wait for the end of their line. On terminals
// control characters are made visible. One goroutine calls it.
type logPrinter struct {
	mu     *sync.Mutex // of all printers of one screen
	on     *Screen
	prefix string
	kept   []byte // begun line, or begun character
}

// print takes the next bytes of the stream.
func (p *logPrinter) print(data []byte) {
	p.kept = append(p.kept, data...)
	if p.prefix == "" {
		p.pass(len(p.kept))
		return
	}
	for {
		end := bytes.IndexByte(p.kept, '\n')
		if end < 0 && len(p.kept) < logLineMax {
			return
		}
		if end < 0 || end >= logLineMax {
			end = logLineMax - 1
		}
		p.line(p.kept[:end+1])
		p.kept = p.kept[end+1:]
	}
}

// flush prints what is kept when the stream has ended.
func (p *logPrinter) flush() {
	switch {
	case len(p.kept) == 0:
	case p.prefix == "":
		p.write(p.shown(p.kept))
	default:
		p.line(p.kept)
	}
	p.kept = nil
}

// pass prints bytes as they come; a terminal gets whole characters only.
func (p *logPrinter) pass(n int) {
	if p.on.Terminal {
		n = wholeCharacters(p.kept)
	}
	p.write(p.shown(p.kept[:n]))
	p.kept = append(p.kept[:0], p.kept[n:]...)
}

// wholeCharacters is the number of bytes before a character that has only
// begun.
func wholeCharacters(data []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if start := len(data) - back; utf8.RuneStart(data[start]) {
			if utf8.FullRune(data[start:]) {
				break
			}
			return start
		}
	}
	return len(data)
}

// line prints one line behind the prefix. Of a line that a program wrote over
// and over, as progress bars do, a terminal gets the last state: carriage
// returns would take the prefix away.
func (p *logPrinter) line(line []byte) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	if p.on.Terminal {
		text = bytes.TrimSuffix(text, []byte("\r"))
		text = text[bytes.LastIndexByte(text, '\r')+1:]
	}
	p.write(p.prefix + p.shown(text) + "\n")
}

// shown is what a screen gets for bytes of a log. Without a prefix there is
// nothing that a carriage return could hide, and progress bars need it.
func (p *logPrinter) shown(data []byte) string {
	if !p.on.Terminal {
		return string(data)
	}
	if p.prefix != "" || bytes.IndexByte(data, '\r') < 0 {
		return safeText(string(data))
	}
	parts := strings.Split(string(data), "\r")
	for i := range parts {
		parts[i] = safeText(parts[i])
	}
	return strings.Join(parts, "\r")
}

func (p *logPrinter) write(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.on, text) // a closed pipe ends the program by its signal
}

package command

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// logLineMax bounds a line behind a prefix; a longer one is broken there.
const logLineMax = 64 << 10 // bytes

// logWriteSize is how many bytes of lines are written at a time.
const logWriteSize = 64 << 10

// logPrinter prints the bytes of one stream. Without a prefix they pass as
// they come; with one they wait for the end of their line. On terminals
// control characters are made visible. One goroutine calls it.
type logPrinter struct {
	mu     *sync.Mutex // of all printers of one screen
	on     *Screen
	prefix string
	kept   []byte // begun line, or begun character
	lines  []byte // whole lines, written before print returns
}

// print takes the next bytes of the stream.
func (p *logPrinter) print(data []byte) {
	if p.prefix == "" && !p.on.Terminal {
		p.write(data)
		return
	}
	if len(p.kept) > 0 {
		p.kept = append(p.kept, data...)
		data = p.kept
	}
	if p.prefix == "" {
		n := wholeCharacters(data)
		p.write(p.shown(data[:n]))
		p.kept = append(p.kept[:0], data[n:]...)
		return
	}
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 && len(data) < logLineMax {
			break
		}
		if end < 0 || end >= logLineMax {
			end = logLineMax - 1
		}
		p.line(data[:end+1])
		data = data[end+1:]
	}
	p.kept = append(p.kept[:0], data...)
	p.writeLines()
}

// flush prints what is kept when the stream has ended.
func (p *logPrinter) flush() {
	switch {
	case len(p.kept) == 0:
	case p.prefix == "":
		p.write(p.shown(p.kept))
	default:
		p.line(p.kept)
		p.writeLines()
	}
	p.kept = nil
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
	p.lines = append(append(append(p.lines, p.prefix...), p.shown(text)...), '\n')
	if len(p.lines) >= logWriteSize {
		p.writeLines()
	}
}

// writeLines writes the lines that are whole.
func (p *logPrinter) writeLines() {
	if len(p.lines) > 0 {
		p.write(p.lines)
		p.lines = p.lines[:0]
	}
}

// shown is what a screen gets for bytes of a log. Without a prefix there is
// nothing that a carriage return could hide, and progress bars need it.
func (p *logPrinter) shown(data []byte) []byte {
	if !p.on.Terminal {
		return data
	}
	if p.prefix != "" || bytes.IndexByte(data, '\r') < 0 {
		return safeBytes(data)
	}
	parts := bytes.Split(data, []byte("\r"))
	for i := range parts {
		parts[i] = safeBytes(parts[i])
	}
	return bytes.Join(parts, []byte("\r"))
}

// safeBytes is safeText; what is plain already, as most of a log, passes as it is.
func safeBytes(data []byte) []byte {
	for _, b := range data {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return []byte(safeText(string(data)))
		}
	}
	return data
}

func (p *logPrinter) write(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.on.Write(data) // a closed pipe ends the program by its signal
}

package rankshell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

// pdshLineMax bounds what is held of a line until its end comes.
const pdshLineMax = 64 << 10

// RunPdsh is the hidden command `nomadlike mpi-pdsh`: what a task of a gang finds
// as pdsh. It runs the command in the tasks of all ranks that args name, at most
// as many at a time as the fan-out says, each line of output behind its host's
// name. With -S it returns the largest exit code, else 0 or, when a rank was not
// reached, 1, as pdsh does. Nothing is read from stdin. main calls it once.
func RunPdsh(args, environ []string, stdout, stderr io.Writer) int {
	getenv := lookup(environ)
	p, err := launch.ParsePdsh(args)
	if err != nil {
		language := messages.Detect(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
		var told *structs.Error
		if !errors.As(err, &told) {
			told = structs.NewError(structs.CodeInvalid, "client.rsh_usage", "cause", err)
		}
		fmt.Fprintf(stderr, "pdsh: %s\n", messages.Text(language, told.ID, told.Params))
		return 1
	}
	var (
		lines   sync.Mutex
		running sync.WaitGroup
		codes   = make([]int, len(p.Hosts))
		places  = make(chan struct{}, p.Fanout)
	)
	for n, host := range p.Hosts {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			label := host + ": "
			if p.Bare {
				label = ""
			}
			out, bad := &labelled{to: stdout, label: label, lines: &lines}, &labelled{to: stderr, label: label, lines: &lines}
			codes[n] = RunShell([]string{"--", host, p.CommandOn(n, getenv("USER"))}, environ, nil, out, bad)
			out.end()
			bad.end()
		})
	}
	running.Wait()
	return pdshCode(codes, p.Largest)
}

// pdshCode is how pdsh ends when its commands ended so.
func pdshCode(codes []int, largest bool) int {
	worst, unreached := 0, 0
	for _, code := range codes {
		worst = max(worst, code)
		if code == CodeFailed {
			unreached = 1
		}
	}
	if largest {
		return worst
	}
	return unreached
}

// labelled writes whole lines behind a label, not mixed with those of others.
type labelled struct {
	to    io.Writer
	label string
	lines *sync.Mutex
	begun bytes.Buffer
}

func (l *labelled) Write(data []byte) (int, error) {
	l.begun.Write(data) // never fails
	for {
		end := bytes.IndexByte(l.begun.Bytes(), '\n')
		if end < 0 && l.begun.Len() < pdshLineMax {
			return len(data), nil
		}
		if end < 0 {
			end = l.begun.Len() - 1
		}
		if err := l.line(l.begun.Next(end + 1)); err != nil {
			return 0, err
		}
	}
}

func (l *labelled) line(text []byte) error {
	l.lines.Lock()
	defer l.lines.Unlock()
	_, err := fmt.Fprintf(l.to, "%s%s", l.label, text)
	return err
}

// end writes what no end of line came for.
func (l *labelled) end() {
	if l.begun.Len() > 0 {
		_ = l.line(append(l.begun.Bytes(), '\n')) // nobody listens any more
	}
}

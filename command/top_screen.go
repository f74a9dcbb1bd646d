package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// What is written to a terminal around a full-screen view.
const (
	screenEnter = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	screenLeave = "\x1b[?25h\x1b[?1049l"
	screenHome  = "\x1b[H"
	lineRest    = "\x1b[K" // clears what is left of the line
	screenRest  = "\x1b[J"
)

// Size of a terminal that does not tell its own.
const (
	screenWidth  = 80
	screenHeight = 24
	narrowMax    = 64 // characters that a person may type
)

// terminal is a person's screen and keyboard.
type terminal struct {
	keys, screen *os.File
}

// fullScreen returns the terminal of this process, nil when input or output is
// something else, or a terminal that cannot be drawn on.
func (env *Env) fullScreen() *terminal {
	keys, typed := env.Stdin.(*os.File)
	screen, drawn := env.Stdout.Writer.(*os.File)
	if !typed || !drawn || env.Getenv("TERM") == "dumb" || !term.IsTerminal(int(keys.Fd())) || !term.IsTerminal(int(screen.Fd())) {
		return nil
	}
	return &terminal{keys, screen}
}

func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.screen.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return screenWidth, screenHeight
	}
	return width, height
}

// looked is what came of one look at the cluster.
type looked struct {
	data topData
	err  error
}

// watchTop draws the cluster until the person leaves. A look that takes long
// delays the next one; there is never more than one under way.
func (env *Env) watchTop(t *terminal, view topView, every time.Duration, look func(context.Context) (topData, error)) error {
	ctx, cancel := context.WithCancel(env.Context)
	defer cancel()
	first, err := look(ctx)
	if err != nil {
		return err
	}
	view.data = first
	old, err := term.MakeRaw(int(t.keys.Fd()))
	if err != nil {
		return fmt.Errorf("make terminal raw: %w", err)
	}
	defer func() { _ = term.Restore(int(t.keys.Fd()), old) }()
	fmt.Fprint(env.Stdout, screenEnter)
	defer fmt.Fprint(env.Stdout, screenLeave)

	typed := make(chan string)
	go t.read(ctx, typed) // a read of a terminal cannot be waited for; it ends with the process
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	found := make(chan looked, 1)
	looking := false
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer func() {
		cancel()
		if looking {
			<-found
		}
	}()
	for {
		env.draw(t, &view)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case text, open := <-typed:
			if !open || view.key(text) {
				return nil
			}
		case <-resized:
		case <-tick.C:
			if !looking {
				looking = true
				go func() {
					data, err := look(ctx)
					found <- looked{data, err}
				}()
			}
		case news := <-found:
			looking = false
			view.trouble = ""
			if news.err != nil {
				view.trouble = news.err.Error()
			} else {
				view.data = news.data
			}
		}
	}
}

// draw writes a view in one piece, so that nothing flickers.
func (env *Env) draw(t *terminal, view *topView) {
	width, height := t.size()
	var b strings.Builder
	b.WriteString(screenHome)
	for i, line := range env.topLines(view, width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + lineRest)
	}
	b.WriteString(screenRest)
	fmt.Fprint(env.Stdout, b.String())
}

// read passes on what is typed, until the terminal is closed or ctx ends.
func (t *terminal) read(ctx context.Context, typed chan<- string) {
	defer close(typed)
	buffer := make([]byte, 64)
	for {
		n, err := t.keys.Read(buffer)
		if n > 0 {
			select {
			case typed <- string(buffer[:n]):
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Keys that are more or less than a character.
const (
	keyInterrupt = "\x03"
	keyEscape    = "\x1b"
	keyUp        = "\x1b[A"
	keyDown      = "\x1b[B"
	keyPageUp    = "\x1b[5~"
	keyPageDown  = "\x1b[6~"
	pageStep     = 10
)

// key changes the view by what was typed, and reports whether the person leaves.
func (v *topView) key(typed string) (leave bool) {
	switch typed {
	case keyUp:
		v.skip--
		return false
	case keyDown:
		v.skip++
		return false
	case keyPageUp:
		v.skip -= pageStep
		return false
	case keyPageDown:
		v.skip += pageStep
		return false
	case keyEscape:
		v.typing, v.narrow = false, ""
		return false
	}
	if strings.HasPrefix(typed, keyEscape) {
		return false // a key that means nothing here
	}
	for _, r := range typed {
		if v.character(r) {
			return true
		}
	}
	return false
}

// character is one typed character.
func (v *topView) character(r rune) (leave bool) {
	switch {
	case string(r) == keyInterrupt:
		return true
	case v.typing && (r == '\r' || r == '\n'):
		v.typing = false
	case v.typing && (r == '\x7f' || r == '\b'):
		_, last := utf8.DecodeLastRuneInString(v.narrow)
		v.narrow = v.narrow[:len(v.narrow)-last]
	case v.typing:
		if harmless(r) && utf8.RuneCountInString(v.narrow) < narrowMax {
			v.narrow += string(r)
		}
	case r == 'q':
		return true
	case r == 's':
		v.order, v.skip = v.order.next(), 0
	case r == '/':
		v.typing, v.narrow, v.skip = true, "", 0
	case r == 'k':
		v.skip--
	case r == 'j':
		v.skip++
	}
	return false
}

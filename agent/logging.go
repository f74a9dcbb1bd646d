package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// NewLogger makes the agent's own log on w: text for a terminal or when
// format asks for it, JSON lines otherwise. level may be changed at any time. What is
// written goes to copies as well.
func NewLogger(w io.Writer, format string, level *slog.LevelVar, copies ...io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: inWords}
	if format == "text" || format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(also(copies, w), options))
	}
	return slog.New(slog.NewJSONHandler(also(copies, w), options))
}

// also writes to copies first: w may be closed.
func also(copies []io.Writer, w io.Writer) io.Writer {
	if len(copies) == 0 {
		return w
	}
	return io.MultiWriter(append(slices.Clone(copies), w)...)
}

// inWords has the log say errors as people read them: an error that names a text
// of the catalogue is shown by that text, and never by its id.
func inWords(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindString {
		return slog.String(attr.Key, plainLine(attr.Value.String()))
	}
	if err, ok := attr.Value.Any().(error); ok && !reflect.ValueOf(err).IsZero() {
		return slog.String(attr.Key, plainLine(wordsOf(err)))
	}
	return attr
}

// plainLine spells out what would turn, hide or colour a line on somebody's
// terminal: names and errors come from users and nodes. Handlers do that for the
// control characters of ASCII, and a JSON line has nothing against the others.
func plainLine(text string) string {
	if strings.IndexFunc(text, unseen) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unseen(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseen(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }

// wordsOf is what an error says, in English, with the words that others put
// around it.
func wordsOf(err error) string {
	text := err.Error()
	for _, told := range toldIn(err, nil) {
		words := messages.Text(messages.English, told.ID, told.Params)
		if cause := told.Unwrap(); cause != nil {
			if why := wordsOf(cause); !strings.Contains(words, why) {
				words += ": " + why
			}
		}
		text = strings.Replace(text, told.Error(), words, 1)
	}
	return text
}

// toldIn lists the outermost errors of the catalogue within an error.
func toldIn(err error, found []*structs.Error) []*structs.Error {
	switch inner := err.(type) {
	case *structs.Error:
		return append(found, inner)
	case interface{ Unwrap() error }:
		if next := inner.Unwrap(); next != nil {
			found = toldIn(next, found)
		}
	case interface{ Unwrap() []error }:
		for _, next := range inner.Unwrap() {
			found = toldIn(next, found)
		}
	}
	return found
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// parseLevel reads a level of the configuration; Load has checked it.
func parseLevel(text string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(strings.ToUpper(text))); err != nil {
		return slog.LevelInfo
	}
	return level
}

// tellManager tells the service manager how the agent is, when there is one. The
// address comes from NOTIFY_SOCKET; "@" begins an abstract one.
func tellManager(ctx context.Context, getenv func(string) string, state string) error {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:]
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unixgram", path)
	if err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, state); err != nil {
		return fmt.Errorf("tell service manager: %w", err)
	}
	return nil
}

func readyState() string { return "READY=1\nMAINPID=" + strconv.Itoa(os.Getpid()) }

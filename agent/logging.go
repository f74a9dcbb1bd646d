package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// NewLogger makes the agent's own log on w: text for a terminal or when
// format asks for it, JSON lines otherwise. level may be changed at any time.
func NewLogger(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" || format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
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

// notify tells the service manager how the agent is, when there is one. The
// address comes from NOTIFY_SOCKET; "@" begins an abstract one.
func notify(ctx context.Context, getenv func(string) string, state string) error {
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

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"nomadlike/nomadlike/structs"
)

// The agent's log says what errors mean, in whatever they are wrapped.
func TestLogSaysErrorsInWords(t *testing.T) {
	limit := structs.NewError(structs.CodeUnavailable, "docker.rlimit_refused", "limit", "nofile", "hard", 96365)
	locked := structs.NewError(structs.CodeConflict, "agent.refuse.locked", "dir", "/data")
	cause := errors.New("disk on fire")
	for _, format := range []string{"text", "json"} {
		for name, err := range map[string]error{
			"bare":    limit,
			"wrapped": fmt.Errorf("start container: %w", limit),
			"joined":  errors.Join(locked, fmt.Errorf("start: %w", limit)),
			"cause":   locked.Because(fmt.Errorf("ask: %w", errors.Join(limit, cause))),
			"inner":   structs.NewError(structs.CodeUnavailable, "agent.refuse.joined", "address", "a", "reason", limit).Because(limit),
		} {
			var out strings.Builder
			NewLogger(&out, format, new(slog.LevelVar)).Error("it happened", "error", err, "count", 1)
			text := out.String()
			if strings.Contains(text, "docker.rlimit") || strings.Contains(text, "agent.refuse") || strings.Contains(text, "hard=") {
				t.Errorf("%s, %s: an id is shown: %s", format, name, text)
			}
			if !strings.Contains(text, "96365") || name == "cause" && !strings.Contains(text, "disk on fire") {
				t.Errorf("%s, %s: something is lost: %s", format, name, text)
			}
		}
	}
}

// What users and nodes say stays within its line and its value, and does nothing
// to the terminal of whoever reads it.
func TestLogLinesCannotBeForged(t *testing.T) {
	hostile := "x\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\r\x1b[2J\u009b31m\u202eevil\u2028\x7f"
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		log := NewLogger(&out, format, new(slog.LevelVar)).With("name", hostile)
		log.Warn("it happened", "text", hostile, "error", errors.New(hostile), slog.Group("of", "user", hostile),
			"told", structs.NewError(structs.CodeInvalid, "agent.refuse.locked", "dir", hostile))
		text := out.String()
		if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
			t.Errorf("%s: %d lines: %q", format, strings.Count(text, "\n"), text)
		}
		if i := strings.IndexFunc(strings.TrimSuffix(text, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: a character that cannot be seen: %q", format, text[i:min(len(text), i+20)])
		}
		if strings.Count(text, "evil") < 4 {
			t.Errorf("%s: something is lost: %s", format, text)
		}
		if format == "json" {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil || line["level"] != "WARN" {
				t.Errorf("%v: %s", err, text)
			}
		}
	}
}

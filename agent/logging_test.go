package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

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
